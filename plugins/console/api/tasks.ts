/** Images and videos made in the background: a client's own tasks, and those of all accounts for operators. */

import { z } from '@hono/zod-openapi';
import { type TaskAdmin, type TaskView, taskStates } from '../../common/domain/admin/tasks.ts';
import { ledgerQueries, taskAdmin } from '../services.ts';
import { csvAnswer } from './csv/answer.ts';
import { type ConsoleServices, need, nothingHere, ownAccount, type RequestContext } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, answersCsv, done, id, instant, listed, pageOf, pageQuery, usd, writerOf } from './schemas.ts';

const kinds = ['image', 'video'] as const;

const taskFields = {
  id: z.string(),
  requestId: z.string(),
  kind: z.enum(kinds),
  model: z.string(),
  state: z.enum(taskStates),
  progress: z.number(),
  prompt: z.string(),
  createdAt: instant,
  completedAt: instant.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  results: z.array(
    z.object({
      url: z.string().nullable().describe('null: it has expired.'),
      mediaType: z.string(),
      expiresAt: instant.nullable(),
    }),
  ),
  cancellable: z.boolean(),
};
const taskRow = z.object(taskFields).openapi('Task');
export const operatorTaskRow = z.object({ ...taskFields, accountId: z.string() }).openapi('OperatorTask');

export const operatorTaskJson = writerOf(operatorTaskRow);

export const tasksQuery = pageQuery.extend({
  kind: z.enum(kinds).optional(),
  state: z.union([z.enum(taskStates), z.array(z.enum(taskStates))]).optional(),
});
const idParams = z.object({ id });

/** The filter that a query states. */
export function taskFilter(
  { kind, state }: Pick<z.output<typeof tasksQuery>, 'kind' | 'state'>,
  accountId: string | undefined,
) {
  const states = state === undefined ? undefined : Array.isArray(state) ? state : [state];
  return { accountId, kind, states };
}
/** Result addresses are made for the host that the browser reached. */
export const hostOf = (c: RequestContext) => new URL(c.env.origin).host;

/** CSV cells of a task, the same for clients and operators. Results have addresses that expire, so they are only counted. */
export const taskCells = ['kind', 'model', 'state', 'progress', 'prompt', 'errorCode', 'error', 'results'] as const;
type TaskColumn = 'id' | 'requestId' | 'accountId' | 'createdAt' | 'completedAt' | (typeof taskCells)[number];

/** Every task that the filter finds, as CSV. */
export function csvOfTasks(
  services: ConsoleServices,
  c: RequestContext,
  columns: readonly TaskColumn[],
  filter: Parameters<TaskAdmin['list']>[0],
): Response {
  const tasks = need(services, taskAdmin);
  const host = hostOf(c);
  return csvAnswer('tasks', columns, async (page) => listed(await tasks.list(filter, page, host), cellsOf));
}

function cellsOf(view: TaskView) {
  const { error, results, ...cells } = operatorTaskJson(view);
  return { ...cells, errorCode: error?.code, error: error?.message, results: results.length };
}

const ownTask = taskRow.extend({ cost: usd.nullable().describe('null: nothing was charged (yet).') });
const ownTaskJson = writerOf(ownTask);
const list = route('get', '/tasks', 'Own tasks, each with what it cost', answers(pageOf(ownTask)), {
  query: tasksQuery,
});
const csv = route('get', '/tasks.csv', 'Own tasks as CSV', answersCsv, {
  query: tasksQuery.omit({ limit: true, after: true }),
});
const one = route('get', '/tasks/{id}', 'One own task, with what it cost', answers(ownTask), { params: idParams });
const cancel = route('delete', '/tasks/{id}', 'Cancel a task that has not begun', answers(done), { params: idParams });

export function taskRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, ownTaskJson, async ({ query, c }, page) => {
      const accountId = await ownAccount(services, c);
      const { rows, next } = await need(services, taskAdmin).list(taskFilter(query, accountId), page, hostOf(c));
      const ids = rows.map(({ requestId }) => requestId);
      const charges = (await services.find(ledgerQueries)?.chargesOf(ids, accountId)) ?? [];
      const costs = new Map(charges.map(({ requestId, cost }) => [requestId, cost]));
      return { rows: rows.map((row) => ({ ...row, cost: costs.get(row.requestId) })), next };
    })
    .file(csv, async ({ query, c }) => {
      const filter = taskFilter(query, await ownAccount(services, c));
      return csvOfTasks(services, c, ['createdAt', 'completedAt', 'id', 'requestId', ...taskCells], filter);
    })
    .read(one, async ({ param: { id }, c }) => {
      const accountId = await ownAccount(services, c);
      const task = await need(services, taskAdmin).find(id, accountId, hostOf(c));
      if (task === undefined) throw nothingHere('task');
      const charge = await services.find(ledgerQueries)?.charge(task.requestId, accountId);
      return ownTaskJson({ ...task, cost: charge?.cost });
    })
    .action(cancel, async ({ param: { id: subject }, c }) => {
      const accountId = await ownAccount(services, c);
      const run = () => need(services, taskAdmin).cancel(subject, accountId, c.req.raw.signal);
      return { action: 'task.cancel', subject, run };
    });
}
