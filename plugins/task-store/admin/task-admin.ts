/** Task administration for the console: lists and cancels tasks of one account or of all, by the rules of the endpoints. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { PageRequest } from '../../common/domain/admin/pages.ts';
import type { TaskAdmin, TaskView } from '../../common/domain/admin/tasks.ts';
import { cursorIn, pageOf, rowsFor } from '../../common/kit/paging.ts';
import { jsonOf, rowsOf, tableOf } from '../../common/kit/sql.ts';
import type { Tools } from '../engine/dependencies.ts';
import type { StoredTask } from '../engine/rows.ts';
import { viewColumns } from '../engine/sql-rows.ts';
import { Queries } from '../orders/queries.ts';
import { targetOf } from '../orders/targets.ts';
import { shownState, statesNamed, viewOf } from '../orders/view.ts';

const idForm = /^task_[0-9a-f]{32}$/;

export function openTaskAdmin(tools: Tools): TaskAdmin {
  const queries = new Queries(tools);
  const find = async (id: string, accountId: string | undefined) =>
    idForm.test(id) ? await tools.rows.find(id, accountId) : undefined;
  return {
    list: async (filter, page, host) => {
      const rows = await readPage(tools, filter, page);
      const expiries = await expiriesOf(rows, tools);
      return pageOf(
        rows,
        page,
        ({ id }) => id,
        (task) => taskView(task, tools, expiries, host),
      );
    },
    statesOf: async (orders) => {
      if (orders.length === 0) return new Map();
      const pairs = orders.map(({ requestId, accountId }) => sql`(${accountId}::text, ${requestId}::text::uuid)`);
      const rows = await rowsOf<{ request: string; state: StoredTask['state']; code: string | null }>(
        tools.store.orm,
        sql`select request_id::text as request, state, error->>'code' as code from ${tableOf(tools.store, 'tasks')}
          where (account_id, request_id) in (${sql.join(pairs, sql`, `)})`,
      );
      return new Map(rows.map(({ request, state, code }) => [request, shownState(state, code ?? undefined)]));
    },
    find: async (id, accountId, host) => {
      const task = await find(id, accountId);
      return task && taskView(task, tools, await expiriesOf([task], tools), host);
    },
    cancel: async (id, accountId, signal) => {
      const task = await find(id, accountId);
      if (task === undefined)
        throw new GatewayError('not_found', 'There is no task of this id.', { code: 'task_not_found' });
      await queries.cancelTask(task, signal);
    },
  };
}

/** Newest first. */
async function readPage(
  { store }: Tools,
  { accountId, kind, states }: Parameters<TaskAdmin['list']>[0],
  page: PageRequest,
): Promise<StoredTask[]> {
  const limit = rowsFor(page);
  const after = cursorIn(page, idForm);
  const table = tableOf(store, 'tasks');
  const owned = accountId === undefined ? sql`true` : sql`account_id = ${accountId}`;
  const conditions = [owned];
  if (kind !== undefined) conditions.push(sql`kind = ${kind}`);
  if (states !== undefined) conditions.push(inStates(states));
  if (after !== undefined)
    conditions.push(
      sql`(created_at, id) < (select created_at, id from ${table} as last where last.id = ${after} and ${owned})`,
    );
  const rows = await rowsOf<never>(
    store.orm,
    sql`select ${viewColumns.select} from ${table} as taken where ${sql.join(conditions, sql` and `)}
        order by taken.created_at desc, taken.id desc limit ${limit}::int`,
  );
  return rows.map(viewColumns.read);
}

/** Rows in one of these states as they are shown: an expired task is stored as failed. */
function inStates(states: readonly TaskView['state'][]): SQL {
  const isExpired = sql`error->>'code' is not distinct from 'expired'`;
  const stored = states.flatMap((state) => statesNamed(state) ?? []);
  const lasting = sql`(state in (select value from json_array_elements_text(${jsonOf(stored)})) and not ${isExpired})`;
  return states.includes('expired') ? sql`(${isExpired} or ${lasting})` : lasting;
}

const expiriesOf = (tasks: readonly StoredTask[], { files }: Tools) =>
  files.expiries(tasks.flatMap(({ results }) => results.map(({ id }) => id)));

function taskView(
  task: StoredTask,
  tools: Tools,
  expiries: ReadonlyMap<string, number>,
  host: string | undefined,
): TaskView {
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
    results: results.map(({ url, mediaType }, index) => {
      const expiresAt = expiries.get(task.results[index]!.id);
      return { url: expiresAt === undefined ? undefined : url, mediaType, expiresAt };
    }),
    cancellable: canCancel(task, tools),
  };
}

/** Whether a cancellation can succeed: the task has not started, or its vendor can cancel it. */
function canCancel(task: StoredTask, { catalog, providers, adapters }: Tools): boolean {
  const last = task.attempts.at(-1);
  if (task.state === 'queued') return true;
  // Between two attempts nothing is in flight.
  if (task.state === 'creating') return last?.result !== 'running';
  if (task.state !== 'running' || last === undefined || task.vendorId === undefined) return false;
  return targetOf(last, catalog.find(task.model), providers, adapters)?.adapter.tasks?.cancel !== undefined;
}
