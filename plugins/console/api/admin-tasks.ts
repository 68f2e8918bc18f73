/** Everybody's images and videos that are made in the background. */
import { createRoute, z } from '@hono/zod-openapi';
import { taskDesk } from '../desks.ts';
import { audited, type Console, need, router } from './router.ts';
import { csvOfTasks, hostOf, operatorTaskRow, taskCells, taskFilter, tasksAsked, tellOperatorTask } from './tasks.ts';
import { answers, answersCsv, asked, done, id, listed, pageOf, reasonAsked, takes } from './words.ts';

const tasksOfAll = tasksAsked.extend({ accountId: id.optional() });

const tasks = createRoute({
  method: 'get',
  path: '/admin/tasks',
  summary: "Everybody's tasks",
  request: { query: tasksOfAll },
  responses: answers(pageOf(operatorTaskRow)),
});
const tasksCsv = createRoute({
  method: 'get',
  path: '/admin/tasks.csv',
  summary: "Everybody's tasks as CSV",
  request: { query: tasksOfAll.omit({ limit: true, after: true }) },
  responses: answersCsv,
});
const cancelTask = createRoute({
  method: 'delete',
  path: '/admin/tasks/{id}',
  summary: 'Cancel a task that has not begun',
  request: { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(done),
});

export function operatorTaskRoutes(hall: Console) {
  return router()
    .openapi(tasks, async (ask) => {
      const query = ask.req.valid('query');
      const filter = taskFilter(query, query.accountId);
      return ask.json(
        listed(await need(hall, taskDesk).list(filter, asked(query), hostOf(ask)), tellOperatorTask),
        200,
      );
    })
    .openapi(tasksCsv, (ask) => {
      const query = ask.req.valid('query');
      const columns = ['createdAt', 'completedAt', 'id', 'requestId', 'accountId', ...taskCells] as const;
      return csvOfTasks(hall, ask, columns, taskFilter(query, query.accountId));
    })
    .openapi(cancelTask, async (ask) => {
      const taskId = ask.req.valid('param').id;
      const { reason } = ask.req.valid('json');
      await audited(hall, ask, { action: 'task.cancel', subject: taskId, reason }, () =>
        need(hall, taskDesk).cancel(taskId, undefined, ask.req.raw.signal),
      );
      return ask.json({ ok: true } as const, 200);
    });
}
