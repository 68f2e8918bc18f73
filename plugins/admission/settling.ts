/** Reservations of orders: kept with the order, and settled once it has ended, by one process. */
import type { Host } from '../../core/contract/contract.ts';
import type { Orm } from '../common/domain/database.ts';
import {
  type AdmissionRule,
  type AdmittedCall,
  type AdmittedOrders,
  admission,
  type OrderEnd,
} from '../common/wire/admission-rules.ts';
import type { OrderRows } from './orders.ts';
import type { Held, Rules } from './rules.ts';

type Rows = Pick<OrderRows, 'add' | 'end' | 'take' | 'delete' | 'due' | 'stands'>;

export class Orders implements AdmittedOrders {
  readonly #host: Host;
  readonly #rows: Rows;
  readonly #rules: Rules;
  /** Reservations of exchanges that do not know whether their order stands. */
  readonly #undecided = new Map<AdmittedCall, readonly Held[]>();

  constructor(host: Host, rows: Rows, rules: Rules) {
    this.#host = host;
    this.#rows = rows;
    this.#rules = rules;
  }

  keep(orm: Orm, call: AdmittedCall, held: readonly Held[]): Promise<void> {
    const reservations = held.map(({ rule, reservation }) => [rule.name, reservation] as const);
    return this.#rows.add(orm, call, reservations);
  }

  end(orm: Orm, requestId: string, end: OrderEnd): Promise<void> {
    return this.#rows.end(orm, requestId, end);
  }

  async settle(requestId: string): Promise<void> {
    try {
      const ended = await this.#rows.take(requestId);
      if (ended === undefined) return;
      const { sent, ...end } = ended.end;
      const held = ended.reservations.flatMap(([name, reservation]) => this.#heldBy(name, reservation));
      await this.#rules.end(held, ended.call, sent || end.cost > 0n ? end : undefined, this.#logOf(ended.call));
      await this.#rows.delete(requestId);
    } catch (error) {
      this.#host.log.warn({ error, request_id: requestId }, 'reservations of an order are settled later');
    }
  }

  /** Releases the reservation of an order, unless it was placed after all. */
  async release(call: AdmittedCall, held: readonly Held[]): Promise<void> {
    this.#undecided.set(call, held);
    const stands = await this.#rows.stands(call);
    this.#undecided.delete(call);
    if (!stands) await this.#rules.end(held, call, undefined, this.#logOf(call));
  }

  /** Orders of processes that have died since, and exchanges that could not ask the database. */
  async sweep(): Promise<void> {
    for (const [call, held] of this.#undecided) await this.release(call, held);
    for (const requestId of await this.#rows.due()) await this.settle(requestId);
  }

  #heldBy(name: string, reservation: string): Held[] {
    const rule = this.#host.extensions(admission).find((one: AdmissionRule) => one.name === name);
    if (rule !== undefined) return [{ rule, reservation }];
    this.#host.log.warn({ rule: name }, 'an admission rule that has reserved something is not in the list any more');
    return [];
  }

  #logOf({ id, caller: { accountId, keyId } }: AdmittedCall): Parameters<Rules['end']>[3] {
    const about = { request_id: id, account_id: accountId, key_id: keyId };
    return { error: (fields, message) => this.#host.log.error({ ...about, ...fields }, message) };
  }
}
