/** The tables of tasks in memory: the meaning of the statements of the task store, on the database's own clock. */
import type { Orm } from '../../plugins/common/domain/database.ts';
import type {
  Changes,
  Ending,
  FinalState,
  From,
  NewTask,
  StoredState,
  StoredTask,
  TaskRows,
  To,
} from '../../plugins/task-store/engine/rows.ts';
import type { DatabaseLink } from './database.ts';
import { atCommit, putIn, undoOf } from './memory-undo.ts';

/** A row; what was written stays as it is, and a change is a row in its place. */
export interface TaskRow extends Omit<StoredTask, 'leftMs'> {
  readonly keyId: string;
  /** The last sent attempt. */
  readonly departure: number;
  readonly deadlineAt: number;
  readonly dueAt: number | undefined;
  readonly lease: string | undefined;
  readonly leaseUntil: number | undefined;
}

export class TaskTable {
  /** Those that are over included, in the order in which they came. */
  readonly tasks = new Map<string, TaskRow>();
  /** Those that are not, which are looked through for work. */
  readonly open = new Map<string, TaskRow>();
  /** By task: where its end is to be notified. */
  readonly callbacks = new Map<string, string>();
  /** Milliseconds by which the database's clock is ahead of the world's: leases run out whose workers live. */
  leaptMs = 0;
  /** Called for each row that is written, when it is committed. */
  onWrite: (before: TaskRow | undefined, after: TaskRow) => void = () => {};
  readonly #requests = new Set<string>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): number {
    return this.#now() + this.leaptMs;
  }

  insert(transaction: object, task: NewTask): void {
    const { id, requestId, accountId, keyId, trace = null, order, callbackUrl, deadlineMs, lease } = task;
    if (this.tasks.has(id)) throw new Error('duplicate key: tasks_pkey');
    if (this.#requests.has(requestId)) throw new Error('duplicate key: tasks_request_id_key');
    const now = this.now();
    const row: TaskRow = {
      ...{ id, requestId, accountId, keyId, trace, order, callbackUrl, kind: order.kind, model: order.model },
      ...{ state: 'queued', progress: 0, attempts: [], departure: 0, vendorFiles: [], results: [], tries: 0 },
      ...{ vendorId: undefined, made: undefined, error: undefined },
      ...{ createdAtMs: now, updatedAtMs: now, completedAtMs: undefined, deadlineAt: now + deadlineMs, dueAt: now },
      ...{ lease: lease?.token, leaseUntil: lease && now + lease.forMs },
    };
    this.#requests.add(requestId);
    undoOf(transaction).push(() => this.#requests.delete(requestId));
    this.#put(row, undefined, transaction);
  }

  take(lease: string, limit: number, leaseMs: number): StoredTask[] {
    const now = this.now();
    const due = Array.from(this.open.values()).filter((row) => row.dueAt! <= now && this.isFree(row, now));
    due.sort((left, right) => left.dueAt! - right.dueAt!);
    return due.slice(0, limit).map((row) => {
      const taken = { ...row, lease, leaseUntil: now + leaseMs };
      this.#put(taken, row);
      return this.#read(taken);
    });
  }

  /** No one works on it. */
  isFree({ leaseUntil }: TaskRow, now: number): boolean {
    return leaseUntil === undefined || leaseUntil <= now;
  }

  renew(id: string, lease: string, leaseMs: number): boolean {
    const row = this.tasks.get(id);
    if (row?.lease !== lease) return false;
    this.#put({ ...row, leaseUntil: this.now() + leaseMs }, row);
    return true;
  }

  find(id: string, accountId?: string): StoredTask | undefined {
    const row = this.tasks.get(id);
    if (row === undefined || (accountId !== undefined && row.accountId !== accountId)) return undefined;
    return { ...this.#read(row), order: { ...row.order, references: [] }, vendorFiles: [] };
  }

  move(id: string, from: From, { state, dueMs, keepLease }: To, changes: Changes): boolean {
    const row = this.tasks.get(id);
    if (row === undefined || !this.mayWrite(row, from)) return false;
    const kept = keepLease === true ? row : noLease;
    const { lease, leaseUntil } = kept;
    const vendorFiles = changes.vendorFiles ?? row.vendorFiles;
    this.#put({ ...this.#written(row, state, changes), dueAt: this.#in(dueMs), lease, leaseUntil, vendorFiles }, row);
    return true;
  }

  end(transaction: object, { id, callbackUrl }: Ending, from: From, state: FinalState, changes: Changes): boolean {
    const row = this.tasks.get(id);
    if (row === undefined || !this.mayWrite(row, from)) return false;
    const ended: TaskRow = {
      ...this.#written(row, state, changes),
      ...{ order: { ...row.order, references: [] }, vendorFiles: [] },
      ...{ completedAtMs: this.now(), dueAt: undefined, ...noLease },
    };
    this.#put(ended, row, transaction);
    if (callbackUrl !== undefined && !this.callbacks.has(id))
      putIn(this.callbacks, id, callbackUrl, undoOf(transaction));
    return true;
  }

  /** Whether it is still where the one that moves it believes, and theirs to move. */
  mayWrite(row: TaskRow, { states, by }: From): boolean {
    if (!states.includes(row.state)) return false;
    if (by === 'any') return true;
    return 'lease' in by ? row.lease === by.lease : row.departure === by.departure;
  }

  deleteOld(olderThanMs: number): void {
    const before = this.now() - olderThanMs;
    for (const { id, requestId, completedAtMs } of this.tasks.values()) {
      if (completedAtMs === undefined || completedAtMs >= before) continue;
      this.tasks.delete(id);
      this.callbacks.delete(id);
      this.#requests.delete(requestId);
    }
  }

  remove(id: string, accountId: string): boolean {
    const row = this.tasks.get(id);
    if (row === undefined || row.accountId !== accountId || row.completedAtMs === undefined) return false;
    this.tasks.delete(id);
    this.callbacks.delete(id);
    this.#requests.delete(row.requestId);
    return true;
  }

  #in(milliseconds: number): number {
    return this.now() + Math.max(0, Math.round(milliseconds));
  }

  #written(row: TaskRow, state: StoredState, changes: Changes): TaskRow {
    const { tries = 0, attempts, progress = row.progress } = changes;
    return {
      ...row,
      ...{ state, updatedAtMs: this.now(), tries, progress: Math.round(progress) },
      ...(attempts && { attempts: [...attempts], departure: attempts.at(-1)?.number ?? 0 }),
      vendorId: changes.vendorId ?? row.vendorId,
      made: changes.made ?? row.made,
      results: changes.results ?? row.results,
      error: changes.error ?? row.error,
    };
  }

  /** Without a transaction the statement is one of its own. */
  #put(row: TaskRow, before: TaskRow | undefined, transaction?: object): void {
    const undo = transaction === undefined ? [] : undoOf(transaction);
    putIn(this.tasks, row.id, row, undo);
    this.#list(row);
    undo.push(() => (before === undefined ? this.open.delete(row.id) : this.#list(before)));
    const report = () => this.onWrite(before, row);
    if (transaction === undefined) report();
    else atCommit(transaction, report);
  }

  #list(row: TaskRow): void {
    if (row.dueAt === undefined) this.open.delete(row.id);
    else this.open.set(row.id, row);
  }

  #read(row: TaskRow): StoredTask {
    const { departure: _departure, deadlineAt, dueAt: _due, lease: _lease, leaseUntil: _until, ...reported } = row;
    return { ...reported, leftMs: deadlineAt - this.now() };
  }
}

const noLease = { lease: undefined, leaseUntil: undefined };

/** One process's way to the tables. What runs inside a transaction has come there with it. */
export function memoryTasks(table: TaskTable, link: Pick<DatabaseLink, 'send'>): TaskRows {
  return {
    insert: async (transaction: Orm, task) => table.insert(transaction, task),
    take: (lease, limit, leaseMs) => link.send('take tasks', async () => table.take(lease, limit, leaseMs)),
    renew: (id, lease, leaseMs) => link.send('renew a task', async () => table.renew(id, lease, leaseMs)),
    find: (id, accountId) => link.send('find a task', async () => table.find(id, accountId)),
    move: (id, from, to, changes = {}) => {
      // What the statement says is fixed when it is sent.
      const sent = changes.attempts === undefined ? changes : { ...changes, attempts: [...changes.attempts] };
      return link.send('move a task', async () => table.move(id, from, to, sent));
    },
    end: async (transaction: Orm, task, from, state, changes) => table.end(transaction, task, from, state, changes),
    remove: (id, accountId) => link.send('delete a task', async () => table.remove(id, accountId)),
    deleteOld: (olderThanMs) => link.send('forget tasks', async () => table.deleteOld(olderThanMs)),
  };
}
