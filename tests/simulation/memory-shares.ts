/** The shares of scopes in memory: the meaning of the statements, with runs, numbers of requests and times. */

import { keyOf } from '../../plugins/billing/budgets/scope.ts';
import {
  type BudgetShares,
  cutShare,
  type ShareAnswer,
  type ShareRequest,
  type ShareRound,
} from '../../plugins/billing/budgets/shares.ts';
import type { Node } from '../../plugins/billing/leases/store.ts';
import { FencedError } from '../../plugins/billing/ledger/batch.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { StoredCursor } from './memory-leases.ts';

interface ShareRow {
  readonly epoch: string;
  readonly amount: bigint;
  readonly open: bigint;
  readonly asked: number;
  readonly updatedAt: number;
}

export interface SharesOptions {
  readonly cursors: ReadonlyMap<string, StoredCursor>;
  readonly now: () => number;
  readonly charged: (request: ShareRequest) => { readonly spent: bigint; readonly ordered: bigint };
}

const livesMs = 15_000;

export class MemoryShares implements BudgetShares {
  readonly #options: SharesOptions;
  /** By account and scope, then by node. */
  readonly #rows = new Map<string, Map<string, ShareRow>>();

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  async take(node: Node, round: ShareRound): Promise<Map<string, ShareAnswer>> {
    const { cursors, now } = this.#options;
    if (cursors.get(node.journal)?.owner !== node.owner)
      throw new FencedError(`journal ${node.journal} now belongs to another process`);
    const rows = round.requests.map((request) => [request, this.#rowsOf(request)] as const);
    for (const [, known] of rows) {
      const own = known.get(node.journal);
      if (own?.epoch === node.owner && own.asked >= round.number && this.counts())
        throw new Error('a later request for shares was seen');
    }
    const answers = new Map<string, ShareAnswer>();
    for (const [request, known] of rows) {
      const answer = cutShare(this.stateOf(node, request), request);
      answers.set(keyOf(request.accountId, request.scope), answer);
      if (request.counted === undefined) known.delete(node.journal);
      else {
        const row = { epoch: node.owner, amount: answer.amount, open: request.open };
        known.set(node.journal, { ...row, asked: round.number, updatedAt: now() });
      }
    }
    return answers;
  }

  /** Whether a request that a later one has overtaken changes nothing. */
  counts(): boolean {
    return true;
  }

  stateOf({ journal }: Node, request: ShareRequest) {
    const { cursors, now, charged } = this.#options;
    const since = now() - livesMs;
    let [others, elsewhere] = [0n, 0n];
    const rows = this.#rowsOf(request);
    for (const [node, { amount, open, updatedAt }] of rows) {
      if (node === journal || amount <= 0n) continue;
      others += amount;
      if ((cursors.get(node)?.seenAt ?? 0) <= since) continue;
      if (updatedAt < now() - Math.ceil(request.waitedMs)) elsewhere += amount;
      else if (amount > open) elsewhere += amount - open;
    }
    const nodes = [...cursors].filter(([name, { seenAt }]) => name === journal || seenAt > since).length;
    const own = rows.get(journal)?.amount ?? 0n;
    const sums = request.counted === undefined ? { spent: 0n, ordered: 0n } : charged(request);
    return { ...sums, own, others, elsewhere, nodes: Math.max(nodes, 1) };
  }

  async read(requests: readonly ShareRequest[]): Promise<Map<string, ShareAnswer>> {
    return new Map(
      requests.map((request) => {
        const { spent, ordered } = this.#options.charged(request);
        const left = money((request.counted?.amount ?? 0n) - spent - ordered);
        const answer = { amount: left, rest: left, elsewhere: money(0n), ordered: money(ordered) };
        return [keyOf(request.accountId, request.scope), answer] as const;
      }),
    );
  }

  async returnAll({ journal, owner }: Node): Promise<void> {
    if (this.#options.cursors.get(journal)?.owner !== owner) return;
    for (const rows of this.#rows.values()) rows.delete(journal);
  }

  async reclaim({ journal, owner }: Node): Promise<void> {
    if (this.#options.cursors.get(journal)?.owner !== owner) return;
    for (const rows of this.#rows.values()) if (rows.get(journal)?.epoch !== owner) rows.delete(journal);
  }

  /** Whether any process has any share. */
  get isEmpty(): boolean {
    return [...this.#rows.values()].every((rows) => rows.size === 0);
  }

  #rowsOf({ accountId, scope }: ShareRequest): Map<string, ShareRow> {
    const key = keyOf(accountId, scope);
    const rows = this.#rows.get(key) ?? new Map<string, ShareRow>();
    this.#rows.set(key, rows);
    return rows;
  }
}
