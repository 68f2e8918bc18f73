/** The gateway's own files: view, check, save, reload. */

import { z } from '@hono/zod-openapi';
import type { ConfigCheck, ConfigNotice } from '../../../../core/contract/config-files.ts';
import { type Applied, digestOfAll } from '../../config-history/history.ts';
import { configFiles } from '../../services.ts';
import { withoutSecrets } from '../config-secrets.ts';
import { actorOf, type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instant, iso, takes } from '../schemas.ts';

const notices = z.array(
  z.object({
    level: z.enum(['info', 'warning']),
    text: z.string(),
    where: z.string().nullable().describe('File and line, such as `main.yaml:12`; null: not known.'),
  }),
);
export const check = z
  .object({
    problems: z.array(z.object({ where: z.string(), message: z.string() })),
    notices,
    changes: z.array(z.object({ section: z.string(), restart: z.boolean() })),
  })
  .openapi('ConfigCheck');
const text = z.string().max(900_000);
const file = z.string().min(1).max(1_000).describe('The name of a file that `GET /admin/config` lists.');

const view = route(
  'get',
  '/admin/config',
  'The files that this gateway was read from',
  answers(
    z.object({
      files: z.array(
        z.object({
          name: z.string(),
          text: z.string(),
          writable: z.boolean(),
          readOnly: z
            .enum(['shipped', 'mounted', 'data'])
            .nullable()
            .describe(
              'Why forms do not write it: an update replaces it, or this process may not write it or its data directory. null: they do.',
            ),
          includes: z.array(z.string()).describe('The files below it, each laid over those before it.'),
        }),
      ),
      schema: z.record(z.string(), z.unknown()).describe('JSON Schema of a gateway file.'),
      notices: notices.describe('What `check` prints of the configuration as it runs.'),
      loadedAt: instant,
      generation: z.number(),
    }),
  ),
);
const checkText = route(
  'post',
  '/admin/config/check',
  "What a file's new text would mean; nothing changes",
  answers(check),
  { body: takes(z.strictObject({ file, text })) },
);
const save = route('post', '/admin/config/save', 'Check a file, write it, and take it up at once', answers(check), {
  body: takes(
    z.strictObject({
      file,
      text,
      previous: text.describe('The text that was edited; a conflict where the file has changed meanwhile.'),
      reason: z.string().trim().max(500).optional(),
    }),
  ),
});
const reload = route('post', '/admin/config/reload', 'Read the files again', answers(check));

export function configRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(view, async ({ c }) => {
      const { files, schema, notices: said, loadedAt, generation } = await need(services, configFiles).view();
      // Auditors see the settings, never the secrets.
      const masked = actorOf(c).role !== 'operator';
      const shown = files.map(({ name, text, writable, readOnly, includes }) => ({
        name,
        readOnly: readOnly ?? null,
        includes: [...includes],
        text: masked ? withoutSecrets(text) : text,
        writable: writable && !masked,
      }));
      return {
        files: shown,
        schema: schema as Record<string, unknown>,
        notices: said.map(noticeJson),
        loadedAt: iso(loadedAt),
        generation,
      };
    })
    .read(checkText, async ({ json: { file, text } }) => checkJson(await need(services, configFiles).check(file, text)))
    .action(save, ({ c, json: { file, text, previous, reason } }) => ({
      action: 'config.save',
      subject: file,
      reason,
      run: (auditId) =>
        recorded(services, { source: 'save', actor: actorOf(c).label, reason, auditId }, () =>
          need(services, configFiles).save(file, text, previous),
        ),
    }))
    .action(reload, ({ c }) => ({
      action: 'config.reload',
      subject: 'every file',
      run: (auditId) =>
        recorded(services, { source: 'reload', actor: actorOf(c).label, auditId }, () =>
          need(services, configFiles).reload(),
        ),
    }));
}

/** Makes a change of the files, and keeps whom the applied texts are from. */
export async function recorded(
  services: ConsoleServices,
  who: Omit<Applied, 'texts'>,
  change: () => Promise<ConfigCheck>,
): Promise<z.infer<typeof check>> {
  const files = need(services, configFiles);
  const before = digestOfAll(files.running());
  const done = await change();
  const texts = files.running();
  if (digestOfAll(texts) !== before) await services.recorder.record({ ...who, texts });
  return checkJson(done);
}

export function checkJson({ problems, notices, changes }: ConfigCheck): z.infer<typeof check> {
  return {
    problems: problems.map(({ where, message }) => ({ where, message })),
    notices: notices.map(noticeJson),
    changes: changes.map(({ section, restart }) => ({ section, restart })),
  };
}

function noticeJson({ level, text, where }: ConfigNotice) {
  return { level, text, where: where ?? null };
}
