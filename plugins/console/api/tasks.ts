/** Images and videos that are made in the background: a client's own, and everybody's for operators. */
import { createRoute, z } from '@hono/zod-openapi';
import type { TaskDesk, TaskView } from '../../../core/desk.ts';
import { moneyDesk, taskDesk } from '../desks.ts';
import { csvAnswer } from './csv.ts';
import { type Ask, audited, type Console, need, nothingHere, ownAccount, router } from './router.ts';
import {
  answers,
  answersCsv,
  asked,
  done,
  id,
  instant,
  iso,
  isoOrNull,
  listed,
  pageAsked,
  pageOf,
  usd,
  usdOrNull,
} from './words.ts';

const states = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const;
const kinds = ['image', 'video'] as const;

const told = {
  id: z.string(),
  requestId: z.string(),
  kind: z.enum(kinds),
  model: z.string(),
  state: z.enum(states),
  progress: z.number(),
  prompt: z.string(),
  createdAt: instant,
  completedAt: instant.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  results: z.array(z.object({ url: z.string(), mediaType: z.string() })),
  cancellable: z.boolean(),
};
const taskRow = z.object(told).openapi('Task');
export const operatorTaskRow = z.object({ ...told, accountId: z.string() }).openapi('OperatorTask');

export function tellTask(view: TaskView): z.infer<typeof taskRow> {
  const { id, requestId, kind, model, state, progress, prompt, cancellable } = view;
  return {
    id,
    requestId,
    kind,
    model,
    state,
    progress,
    prompt,
    cancellable,
    createdAt: iso(view.createdAt),
    completedAt: isoOrNull(view.completedAt),
    error: view.error === undefined ? null : { ...view.error },
    results: view.results.map(({ url, mediaType }) => ({ url, mediaType })),
  };
}
export const tellOperatorTask = (view: TaskView) => ({ ...tellTask(view), accountId: view.accountId });

export const tasksAsked = pageAsked.extend({
  kind: z.enum(kinds).optional(),
  state: z.union([z.enum(states), z.array(z.enum(states))]).optional(),
});
const oneAsked = z.object({ id });

/** What the desk is asked, as far as the query says it. */
export function taskFilter(
  { kind, state }: Pick<z.output<typeof tasksAsked>, 'kind' | 'state'>,
  accountId: string | undefined,
) {
  const states = state === undefined ? undefined : Array.isArray(state) ? state : [state];
  return { accountId, kind, states };
}
/** Result addresses are made for the host that the browser reached. */
export const hostOf = (ask: Ask) => new URL(ask.env.origin).host;

/** Cells of a task that client and operator are told alike. What was made stands behind addresses that expire: it is counted. */
export const taskCells = ['kind', 'model', 'state', 'progress', 'prompt', 'errorCode', 'error', 'results'] as const;
type TaskColumn = 'id' | 'requestId' | 'accountId' | 'createdAt' | 'completedAt' | (typeof taskCells)[number];

/** Every task that the filter finds, as CSV. */
export function csvOfTasks(
  hall: Console,
  ask: Ask,
  columns: readonly TaskColumn[],
  filter: Parameters<TaskDesk['list']>[0],
): Response {
  const desk = need(hall, taskDesk);
  const host = hostOf(ask);
  return csvAnswer('tasks', columns, async (page) => listed(await desk.list(filter, page, host), cellsOf));
}

function cellsOf(view: TaskView) {
  const { error, results, ...cells } = tellOperatorTask(view);
  return { ...cells, errorCode: error?.code, error: error?.message, results: results.length };
}

const list = createRoute({
  method: 'get',
  path: '/tasks',
  summary: 'Own tasks',
  request: { query: tasksAsked },
  responses: answers(pageOf(taskRow)),
});
const csv = createRoute({
  method: 'get',
  path: '/tasks.csv',
  summary: 'Own tasks as CSV',
  request: { query: tasksAsked.omit({ limit: true, after: true }) },
  responses: answersCsv,
});
const one = createRoute({
  method: 'get',
  path: '/tasks/{id}',
  summary: 'One own task, with what it cost',
  request: { params: oneAsked },
  responses: answers(taskRow.extend({ cost: usd.nullable() })),
});
const cancel = createRoute({
  method: 'delete',
  path: '/tasks/{id}',
  summary: 'Cancel a task that has not begun',
  request: { params: oneAsked },
  responses: answers(done),
});

export function taskRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      const filter = taskFilter(query, await ownAccount(hall, ask));
      const { rows, next } = await need(hall, taskDesk).list(filter, asked(query), hostOf(ask));
      return ask.json({ rows: rows.map(tellTask), next: next ?? null }, 200);
    })
    .openapi(csv, async (ask) => {
      const filter = taskFilter(ask.req.valid('query'), await ownAccount(hall, ask));
      return csvOfTasks(hall, ask, ['createdAt', 'completedAt', 'id', 'requestId', ...taskCells], filter);
    })
    .openapi(one, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const task = await need(hall, taskDesk).find(ask.req.valid('param').id, accountId, hostOf(ask));
      if (task === undefined) throw nothingHere('task');
      const charge = await hall.find(moneyDesk)?.charge(task.requestId, accountId);
      return ask.json({ ...tellTask(task), cost: usdOrNull(charge?.cost) }, 200);
    })
    .openapi(cancel, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const taskId = ask.req.valid('param').id;
      await audited(hall, ask, { action: 'task.cancel', subject: taskId }, () =>
        need(hall, taskDesk).cancel(taskId, accountId, ask.req.raw.signal),
      );
      return ask.json({ ok: true } as const, 200);
    });
}
