/** The rows of tasks: put in, found, taken, and moved from state to state, one statement each. */
import { type SQL, sql } from 'drizzle-orm';
import type { Attempt, Database } from '../../core/vocabulary.ts';
import type { Made, MediaKind, Order, Reference } from './contract.ts';
import { type Leased, renewLease, takeDue } from './leases.ts';
import { inMs, jsonOf, millisecondsOf, type Runner, rowsOf } from './sql.ts';

export type StoredState =
  | 'queued'
  | 'creating'
  | 'reconciling'
  | 'running'
  | 'copying'
  | 'completed'
  | 'failed'
  | 'cancelled';

/** A result that is kept, or one that still lies at its vendor's. */
export type Kept = { readonly id: string; readonly mediaType: string };
export type VendorFile = { readonly kept: Kept } | { readonly url: string; readonly kind: MediaKind };
export interface TaskError {
  readonly code: string;
  readonly message: string;
}

export interface StoredTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly kind: MediaKind;
  readonly model: string;
  readonly state: StoredState;
  readonly progress: number;
  readonly order: Order;
  readonly callbackUrl: string | undefined;
  readonly attempts: readonly Attempt[];
  readonly vendorId: string | undefined;
  readonly made: Made | undefined;
  readonly vendorFiles: readonly VendorFile[];
  readonly results: readonly Kept[];
  readonly error: TaskError | undefined;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly completedAtMs: number | undefined;
  /** Milliseconds until it must have ended, by the database's clock, when it was read. */
  readonly leftMs: number;
  readonly tries: number;
}

export interface NewTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly order: Order;
  readonly callbackUrl: string | undefined;
  readonly deadlineMs: number;
}

/** What a transition writes beside the state; absent members stay. */
export interface Changes {
  readonly progress?: number;
  readonly attempts?: readonly Attempt[];
  readonly vendorId?: string;
  readonly made?: Made;
  readonly vendorFiles?: readonly VendorFile[];
  readonly results?: readonly Kept[];
  readonly error?: TaskError;
  readonly tries?: number;
}

/** Who may make a transition, and from where. */
export interface From {
  readonly states: readonly StoredState[];
  /** The lease by which the worker has it; or the departure that only one worker ever made. */
  readonly by: { readonly lease: string } | { readonly departure: number } | 'anybody';
}

/** Where it goes: when there is something to do again; undefined: never. `keepLease`: the same worker goes on. */
export interface To {
  readonly state: StoredState;
  readonly dueMs?: number;
  readonly keepLease?: true;
}

export interface Page {
  readonly limit: number;
  readonly kind: MediaKind | undefined;
  readonly states: readonly StoredState[] | undefined;
  /** Id of the task behind which the page begins. */
  readonly after: string | undefined;
}

export class TaskRows {
  readonly #store: Database;
  readonly #table: SQL;
  readonly leased: Leased;

  constructor(store: Database) {
    this.#store = store;
    this.#table = sql`${sql.identifier(store.schema)}.${sql.identifier('tasks')}`;
    this.leased = { table: this.#table, key: sql`id`, columns: columns };
  }

  async insert(runner: Runner, task: NewTask): Promise<void> {
    const { references, ...head } = task.order;
    await runner.execute(sql`
      insert into ${this.#table} (id, request_id, account_id, key_id, kind, model, state, order_head, order_refs, callback_url,
        created_at, updated_at, deadline_at, due_at)
      values (${task.id}, ${task.requestId}::uuid, ${task.accountId}, ${task.keyId}, ${head.kind}, ${head.model}, 'queued',
        ${jsonOf(head)}, ${jsonOf(references)}, ${task.callbackUrl ?? null}::text, now(), now(), ${inMs(task.deadlineMs)}, now())`);
  }

  async take(token: string, limit: number, leaseMs: number): Promise<StoredTask[]> {
    return (await takeDue<Row>(this.#store.orm, this.leased, token, limit, leaseMs)).map(taskOf);
  }

  renew(id: string, token: string, leaseMs: number): Promise<boolean> {
    return renewLease(this.#store.orm, this.leased, id, token, leaseMs);
  }

  /** The account's task; without an account, anybody's. */
  async find(id: string, accountId?: string): Promise<StoredTask | undefined> {
    const owned = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
    const [row] = await rowsOf<Row>(
      this.#store.orm,
      sql`select ${columns} from ${this.#table} as taken where id = ${id} ${owned}`,
    );
    return row && taskOf(row);
  }

  /** Newest first. */
  async list(accountId: string, { limit, kind, states, after }: Page): Promise<StoredTask[]> {
    const filters = [sql`account_id = ${accountId}`];
    if (kind !== undefined) filters.push(sql`kind = ${kind}`);
    if (states !== undefined)
      filters.push(sql`state in (select value from json_array_elements_text(${jsonOf(states)}))`);
    if (after !== undefined)
      filters.push(sql`(created_at, id) < (select created_at, id from ${this.#table} as last
        where last.id = ${after} and last.account_id = ${accountId})`);
    const found = await rowsOf<Row>(
      this.#store.orm,
      sql`select ${columns} from ${this.#table} as taken where ${sql.join(filters, sql` and `)}
          order by created_at desc, id desc limit ${limit}::int`,
    );
    return found.map(taskOf);
  }

  /**
   * One statement that checks the old state and the right to change it. false: it is not there any more, and nothing was
   * written.
   */
  async move(runner: Runner, id: string, from: From, to: To, changes: Changes = {}): Promise<boolean> {
    const final = to.dueMs === undefined;
    const written = [
      sql`state = ${to.state}`,
      sql`updated_at = now()`,
      sql`due_at = ${final ? sql`null` : inMs(to.dueMs)}`,
      sql`tries = ${changes.tries ?? 0}::int`,
    ];
    if (to.keepLease !== true) written.push(sql`lease = null`, sql`lease_until = null`);
    // What was shown to the model is nobody's business any more.
    if (final) written.push(sql`completed_at = now()`, sql`order_refs = null`, sql`vendor_files = null`);
    const { attempts, vendorId, progress } = changes;
    if (progress !== undefined) written.push(sql`progress = ${Math.round(progress)}::smallint`);
    if (vendorId !== undefined) written.push(sql`vendor_id = ${vendorId}`);
    if (attempts !== undefined)
      written.push(sql`attempts = ${jsonOf(attempts)}`, sql`departure = ${attempts.at(-1)?.number ?? 0}::smallint`);
    if (changes.made !== undefined) written.push(sql`made = ${jsonOf(changes.made)}`);
    if (changes.vendorFiles !== undefined && !final) written.push(sql`vendor_files = ${jsonOf(changes.vendorFiles)}`);
    if (changes.results !== undefined) written.push(sql`results = ${jsonOf(changes.results)}`);
    if (changes.error !== undefined) written.push(sql`error = ${jsonOf(changes.error)}`);
    const moved = await rowsOf(
      runner,
      sql`update ${this.#table} set ${sql.join(written, sql`, `)}
          where id = ${id} and state in (select value from json_array_elements_text(${jsonOf(from.states)})) ${rightOf(from)}
          returning 1`,
    );
    return moved.length === 1;
  }

  /** Forgets tasks that ended long ago. */
  async deleteOld(olderThanMs: number): Promise<void> {
    await this.#store.orm.execute(
      sql`delete from ${this.#table} where completed_at < now() - ${olderThanMs}::bigint * interval '1 millisecond'`,
    );
  }
}

function rightOf({ by }: From): SQL {
  if (by === 'anybody') return sql``;
  return 'lease' in by ? sql`and lease = ${by.lease}` : sql`and departure = ${by.departure}::smallint`;
}

const columns = sql`taken.id, request_id::text as request_id, account_id, kind, model, state, progress::int as progress,
  order_head::text as order_head, order_refs::text as order_refs, callback_url, attempts::text as attempts, vendor_id,
  made::text as made, vendor_files::text as vendor_files, results::text as results, error::text as error, tries,
  ${millisecondsOf(sql`created_at`)} as created_ms, ${millisecondsOf(sql`updated_at`)} as updated_ms,
  ${millisecondsOf(sql`completed_at`)} as completed_ms,
  (extract(epoch from deadline_at - now()) * 1000)::float8 as left_ms`;

interface Row {
  readonly id: string;
  readonly request_id: string;
  readonly account_id: string;
  readonly kind: MediaKind;
  readonly model: string;
  readonly state: StoredState;
  readonly progress: number;
  readonly order_head: string;
  readonly order_refs: string | null;
  readonly callback_url: string | null;
  readonly attempts: string;
  readonly vendor_id: string | null;
  readonly made: string | null;
  readonly vendor_files: string | null;
  readonly results: string;
  readonly error: string | null;
  readonly tries: number;
  readonly created_ms: number;
  readonly updated_ms: number;
  readonly completed_ms: number | null;
  readonly left_ms: number;
}

function taskOf(row: Row): StoredTask {
  const references = read<Reference[]>(row.order_refs) ?? [];
  return {
    id: row.id,
    requestId: row.request_id,
    accountId: row.account_id,
    kind: row.kind,
    model: row.model,
    state: row.state,
    progress: row.progress,
    order: { ...(JSON.parse(row.order_head) as Omit<Order, 'references'>), references },
    callbackUrl: row.callback_url ?? undefined,
    attempts: JSON.parse(row.attempts) as Attempt[],
    vendorId: row.vendor_id ?? undefined,
    made: read<Made>(row.made),
    vendorFiles: read<VendorFile[]>(row.vendor_files) ?? [],
    results: JSON.parse(row.results) as Kept[],
    error: read<TaskError>(row.error),
    createdAtMs: row.created_ms,
    updatedAtMs: row.updated_ms,
    completedAtMs: row.completed_ms ?? undefined,
    leftMs: row.left_ms,
    tries: row.tries,
  };
}

function read<Value>(text: string | null): Value | undefined {
  return text === null ? undefined : (JSON.parse(text) as Value);
}

export type { Row };
export { columns as toldColumns, taskOf };
