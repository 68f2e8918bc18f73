/** Saved views of the person who asks: filters of a page under a name. */
import { z } from '@hono/zod-openapi';
import { actorOf, type ConsoleServices } from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import { answers, done, takes } from '../api/schemas.ts';

const page = z
  .string()
  .regex(/^\/[a-z0-9/-]{0,80}$/, 'must be the path of a page below /console')
  .describe("The page's path below /console, such as /admin/requests.");
const name = z.string().trim().min(1).max(60);
const view = z.object({ name: z.string(), query: z.string() }).openapi('SavedView');

const list = route('get', '/views', 'Own saved views of a page', answers(z.object({ rows: z.array(view) })), {
  query: z.object({ page }),
});
const save = route(
  'post',
  '/views',
  'Save the filters of a page under a name, at most 50 of all pages',
  answers(done),
  {
    body: takes(
      z.strictObject({
        page,
        name,
        query: z
          .string()
          .max(1_000)
          .regex(/^[\x21-\x7e]*$/, 'must be written as in an address')
          .describe("The page's address behind the question mark."),
      }),
    ),
  },
);
const remove = route('post', '/views/delete', 'Delete an own saved view', answers(done), {
  body: takes(z.strictObject({ page, name })),
});

export function viewRoutes(services: ConsoleServices) {
  const { views } = services;
  return new Routes(services)
    .read(list, async ({ query, c }) => ({ rows: [...(await views.list(actorOf(c).id, query.page))] }))
    .read(save, async ({ json: { page: ofPage, ...saved }, c }) => {
      await views.save(actorOf(c).id, ofPage, saved);
      return { ok: true } as const;
    })
    .read(remove, async ({ json, c }) => {
      await views.remove(actorOf(c).id, json.page, json.name);
      return { ok: true } as const;
    });
}
