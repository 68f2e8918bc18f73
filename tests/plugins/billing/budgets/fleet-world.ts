/** A fleet that spends scopes together: real tallies over a database in memory, with crashes and answers that are lost. */
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import { countsModel, type Scope, type Spending } from '../../../../plugins/billing/budgets/scope.ts';
import type { ShareRequest } from '../../../../plugins/billing/budgets/shares.ts';
import { type ScopeShare, Tallies } from '../../../../plugins/billing/budgets/tallies.ts';
import { type Money, money } from '../../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../../helpers/fakes.ts';
import type { StoredCursor } from '../../../simulation/memory-leases.ts';
import { MemoryShares } from '../../../simulation/memory-shares.ts';

export interface Running {
  readonly node: FleetNode;
  readonly spending: Call;
  readonly scopes: readonly Scope[];
  readonly share: ScopeShare;
  held: bigint;
}

export interface Charge {
  readonly spending: Call;
  readonly at: number;
  readonly cost: bigint;
  readonly held: bigint;
}

/** What the next statement of a node meets: it comes through, is refused, or is done without an answer. */
export type Fate = 'works' | 'refused' | 'unanswered';

export interface FleetNode {
  readonly name: string;
  owner: string;
  tallies: Tallies;
  /** Ended calls that the ledger lacks. */
  readonly ended: Charge[];
  number: number;
  fate: Fate;
}

/** Whom a call is for. */
export interface Call extends Omit<Spending, 'models'> {
  readonly model: string;
}

/** Whether a charge counts in a scope. */
const isWithin = (charge: Call, { models, ...scope }: Spending): boolean =>
  countsModel({ accountId: '', models }, charge.model) &&
  Object.entries(scope).every(([name, value]) => value === undefined || charge[name as keyof Call] === value);

export class Fleet {
  readonly host = fakeHost();
  readonly ledger: Charge[] = [];
  readonly running = new Set<Running>();
  readonly nodes: FleetNode[];
  readonly cursors = new Map<string, StoredCursor>();
  readonly shares: MemoryShares;
  #owners = 0;

  constructor(size: number) {
    const now = () => this.host.clock.monotonic();
    const charged = (request: ShareRequest) => ({ spent: this.#spent(request), ordered: 0n });
    this.shares = new MemoryShares({ cursors: this.cursors, now, charged });
    this.nodes = Array.from({ length: size }, (_, index) => {
      const node = { name: `n${index}`, owner: '', ended: [], number: 0, fate: 'works' as Fate };
      return Object.assign(node, { tallies: undefined as unknown as Tallies });
    });
    for (const node of this.nodes) this.#begin(node);
  }

  #spent({ counted }: ShareRequest): bigint {
    const { spending, from } = counted!;
    return this.ledger.reduce(
      (sum, charge) => (charge.at >= from && isWithin(charge.spending, spending) ? sum + charge.cost : sum),
      0n,
    );
  }

  #begin(node: FleetNode): void {
    node.owner = `o${++this.#owners}`;
    node.number = 0;
    this.cursors.set(node.name, {
      owner: node.owner,
      epoch: this.#owners,
      applied: 0,
      asked: 0,
      seenAt: Number.POSITIVE_INFINITY,
    });
    const { clock, log } = this.host;
    const { owner } = node;
    const lives = () => node.owner === owner;
    const hear = (work: (tallies: Tallies, subject: string) => void) => (key: string) => {
      for (const other of this.nodes)
        if (other !== node && lives()) void turn().then(() => work(other.tallies, `${node.name} ${key}`));
    };
    node.tallies = new Tallies({
      ...{ clock, log, limit: 100, times: { lastsMs: 240_000, renewBelowMs: 195_000 } },
      drained: async () => {
        // What ends meanwhile is not in the ledger.
        const before = node.ended.length;
        await turn();
        if (!lives()) throw new Error('dead');
        this.ledger.push(...node.ended.splice(0, before));
      },
      take: (requests) => this.#take(node, requests),
      recall: hear((tallies, subject) => tallies.wanted(subject)),
      returned: hear((tallies, subject) => tallies.wasReturned(subject)),
    });
  }

  async #take(node: FleetNode, requests: readonly ShareRequest[]) {
    const { fate, owner } = node;
    node.fate = 'works';
    node.number += 1;
    const { number } = node;
    if (fate === 'refused') throw new Error('refused');
    await turn();
    const answer = await this.shares.take({ journal: node.name, owner }, { number, requests, lastsMs: 240_000 });
    await turn();
    if (fate === 'unanswered' || node.owner !== owner) throw new Error('unanswered');
    return answer;
  }

  #flush(node: FleetNode): void {
    this.ledger.push(...node.ended.splice(0));
  }

  /** What the scope was charged since `from`, and what calls hold of it, in all processes. */
  taken(scope: Spending, from: number): { readonly spent: bigint; readonly beyond: bigint } {
    let [spent, beyond] = [0n, 0n];
    for (const { spending, at, cost, held } of [...this.ledger, ...this.nodes.flatMap(({ ended }) => ended)]) {
      if (at < from || !isWithin(spending, scope)) continue;
      spent += cost;
      if (cost > held) beyond += cost - held;
    }
    for (const { spending, held } of this.running) if (isWithin(spending, scope)) spent += held;
    return { spent, beyond };
  }

  /** undefined: refused by 402; throws on anything else. */
  async enter(
    node: FleetNode,
    spending: Call,
    scopes: readonly Scope[],
    amount: bigint,
  ): Promise<Running | undefined | 'unknown'> {
    const { owner } = node;
    let outcome: { share?: ScopeShare; error?: unknown } | undefined;
    const entering = async () => node.tallies.enter(scopes, money(amount));
    void entering().then(
      (share) => {
        // In the turn in which it was held.
        outcome = { share };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    for (let turns = 0; outcome === undefined; turns += 1) {
      await turn();
      if (turns % 16 === 15) {
        this.host.advance(50);
        mock.timers.tick(50);
      }
    }
    if (node.owner !== owner) return 'unknown';
    if (outcome.share !== undefined) {
      const running = { node, spending, scopes, share: outcome.share, held: amount };
      this.running.add(running);
      return running;
    }
    const { status, code } = outcome.error as GatewayError;
    if (status === 503) return 'unknown';
    if (status !== 402 || code === undefined) throw outcome.error;
    return undefined;
  }

  end(call: Running, cost: bigint): void {
    this.running.delete(call);
    const at = this.host.clock.now();
    call.node.ended.push({ spending: call.spending, at, cost, held: call.held });
    call.share.end(cost as Money, at, call.spending.model);
  }

  /** The process dies and is started again: its journal is applied, and what ran is charged by its hold. With a power cut ended calls are, too. */
  async crash(node: FleetNode, isPowerCut: boolean): Promise<void> {
    const at = this.host.clock.now();
    node.owner = 'none';
    for (const call of [...this.running])
      if (call.node === node) {
        this.running.delete(call);
        node.ended.push({ spending: call.spending, at, cost: call.held, held: call.held });
      }
    const lost = isPowerCut ? node.ended.splice(0) : [];
    for (const { cost, held, ...rest } of lost) node.ended.push({ ...rest, held, cost: held > cost ? held : cost });
    this.#flush(node);
    this.#begin(node);
    await this.shares.returnAll({ journal: node.name, owner: node.owner });
  }
}
