/**
 * The tables of tasks in memory mean what the real ones do: the same random histories of orders, leases, moves and ends, on
 * them and on the embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers and leave the same rows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { Attempt } from '../../plugins/common/domain/calls.ts';
import type { Orm } from '../../plugins/common/domain/database.ts';
import type { Order } from '../../plugins/common/media/adapters.ts';
import type { Changes, From, NewTask, OpenState, StoredTask, TaskRows } from '../../plugins/task-store/engine/rows.ts';
import { SqlTaskRows } from '../../plugins/task-store/engine/sql-rows.ts';
import { openDatabase, type TestDatabase } from '../helpers/database.ts';
import { Chance } from './chance.ts';
import { memoryTasks, TaskTable } from './memory-tasks.ts';
import { runnerOf, type Transaction } from './memory-undo.ts';

const hourMs = 3_600_000;
const openStates = ['queued', 'creating', 'reconciling', 'running', 'copying'] as const;
const finalStates = ['completed', 'failed', 'cancelled'] as const;
const leases = ['one', 'two', 'three'] as const;

/** Rows, and transactions of them that may be taken back. */
interface Side {
  readonly rows: TaskRows;
  transact<T>(work: (transaction: Orm) => Promise<T>): Promise<T>;
}
type Step = (side: Side) => Promise<unknown>;

function memorySide(table: TaskTable): Side {
  const rows = memoryTasks(table, { send: <T>(_name: string, run: () => Promise<T>) => run() });
  return {
    rows,
    async transact(work) {
      const transaction: Transaction = { undo: [], commits: [] };
      try {
        return await work(runnerOf(transaction));
      } catch (error) {
        for (const undo of transaction.undo.reverse()) undo();
        throw error;
      }
    },
  };
}

function realSide(database: TestDatabase): Side {
  return { rows: new SqlTaskRows(database), transact: (work) => database.orm.transaction((own) => work(own as Orm)) };
}

/** Reduces members that depend on each side's speed to their meaning; and nothing that JSON would leave out. */
function plain(task: StoredTask | undefined): unknown {
  if (task === undefined) return undefined;
  const { createdAtMs: _, updatedAtMs, completedAtMs, leftMs, ...reported } = task;
  const times = { isLate: leftMs <= 0, isWritten: updatedAtMs > 0, hasEnded: completedAtMs !== undefined };
  return JSON.parse(JSON.stringify({ ...reported, ...times }));
}

const accountOf = (task: number) => (task % 2 === 0 ? 'alice' : 'bob');

const refused = async (work: Promise<unknown>) => work.catch(() => 'refused');
const takenBack = new Error('taken back');

class Script {
  readonly #chance: Chance;
  readonly #ids: string[] = [];
  #count = 0;

  constructor(seed: number) {
    this.#chance = new Chance(seed);
  }

  next(): Step {
    const chance = this.#chance;
    const deeds = [this.#insert, this.#take, this.#renew, this.#find, this.#move, this.#move, this.#move, this.#end];
    const deed = this.#ids.length === 0 ? this.#insert : chance.oneIn(25) ? this.#forget : chance.pick(deeds);
    return deed.call(this);
  }

  #insert(): Step {
    const chance = this.#chance;
    this.#count += 1;
    const again = this.#ids.length > 0 && chance.oneIn(10);
    const id = again ? chance.pick(this.#ids) : `task_${this.#count}`;
    // Another task of the same request is refused too.
    const request = chance.oneIn(20) ? 1 : this.#count;
    const task: NewTask = {
      id,
      requestId: `01a3185c-0000-7000-8000-${String(request).padStart(12, '0')}`,
      // Ids and requests are those of one account.
      accountId: accountOf(again ? Number(id.slice('task_'.length)) : request),
      keyId: 'key',
      order: this.#order(),
      callbackUrl: chance.oneIn(2) ? `http://127.0.0.1/${this.#count}` : undefined,
      deadlineMs: chance.pick([0, hourMs]),
      ...(chance.oneIn(4) ? { lease: { token: chance.pick(leases), forMs: chance.pick([0, hourMs]) } } : {}),
    };
    const isKept = !chance.oneIn(6);
    if (isKept && !again && request === this.#count) this.#ids.push(id);
    return (side) => refused(side.transact(async (own) => side.rows.insert(own, task).then(() => keep(isKept))));
  }

  #order(): Order {
    const chance = this.#chance;
    const source = { url: 'http://127.0.0.1/shown' };
    const references = chance.oneIn(2) ? [{ role: 'image' as const, field: 'image', source }] : [];
    const kind = chance.pick(['image', 'video'] as const);
    return { kind, model: 'painter', prompt: `order ${this.#count}`, count: 1, references, extra: {} };
  }

  #take(): Step {
    const [lease, limit] = [this.#chance.pick(leases), this.#chance.pick([1, 2, 10])];
    const leaseMs = this.#chance.pick([0, hourMs]);
    const byId = (left: StoredTask, right: StoredTask) => (left.id < right.id ? -1 : 1);
    return async ({ rows }) => (await rows.take(lease, limit, leaseMs)).sort(byId).map(plain);
  }

  #renew(): Step {
    const [id, lease, leaseMs] = [this.#id(), this.#chance.pick(leases), this.#chance.pick([0, hourMs])];
    return ({ rows }) => rows.renew(id, lease, leaseMs);
  }

  #find(): Step {
    const [id, account] = [this.#id(), this.#chance.pick([undefined, 'alice', 'bob'])];
    return async ({ rows }) => plain(await rows.find(id, account));
  }

  #move(): Step {
    const chance = this.#chance;
    const [id, from, changes] = [this.#id(), this.#from(), this.#changes()];
    const state: OpenState = chance.pick(openStates);
    const to = { state, dueMs: chance.pick([0, 0, hourMs]), ...(chance.oneIn(3) ? { keepLease: true as const } : {}) };
    return ({ rows }) => (changes === undefined ? rows.move(id, from, to) : rows.move(id, from, to, changes));
  }

  #end(): Step {
    const chance = this.#chance;
    const [id, from, state] = [this.#id(), this.#from(), chance.pick(finalStates)];
    const changes = this.#changes() ?? {};
    const callbackUrl = chance.oneIn(2) ? 'http://127.0.0.1/callback' : undefined;
    const isKept = !chance.oneIn(4);
    return (side) =>
      refused(
        side.transact(async (own) => {
          const ended = await side.rows.end(own, { id, callbackUrl }, from, state, changes);
          keep(isKept);
          return ended;
        }),
      );
  }

  #forget(): Step {
    if (this.#chance.oneIn(2)) {
      const [id, accountId] = [this.#id(), this.#chance.pick(['alice', 'bob'])];
      return ({ rows }) => rows.remove(id, accountId);
    }
    const olderThanMs = this.#chance.pick([0, hourMs]);
    return ({ rows }) => rows.deleteOld(olderThanMs);
  }

  #id(): string {
    return this.#chance.pick(this.#ids.slice(-5));
  }

  #from(): From {
    const chance = this.#chance;
    const states = chance.oneIn(2) ? openStates : [chance.pick(openStates), chance.pick(openStates)];
    const lease = chance.pick(leases);
    return { states, by: chance.pick([{ lease }, { departure: chance.below(3) }, 'any', 'any'] as const) };
  }

  #changes(): Changes | undefined {
    const chance = this.#chance;
    if (chance.oneIn(4)) return undefined;
    return {
      ...(chance.oneIn(2) ? { attempts: this.#attempts() } : {}),
      ...(chance.oneIn(3) ? { progress: chance.fraction() * 100 } : {}),
      ...(chance.oneIn(3) ? { tries: chance.below(5) } : {}),
      ...(chance.oneIn(3) ? { vendorId: `vendor-${chance.below(5)}` } : {}),
      ...(chance.oneIn(3) ? { made: { usage: { image: 1 }, estimated: false, media: ['1k'] } } : {}),
      ...(chance.oneIn(3) ? { vendorFiles: [{ url: 'http://127.0.0.1/file', kind: 'image' as const }] } : {}),
      ...(chance.oneIn(3) ? { results: [{ id: `file-${chance.below(5)}`, mediaType: 'image/png' }] } : {}),
      ...(chance.oneIn(3) ? { error: { code: 'busy', message: 'Busy.' } } : {}),
    };
  }

  #attempts(): Attempt[] {
    const place = { provider: 'north', model: 'painter', credential: 'a', protocol: 'paint', startedAt: 1 };
    const open = { result: 'running' as const, status: undefined, durationMs: undefined, error: undefined };
    return Array.from({ length: this.#chance.below(3) }, (_, index) => ({ ...place, ...open, number: index + 1 }));
  }
}

function keep(isKept: boolean): void {
  if (!isKept) throw takenBack;
}

/** What is never announced: which process has it, until when, and whom its end was put down for. */
async function rowsIn({ orm, schema }: TestDatabase): Promise<unknown> {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const read = async (query: ReturnType<typeof sql>) => {
    const result: unknown = await orm.execute(query);
    return Array.isArray(result) ? [...result] : (result as { rows: unknown[] }).rows;
  };
  return {
    tasks: await read(sql`select id, key_id, departure::int as departure, lease, due_at is null as "isOver",
      coalesce(lease_until > now(), false) as "isLeased", coalesce(due_at <= now(), false) as "isDue"
      from ${table('tasks')} order by created_at`),
    callbacks: await read(sql`select task_id as id, url from ${table('task_callbacks')} order by task_id`),
  };
}

function rowsOf(table: TaskTable): unknown {
  const now = table.now();
  const ids = [...table.callbacks.keys()].sort();
  return {
    tasks: Array.from(table.tasks.values(), ({ id, keyId, departure, lease, leaseUntil, dueAt }) => ({
      ...{ id, key_id: keyId, departure, lease: lease ?? null, isOver: dueAt === undefined },
      ...{ isLeased: leaseUntil !== undefined && leaseUntil > now, isDue: dueAt !== undefined && dueAt <= now },
    })),
    callbacks: ids.map((id) => ({ id, url: table.callbacks.get(id) })),
  };
}

test('tasks in memory are leased, moved and ended as real ones', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase({ plugins: ['task-store'] });
    let now = 0;
    const table = new TaskTable(() => now);
    const [memory, real, script] = [memorySide(table), realSide(database), new Script(seed)];
    for (let step = 0; step < 150; step += 1) {
      // No two steps are at the same time, on either side.
      now += 2;
      await pause(2);
      const deed = script.next();
      assert.deepEqual(await deed(memory), await deed(real), `history ${seed}, step ${step}`);
      assert.deepEqual(rowsOf(table), await rowsIn(database), `rows of history ${seed}, step ${step}`);
    }
    await database.close();
  }
});
