/** The table of reservations in memory. */
import type { EndedOrder, OrderRows, Reservation } from '../../../plugins/admission/orders.ts';
import type { Orm } from '../../../plugins/common/domain/database.ts';
import type { AdmittedCall, OrderEnd } from '../../../plugins/common/wire/admission-rules.ts';

interface Row {
  readonly call: AdmittedCall;
  readonly reservations: readonly Reservation[];
  readonly owner: string | undefined;
  end?: OrderEnd;
  taken?: true;
}

type Writes = Pick<Orm, 'execute'> | undefined;

/** A transaction is the list of its writes. */
export class MemoryRows implements Pick<OrderRows, 'add' | 'running' | 'end' | 'take' | 'delete' | 'due' | 'stands'> {
  readonly #rows = new Map<string, Row>();
  readonly #step: () => Promise<void>;

  constructor(step: () => Promise<void> = async () => {}) {
    this.#step = step;
  }

  begin(): { orm: Orm; commit: () => void } {
    const writes: (() => void)[] = [];
    const commit = () => {
      for (const write of writes) write();
    };
    return { orm: writes as unknown as Orm, commit };
  }

  async add(orm: Writes, call: AdmittedCall, reservations: readonly Reservation[], owner?: string) {
    await this.#step();
    write(orm, () => this.#rows.set(call.id, { call, reservations, owner }));
  }

  async running(owner: string) {
    await this.#step();
    return [...this.#rows.values()].flatMap((row) => (row.owner === owner && row.end === undefined ? row.call : []));
  }

  async end(orm: Writes, requestId: string, end: OrderEnd) {
    await this.#step();
    write(orm, () => {
      const row = this.#rows.get(requestId);
      if (row !== undefined) row.end ??= end;
    });
  }

  async take(requestId: string) {
    await this.#step();
    const row = this.#rows.get(requestId);
    if (row?.end === undefined || row.taken) return undefined;
    row.taken = true;
    return row as EndedOrder;
  }

  async delete(requestId: string) {
    await this.#step();
    this.#rows.delete(requestId);
  }

  async due() {
    await this.#step();
    return [...this.#rows].flatMap(([id, row]) => (row.end === undefined || row.taken ? [] : [id]));
  }

  async stands({ id }: AdmittedCall) {
    await this.#step();
    const row = this.#rows.get(id);
    return row !== undefined && row.owner === undefined;
  }
}

function write(orm: Writes, work: () => void): void {
  if (orm === undefined) work();
  else (orm as unknown as (() => void)[]).push(work);
}
