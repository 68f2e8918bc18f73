/** The gateway's own file: looked at, checked, saved, read again. */
import { createRoute, z } from '@hono/zod-openapi';
import type { ConfigCheck } from '../../../core/desk.ts';
import { configDesk } from '../desks.ts';
import { withoutSecrets } from './config-secrets.ts';
import { actorOf, audited, type Console, need, router } from './router.ts';
import { answers, instant, iso, takes } from './words.ts';

const check = z
  .object({
    problems: z.array(z.object({ where: z.string(), message: z.string() })),
    notices: z.array(z.object({ level: z.enum(['info', 'warning']), text: z.string() })),
    changes: z.array(z.object({ section: z.string(), restart: z.boolean() })),
  })
  .openapi('ConfigCheck');
const text = z.string().max(900_000);
const file = z.string().min(1).max(1_000).describe('The name of a file that `GET /admin/config` lists.');

const view = createRoute({
  method: 'get',
  path: '/admin/config',
  summary: 'The files that this gateway was read from',
  responses: answers(
    z.object({
      files: z.array(z.object({ name: z.string(), text: z.string(), writable: z.boolean() })),
      schema: z.record(z.string(), z.unknown()).describe('JSON Schema of a gateway file.'),
      loadedAt: instant,
      generation: z.number(),
    }),
  ),
});
const checkText = createRoute({
  method: 'post',
  path: '/admin/config/check',
  summary: "What a file's new text would mean; nothing changes",
  request: { body: takes(z.strictObject({ file, text })) },
  responses: answers(check),
});
const save = createRoute({
  method: 'post',
  path: '/admin/config/save',
  summary: 'Check a file, write it, and take it up at once',
  request: {
    body: takes(
      z.strictObject({
        file,
        text,
        previous: text.describe('The text that was edited; a conflict where the file has changed meanwhile.'),
        reason: z.string().trim().max(500).optional(),
      }),
    ),
  },
  responses: answers(check),
});
const reload = createRoute({
  method: 'post',
  path: '/admin/config/reload',
  summary: 'Read the files again',
  responses: answers(check),
});

export function configRoutes(hall: Console) {
  return router()
    .openapi(view, async (ask) => {
      const { files, schema, loadedAt, generation } = await need(hall, configDesk).view();
      // Auditors look at how things are set, never at what opens doors.
      const masked = actorOf(ask).role !== 'operator';
      const told = files.map(({ name, text, writable }) => ({
        name,
        text: masked ? withoutSecrets(text) : text,
        writable: writable && !masked,
      }));
      return ask.json(
        { files: told, schema: schema as Record<string, unknown>, loadedAt: iso(loadedAt), generation },
        200,
      );
    })
    .openapi(checkText, async (ask) => {
      const { file, text } = ask.req.valid('json');
      return ask.json(tellCheck(await need(hall, configDesk).check(file, text)), 200);
    })
    .openapi(save, async (ask) => {
      const { file, text, previous, reason } = ask.req.valid('json');
      const told = await audited(hall, ask, { action: 'config.save', subject: file, reason }, () =>
        need(hall, configDesk).save(file, text, previous),
      );
      return ask.json(tellCheck(told), 200);
    })
    .openapi(reload, async (ask) => {
      const told = await audited(hall, ask, { action: 'config.reload', subject: 'every file' }, () =>
        need(hall, configDesk).reload(),
      );
      return ask.json(tellCheck(told), 200);
    });
}

function tellCheck({ problems, notices, changes }: ConfigCheck): z.infer<typeof check> {
  return {
    problems: problems.map(({ where, message }) => ({ where, message })),
    notices: notices.map(({ level, text }) => ({ level, text })),
    changes: changes.map(({ section, restart }) => ({ section, restart })),
  };
}
