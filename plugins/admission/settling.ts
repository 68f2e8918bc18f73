/** Reservations that outlive their exchange: kept with an order, or for the case that the process is killed, and settled once. */
import type { Host } from '../../core/contract/contract.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import type { Orm } from '../common/domain/database.ts';
import { ledger } from '../common/domain/ledger.ts';
import { zero } from '../common/domain/money.ts';
import { readOrMakeOwner } from '../common/kit/jobs/owner.ts';
import {
  type AdmissionEnd,
  type AdmissionRule,
  type AdmittedCall,
  type AdmittedOrders,
  admission,
  type OrderEnd,
} from '../common/wire/admission-rules.ts';
import type { OrderRows } from './orders.ts';
import type { Held, Log, Rules } from './rules.ts';

type Rows = Pick<OrderRows, 'add' | 'running' | 'end' | 'take' | 'delete' | 'due' | 'stands'>;

/** Billing has posted what its journal has of a killed process by then. */
const postedMs = 60_000;

export class Orders implements AdmittedOrders {
  readonly #host: Host;
  readonly #rows: Rows;
  readonly #rules: Rules;
  /** Reservations of exchanges that do not know whether their order stands. */
  readonly #undecided = new Map<AdmittedCall, readonly Held[]>();
  /** Calls that have ended while the database could not be asked. */
  readonly #ending = new Map<string, OrderEnd>();
  /** Calls of killed processes of this data directory. */
  readonly #abandoned = new Set<AdmittedCall>();
  #owner = '';
  #startedAt = 0;

  constructor(host: Host, rows: Rows, rules: Rules) {
    this.#host = host;
    this.#rows = rows;
    this.#rules = rules;
  }

  /** Before the first call. */
  async start(): Promise<void> {
    if (!this.#host.extensions(admission).some(({ durable }) => durable)) return;
    this.#owner = await readOrMakeOwner(this.#host.directory, this.#host.random);
    this.#startedAt = this.#host.clock.monotonic();
    for (const call of await this.#rows.running(this.#owner)) this.#abandoned.add(call);
  }

  /** Writes down what is to be ended although the process is killed. */
  note(call: AdmittedCall, held: readonly Held[]): Promise<void> {
    return this.#rows.add(undefined, call, named(held), this.#owner);
  }

  /** Ends what was written down. */
  async endNoted({ id }: AdmittedCall, end: OrderEnd): Promise<void> {
    this.#ending.set(id, end);
    await this.#rows.end(undefined, id, end);
    this.#ending.delete(id);
    await this.settle(id);
  }

  keep(orm: Orm, call: AdmittedCall, held: readonly Held[]): Promise<void> {
    return this.#rows.add(orm, call, named(held));
  }

  end(orm: Orm, requestId: string, end: OrderEnd): Promise<void> {
    return this.#rows.end(orm, requestId, end);
  }

  async settle(requestId: string): Promise<void> {
    try {
      const ended = await this.#rows.take(requestId);
      if (ended === undefined) return;
      const { sent, model = ended.call.model, ...end } = ended.end;
      const call = { ...ended.call, model };
      const held = ended.reservations.flatMap(([name, reservation]) => this.#heldBy(name, reservation));
      await this.#rules.end(held, call, sent || end.cost > 0n ? end : undefined, this.#logOf(call));
      await this.#rows.delete(requestId);
    } catch (error) {
      this.#host.log.warn({ error, request_id: requestId }, 'reservations of an order are settled later');
    }
  }

  /** Releases what was reserved for an order, unless it stands after all. */
  async release(call: AdmittedCall, held: readonly Held[]): Promise<void> {
    this.#undecided.set(call, held);
    const stands = await this.#rows.stands(call);
    this.#undecided.delete(call);
    if (stands) return;
    await this.#rules.end(held, call, undefined, this.#logOf(call));
    await this.#rows.delete(call.id);
  }

  /** Orders of processes that have died since, calls of a killed one, and exchanges that could not ask the database. */
  async sweep(): Promise<void> {
    for (const [call, held] of this.#undecided) await this.release(call, held);
    for (const [id, end] of this.#ending) {
      await this.#rows.end(undefined, id, end);
      this.#ending.delete(id);
    }
    for (const call of this.#abandoned) {
      const end = await this.#endOf(call);
      if (end === undefined) continue;
      this.#abandoned.delete(call);
      await this.#rows.end(undefined, call.id, end);
    }
    for (const requestId of await this.#rows.due()) await this.settle(requestId);
  }

  /** How a call of a killed process has ended, by what its journal has charged; undefined: that is not known yet. */
  async #endOf({ id, caller: { accountId } }: AdmittedCall): Promise<OrderEnd | undefined> {
    const outcome: AdmissionEnd['outcome'] = 'failed';
    const nothing = { outcome, cost: zero, usage: undefined };
    const posted = this.#host.find(ledger);
    if (posted === undefined) return { ...nothing, sent: true };
    const how = await posted.endOf(id);
    if (how === 'charged') {
      const charge = await this.#host.find(ledgerQueries)?.charge(id, accountId);
      return charge && { outcome, cost: charge.cost, usage: charge.usage, sent: true };
    }
    if (how === 'in_vain') return { ...nothing, sent: true };
    const isPosted = this.#host.clock.monotonic() - this.#startedAt > postedMs;
    return how === 'free' || (how === undefined && isPosted) ? { ...nothing, sent: false } : undefined;
  }

  #heldBy(name: string, reservation: string): Held[] {
    const rule = this.#host.extensions(admission).find((one: AdmissionRule) => one.name === name);
    if (rule !== undefined) return [{ rule, reservation }];
    this.#host.log.warn({ rule: name }, 'an admission rule that has reserved something is not in the list any more');
    return [];
  }

  #logOf({ id, caller: { accountId, keyId } }: AdmittedCall): Log {
    const about = { request_id: id, account_id: accountId, key_id: keyId };
    return { error: (fields, message) => this.#host.log.error({ ...about, ...fields }, message) };
  }
}

const named = (held: readonly Held[]) => held.map(({ rule, reservation }) => [rule.name, reservation] as const);
