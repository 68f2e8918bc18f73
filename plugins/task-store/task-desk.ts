/** The task desk: tasks of one account or of all, as the console shows and cancels them, by the rules of the endpoints. */
import { type SQL, sql } from 'drizzle-orm';
import type { PageAsk, TaskDesk, TaskView } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { cursorIn, pageOf, rowsFor } from '../../core/paging.ts';
import { Queries } from './queries.ts';
import type { StoredTask } from './rows.ts';
import { jsonOf, rowsOf } from './sql.ts';
import { type Row, taskOf, toldColumns } from './sql-rows.ts';
import { targetOf } from './targets.ts';
import type { Tools } from './tools.ts';
import { statesNamed, viewOf } from './view.ts';

const idForm = /^task_[0-9a-f]{32}$/;

export function openTaskDesk(tools: Tools): TaskDesk {
  const queries = new Queries(tools);
  const find = async (id: string, accountId: string | undefined) =>
    idForm.test(id) ? await tools.rows.find(id, accountId) : undefined;
  return {
    list: async (filter, page, host) => {
      const rows = await readPage(tools, filter, page);
      return pageOf(
        rows,
        page,
        ({ id }) => id,
        (task) => shown(task, tools, host),
      );
    },
    find: async (id, accountId, host) => {
      const task = await find(id, accountId);
      return task && shown(task, tools, host);
    },
    cancel: async (id, accountId, signal) => {
      const task = await find(id, accountId);
      if (task === undefined)
        throw new GatewayError('not_found', 'There is no task of this id.', { code: 'task_not_found' });
      await queries.takeBack(task, signal);
    },
  };
}

/** Newest first. */
async function readPage(
  { store }: Tools,
  { accountId, kind, states }: Parameters<TaskDesk['list']>[0],
  page: PageAsk,
): Promise<StoredTask[]> {
  const limit = rowsFor(page);
  const after = cursorIn(page, idForm);
  const table = sql`${sql.identifier(store.schema)}.${sql.identifier('tasks')}`;
  const owned = accountId === undefined ? sql`true` : sql`account_id = ${accountId}`;
  const conditions = [owned];
  if (kind !== undefined) conditions.push(sql`kind = ${kind}`);
  if (states !== undefined) conditions.push(anyOf(states));
  if (after !== undefined)
    conditions.push(
      sql`(created_at, id) < (select created_at, id from ${table} as last where last.id = ${after} and ${owned})`,
    );
  const rows = await rowsOf<Row>(
    store.orm,
    sql`select ${toldColumns} from ${table} as taken where ${sql.join(conditions, sql` and `)}
        order by taken.created_at desc, taken.id desc limit ${limit}::int`,
  );
  return rows.map(taskOf);
}

/** Rows in one of these states, as they are shown: what has expired is stored as failed. */
function anyOf(states: readonly TaskView['state'][]): SQL {
  const isExpired = sql`error->>'code' is not distinct from 'expired'`;
  const stored = states.flatMap((state) => statesNamed(state) ?? []);
  const lasting = sql`(state in (select value from json_array_elements_text(${jsonOf(stored)})) and not ${isExpired})`;
  return states.includes('expired') ? sql`(${isExpired} or ${lasting})` : lasting;
}

function shown(task: StoredTask, tools: Tools, host: string | undefined): TaskView {
  const { id, kind, model, state, progress, createdAtMs, completedAtMs, error, results, order } = viewOf(
    task,
    tools.files,
    host,
  );
  return {
    id,
    requestId: task.requestId,
    accountId: task.accountId,
    kind,
    model,
    state,
    progress,
    prompt: order.prompt,
    createdAt: createdAtMs,
    completedAt: completedAtMs,
    error,
    results: results.map(({ url, mediaType }) => ({ url, mediaType })),
    cancellable: mayEnd(task, tools),
  };
}

/** Whether it is worth trying: nobody has begun, or the vendor that has begun can take it back. */
function mayEnd(task: StoredTask, { catalog, providers, adapters }: Tools): boolean {
  const last = task.attempts.at(-1);
  if (task.state === 'queued') return true;
  // Between two tries nothing is under way.
  if (task.state === 'creating') return last?.result !== 'running';
  if (task.state !== 'running' || last === undefined || task.vendorId === undefined) return false;
  return targetOf(last, catalog.find(task.model), providers, adapters)?.adapter.tasks?.cancel !== undefined;
}
