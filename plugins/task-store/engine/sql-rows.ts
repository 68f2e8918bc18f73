/** The rows of tasks in SQL, one statement per step. */
import { type SQL, sql } from 'drizzle-orm';
import type { Attempt } from '../../common/domain/calls.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import { givenBack, Leases } from '../../common/kit/jobs/leases.ts';
import {
  column,
  columnsOf,
  inMs,
  jsonColumn,
  jsonOf,
  millisecondsOf,
  optional,
  type Runner,
  rowsOf,
  tableOf,
} from '../../common/kit/sql.ts';
import type { Made, MediaKind, Order, Reference } from '../../common/media/adapters.ts';
import type {
  Changes,
  Ending,
  FinalState,
  From,
  NewTask,
  StoredResult,
  StoredState,
  StoredTask,
  TaskError,
  TaskRows,
  To,
  VendorFile,
} from './rows.ts';

export class SqlTaskRows implements TaskRows {
  readonly #store: Database;
  readonly #table: SQL;
  readonly #callbacks: SQL;
  readonly #leases: Leases<never>;

  constructor(store: Database) {
    this.#store = store;
    this.#table = tableOf(store, 'tasks');
    this.#callbacks = tableOf(store, 'task_callbacks');
    this.#leases = new Leases({ runner: store.orm, table: this.#table, columns: workColumns.select });
  }

  async insert(transaction: Orm, task: NewTask): Promise<void> {
    const { references, ...head } = task.order;
    const { lease } = task;
    const until = lease === undefined ? sql`null` : inMs(lease.forMs);
    await transaction.execute(sql`
      insert into ${this.#table} (id, request_id, account_id, key_id, trace, kind, model, state, order_head, order_refs, callback_url,
        created_at, updated_at, deadline_at, due_at, lease, lease_until)
      values (${task.id}, ${task.requestId}::uuid, ${task.accountId}, ${task.keyId}, ${task.trace ?? null}::text, ${head.kind}, ${head.model}, 'queued',
        ${jsonOf(head)}, ${jsonOf(references)}, ${task.callbackUrl ?? null}::text, now(), now(), ${inMs(task.deadlineMs)}, now(),
        ${lease?.token ?? null}::text, (${until})::timestamptz)`);
  }

  async take(token: string, limit: number, leaseMs: number): Promise<StoredTask[]> {
    return (await this.#leases.take(token, limit, leaseMs)).map(workColumns.read);
  }

  async renew(id: string, token: string, leaseMs: number): Promise<boolean> {
    return (await this.#leases.renew(id, token, leaseMs)) !== undefined;
  }

  async find(id: string, accountId?: string): Promise<StoredTask | undefined> {
    const owned = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
    const [row] = await rowsOf<never>(
      this.#store.orm,
      sql`select ${viewColumns.select} from ${this.#table} as taken where id = ${id} ${owned}`,
    );
    return row && viewColumns.read(row);
  }

  move(id: string, from: From, { state, dueMs, keepLease }: To, changes: Changes = {}): Promise<boolean> {
    const written = [sql`due_at = ${inMs(dueMs)}`, ...writtenBy(changes)];
    if (keepLease !== true) written.push(givenBack);
    if (changes.vendorFiles !== undefined) written.push(sql`vendor_files = ${jsonOf(changes.vendorFiles)}`);
    return this.#write(this.#store.orm, id, from, state, written);
  }

  async end(transaction: Orm, task: Ending, from: From, state: FinalState, changes: Changes): Promise<boolean> {
    // References are not needed after the end.
    const forgotten = [sql`due_at = null`, sql`completed_at = now()`, sql`order_refs = null`, sql`vendor_files = null`];
    const written = [...forgotten, givenBack, ...writtenBy(changes)];
    const ended = await this.#write(transaction, task.id, from, state, written);
    if (ended && task.callbackUrl !== undefined) {
      await transaction.execute(sql`
        insert into ${this.#callbacks} (account_id, task_id, url, created_at, due_at)
        select account_id, id, ${task.callbackUrl}, now(), now() from ${this.#table} where id = ${task.id} on conflict do nothing`);
    }
    return ended;
  }

  async #write(runner: Runner, id: string, from: From, state: StoredState, written: readonly SQL[]): Promise<boolean> {
    const moved = await rowsOf(
      runner,
      sql`update ${this.#table} set ${sql.join([sql`state = ${state}`, sql`updated_at = now()`, ...written], sql`, `)}
          where id = ${id} and state in (select value from json_array_elements_text(${jsonOf(from.states)})) ${rightOf(from)}
          returning 1`,
    );
    return moved.length === 1;
  }

  async remove(id: string, accountId: string): Promise<boolean> {
    const removed = await rowsOf(
      this.#store.orm,
      sql`delete from ${this.#table} where id = ${id} and account_id = ${accountId} and due_at is null returning 1`,
    );
    return removed.length === 1;
  }

  async deleteOld(olderThanMs: number): Promise<void> {
    await this.#store.orm.execute(sql`delete from ${this.#table} where completed_at < ${inMs(-olderThanMs)}`);
  }
}

/** Columns that every move may write. */
function writtenBy({ tries = 0, progress, attempts, vendorId, made, results, error }: Changes): SQL[] {
  const written = [sql`tries = ${tries}::int`];
  if (progress !== undefined) written.push(sql`progress = ${Math.round(progress)}::smallint`);
  if (vendorId !== undefined) written.push(sql`vendor_id = ${vendorId}`);
  if (attempts !== undefined)
    written.push(sql`attempts = ${jsonOf(attempts)}`, sql`departure = ${attempts.at(-1)?.number ?? 0}::smallint`);
  if (made !== undefined) written.push(sql`made = ${jsonOf(made)}`);
  if (results !== undefined) written.push(sql`results = ${jsonOf(results)}`);
  if (error !== undefined) written.push(sql`error = ${jsonOf(error)}`);
  return written;
}

function rightOf({ by }: From): SQL {
  if (by === 'any') return sql``;
  return 'lease' in by ? sql`and lease = ${by.lease}` : sql`and departure = ${by.departure}::smallint`;
}

/** Columns for views, without the large ones. */
export const viewColumns = columnsWith(sql`null`, sql`null`);
/** Columns that a worker needs. */
const workColumns = columnsWith(sql`order_refs`, sql`vendor_files`);

function columnsWith(references: SQL, vendorFiles: SQL) {
  const { select, read } = columnsOf({
    id: column<string>('taken.id'),
    requestId: column<string>(sql`request_id::text`),
    accountId: column<string>('account_id'),
    keyId: column<string>('key_id'),
    trace: column<string | null>('trace'),
    kind: column<MediaKind>('kind'),
    model: column<string>('model'),
    state: column<StoredState>('state'),
    progress: column<number>(sql`progress::int`),
    head: jsonColumn<Omit<Order, 'references'>>('order_head'),
    references: optional(jsonColumn<Reference[]>(references)),
    callbackUrl: optional(column<string>('callback_url')),
    attempts: jsonColumn<Attempt[]>('attempts'),
    vendorId: optional(column<string>('vendor_id')),
    made: optional(jsonColumn<Made>('made')),
    vendorFiles: optional(jsonColumn<VendorFile[]>(vendorFiles)),
    results: jsonColumn<StoredResult[]>('results'),
    error: optional(jsonColumn<TaskError>('error')),
    createdAtMs: column<number>(millisecondsOf(sql`created_at`)),
    updatedAtMs: column<number>(millisecondsOf(sql`updated_at`)),
    completedAtMs: optional(column<number>(millisecondsOf(sql`completed_at`))),
    leftMs: column<number>(millisecondsOf(sql`(deadline_at - now())`)),
    tries: column<number>('tries'),
  });
  const taskOf = (row: Parameters<typeof read>[0]): StoredTask => {
    const { head, references = [], vendorFiles: files = [], ...task } = read(row);
    return { ...task, order: { ...head, references }, vendorFiles: files };
  };
  return { select, read: taskOf };
}
