/** The configurations that were applied: list, difference, and the way back. */

import { z } from '@hono/zod-openapi';
import { type FileDifference, type KeptVersion, sources } from '../../config-history/history.ts';
import { configFiles } from '../../services.ts';
import { withoutSecrets } from '../config-secrets.ts';
import { actorOf, type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instant, iso, takes } from '../schemas.ts';
import { check, checkJson, recorded } from './config.ts';

const number = z.coerce.number().int().positive();
const path = z.string().min(1).max(1_000);
const version = z
  .object({
    version: z.number(),
    at: instant,
    source: z.enum(sources),
    actor: z.string().nullable().describe('Who saved or restored it; null: no person of the console.'),
    reason: z.string().nullable(),
    node: z.string().describe('The machine that applied it first.'),
    changed: z.array(z.string()).describe('Files with another text than in the version before.'),
    files: z.array(z.object({ path, bytes: z.number() })),
  })
  .openapi('ConfigVersion');
type VersionRow = z.infer<typeof version>;
const differences = z.array(
  z.object({
    path,
    before: z.string().nullable().describe('null: the first side has no such file.'),
    after: z.string().nullable(),
  }),
);

const list = route(
  'get',
  '/admin/config/history',
  'The configurations that were applied, newest first',
  answers(
    z.object({
      rows: z.array(version),
      running: z.number().nullable().describe('The version that runs; null: it is not recorded yet.'),
    }),
  ),
);
const difference = route(
  'get',
  '/admin/config/history/difference',
  'What differs between two applied configurations; secrets are masked for auditors',
  answers(z.object({ files: differences })),
  {
    query: z.object({
      from: number.optional().describe('What runs, if absent.'),
      to: number.optional().describe('What runs, if absent.'),
    }),
  },
);
const one = z.object({ version: number });
const only = z.array(path).max(200).optional().describe('Only these files of the version.');
const plan = route(
  'post',
  '/admin/config/history/{version}/check',
  'What restoring a configuration would change and what its check finds; nothing changes',
  answers(z.object({ check, files: differences, state: z.string() })),
  { params: one, body: takes(z.strictObject({ files: only })) },
);
const restore = route(
  'post',
  '/admin/config/history/{version}/restore',
  'Check the files of a configuration, write those that differ, and apply them at once',
  answers(check),
  {
    params: one,
    body: takes(
      z.strictObject({
        files: only,
        state: z
          .string()
          .max(100)
          .optional()
          .describe('As the check gave it; a conflict where a file has changed since.'),
        reason: z.string().trim().max(500).optional(),
      }),
    ),
  },
);

export function configHistoryRoutes(services: ConsoleServices) {
  const history = () => {
    need(services, configFiles);
    return services.history;
  };
  return new Routes(services)
    .read(list, async () => {
      const { versions, running } = await history().list();
      return {
        rows: versions.map((kept, index): VersionRow => versionJson(kept, versions[index + 1])),
        running: running ?? null,
      };
    })
    .read(difference, async ({ c, query: { from, to } }) => {
      const masked = actorOf(c).role !== 'operator';
      return { files: differencesJson(await history().differences(from, to), masked) };
    })
    .read(plan, async ({ param, json: { files } }) => {
      const { check, differences, state } = await history().plan(param.version, files);
      return { check: checkJson(check), files: differencesJson(differences, false), state };
    })
    .action(restore, ({ c, param, json: { files, state, reason } }) => ({
      action: 'config.restore',
      subject: `version ${param.version}${files === undefined ? '' : `: ${files.join(', ')}`}`,
      reason,
      run: (auditId) =>
        recorded(services, { source: 'restore', actor: actorOf(c).label, reason, auditId }, () =>
          history().restore(param.version, state, files),
        ),
    }));
}

function versionJson(kept: KeptVersion, before: KeptVersion | undefined): VersionRow {
  const { version, at, source, actor, reason, node, files } = kept;
  const digestIn = (of: KeptVersion | undefined, path: string) => of?.files.find((one) => one.path === path)?.digest;
  const paths = before === undefined ? [] : [...new Set([...files, ...before.files].map(({ path }) => path))];
  return {
    ...{ version, source, node },
    at: iso(at),
    actor: actor ?? null,
    reason: reason ?? null,
    changed: paths.filter((path) => digestIn(kept, path) !== digestIn(before, path)),
    files: files.map(({ path, bytes }) => ({ path, bytes })),
  };
}

function differencesJson(files: readonly FileDifference[], masked: boolean): z.infer<typeof differences> {
  const shown = (text: string | undefined) => (text === undefined ? null : masked ? withoutSecrets(text) : text);
  return files.map(({ path, before, after }) => ({ path, before: shown(before), after: shown(after) }));
}
