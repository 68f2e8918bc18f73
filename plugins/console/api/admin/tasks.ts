/** Images and videos made in the background, of all accounts. */
import { z } from '@hono/zod-openapi';
import { taskAdmin } from '../../services.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, answersCsv, done, id, pageOf, reasonInput, takes } from '../schemas.ts';
import { csvOfTasks, hostOf, operatorTaskJson, operatorTaskRow, taskCells, taskFilter, tasksQuery } from '../tasks.ts';

const tasksOfAll = tasksQuery.extend({ accountId: id.optional() });

const tasks = route('get', '/admin/tasks', 'The tasks of all accounts', answers(pageOf(operatorTaskRow)), {
  query: tasksOfAll,
});
const tasksCsv = route('get', '/admin/tasks.csv', 'The tasks of all accounts as CSV', answersCsv, {
  query: tasksOfAll.omit({ limit: true, after: true }),
});
const cancelTask = route('delete', '/admin/tasks/{id}', 'Cancel a task that has not begun', answers(done), {
  params: z.object({ id }),
  body: takes(z.strictObject({ reason: reasonInput })),
});

export function operatorTaskRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(tasks, operatorTaskJson, ({ query, c }, page) =>
      need(services, taskAdmin).list(taskFilter(query, query.accountId), page, hostOf(c)),
    )
    .file(tasksCsv, ({ query, c }) => {
      const columns = ['createdAt', 'completedAt', 'id', 'requestId', 'accountId', ...taskCells] as const;
      return csvOfTasks(services, c, columns, taskFilter(query, query.accountId));
    })
    .action(cancelTask, async ({ param: { id: subject }, json: { reason }, c }) => ({
      action: 'task.cancel',
      subject,
      reason,
      accountId: (await need(services, taskAdmin).find(subject, undefined, undefined))?.accountId,
      run: () => need(services, taskAdmin).cancel(subject, undefined, c.req.raw.signal),
    }));
}
