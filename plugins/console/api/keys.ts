/** A client's own keys: made (shown once), changed, revoked. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import { imageAnswers } from '../../common/domain/accounts.ts';
import type { KeyTerms, KeyView } from '../../common/domain/admin/accounts.ts';
import { includes } from '../../common/domain/organizations/rights.ts';
import { capSpend } from '../../common/kit/money/cap-spend.ts';
import type { Membership } from '../people.ts';
import { accountAdmin, budgetAdmin, ledgerQueries } from '../services.ts';
import { projectInput } from './projects.ts';
import { changesBetween, changesOf } from './routing/audit-changes.ts';
import {
  actorOf,
  type ConsoleServices,
  has,
  membershipOf,
  need,
  ownAccount,
  type RequestContext,
  requireRight,
} from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import {
  answers,
  dayMs,
  hourMs,
  id,
  instant,
  instantInput,
  pageOf,
  pageQuery,
  takes,
  usd,
  usdInput,
  usdText,
  writerOf,
} from './schemas.ts';
import { moneyJson, spentIn } from './spend.ts';

const most = z.number().int().min(1).max(1_000_000_000);
const limits = z.strictObject({
  rpm: most.optional(),
  rpd: most.optional(),
  tpm: most.optional(),
  concurrency: most.optional(),
});
const every = z.enum(['day', 'week', 'month', 'ever']);

const replacedSecret = z.object({ prefix: z.string(), endsAt: instant });
/** The secret once, and until when the one before works. */
export const rotatedKey = z
  .object({
    id: z.string(),
    key: z.string(),
    prefix: z.string(),
    overlapEndsAt: instant.nullable().describe('null: the earlier secret has ended.'),
  })
  .openapi('RotatedKey');
export const overlapInput = z
  .number()
  .int()
  .min(0)
  .max(720)
  .describe('Hours for which the earlier secret works too; 0: it and all before it end at once.');

export const keyRow = z
  .object({
    id: z.string(),
    name: z.string(),
    project: z.string().nullable(),
    prefix: z.string(),
    models: z.array(z.string()).nullable().describe('null: every model of the plan.'),
    addresses: z.array(z.string()).nullable().describe('Addresses and ranges it may be used from; null: anywhere.'),
    limits: limits.nullable(),
    cap: z.object({ amount: usd, every }).nullable(),
    images: z.enum(imageAnswers).describe('What orders of images are answered with where the request does not say it.'),
    tags: z
      .array(z.string())
      .nullable()
      .describe(
        'What its calls are for: `team=search` on each, `env` with a value that requests say in x-gateway-tags.',
      ),
    regions: z.array(z.string()).nullable().describe('Regions in which its calls may be processed; null: anywhere.'),
    access: z
      .enum(['organization'])
      .nullable()
      .describe('organization: it administers the account below `/v1/organization/`, and calls nothing.'),
    person: z
      .string()
      .nullable()
      .describe("Id of the person that its calls are attributed to; null: it is a service's."),
    expiresAt: instant.nullable(),
    createdAt: instant,
    lastUsedAt: instant.nullable(),
    revokedAt: instant.nullable(),
    rotatedAt: instant.nullable().describe('When it got its secret; null: it has its first one.'),
    replaced: z.array(replacedSecret).describe('Earlier secrets that still work.'),
  })
  .openapi('Key');

/** As a form sends them. */
export const keyTerms = z
  .strictObject({
    name: z.string().trim().min(1).max(100),
    project: projectInput.nullish(),
    models: z.array(z.string().min(1).max(200)).min(1).max(1_000).nullish(),
    addresses: z.array(z.string().min(1).max(60)).min(1).max(100).nullish(),
    limits: limits.nullish(),
    cap: z.strictObject({ amount: usdInput, every }).nullish(),
    expiresAt: instantInput.nullish(),
    images: z.enum(imageAnswers).nullish(),
    tags: z.array(z.string().min(1).max(100)).max(8).nullish(),
    regions: z
      .array(z.string().min(1).max(32))
      .min(1)
      .max(20)
      .nullish()
      .describe('Regions in which its calls may be processed; null: anywhere; absent in a change: as before.'),
    access: z
      .enum(['organization'])
      .nullish()
      .describe('For a new key: it administers the account, and calls nothing.'),
  })
  .openapi('KeyTerms');

export const rotatedJson = writerOf(rotatedKey);
const writeKey = writerOf(keyRow);
export const keyJson = (view: KeyView) => writeKey({ ...view, images: view.images ?? 'task' });

const given = { name: true, project: true, models: true, addresses: true, limits: true, cap: true } as const;
const writeTerms = writerOf(keyRow.pick({ ...given, images: true, tags: true, regions: true, expiresAt: true }));
/** What the owner of a key chooses. */
const termsJson = (chosen: KeyTerms) => writeTerms({ ...chosen, images: chosen.images ?? 'task' });

interface OwnKey {
  readonly row: KeyView;
  readonly spent: string | undefined;
  readonly capSpent: string | undefined;
}
const ownKeyJson = ({ row, spent, capSpent }: OwnKey) => ({
  ...keyJson(row),
  spent30d: spent ?? null,
  capSpent: capSpent ?? null,
});

export function termsOf(body: z.output<typeof keyTerms>): KeyTerms {
  const { name, project, models, addresses, limits, cap, expiresAt, images, tags, regions, access } = body;
  return {
    name,
    project: project ?? undefined,
    models: models ?? undefined,
    addresses: addresses ?? undefined,
    // Through JSON, so that undefined members become absent ones.
    limits:
      limits === null || limits === undefined
        ? undefined
        : (JSON.parse(JSON.stringify(limits)) as NonNullable<KeyTerms['limits']>),
    cap: cap ?? undefined,
    expiresAt: expiresAt ?? undefined,
    images: images ?? undefined,
    tags: tags ?? undefined,
    regions: regions ?? undefined,
    access: access ?? undefined,
  };
}

const list = route(
  'get',
  '/keys',
  'Own keys',
  answers(
    pageOf(
      keyRow.extend({
        spent30d: usd.nullable().describe('Charges less refunds.'),
        capSpent: usd.nullable().describe('Charges of the running period of its cap; null: it has no cap.'),
      }),
    ),
  ),
  {
    query: pageQuery,
  },
);
const create = route(
  'post',
  '/keys',
  'Make a key; it is shown this once',
  answers(z.object({ id: z.string(), key: z.string(), prefix: z.string() })),
  { body: takes(keyTerms) },
);
const change = route(
  'patch',
  '/keys/{id}',
  'Change what a key may do; all of its terms are replaced',
  answers(keyRow),
  { params: z.object({ id }), body: takes(keyTerms) },
);
const rotate = route(
  'post',
  '/keys/{id}/rotate',
  'Give a key another secret, shown this once; all else of it stays',
  answers(rotatedKey),
  { params: z.object({ id }), body: takes(z.strictObject({ overlapHours: overlapInput })) },
);
const revoke = route('delete', '/keys/{id}', 'Revoke a key at once', answers(keyRow), { params: z.object({ id }) });

export function keyRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, ownKeyJson, async ({ c }, page) => {
      const accountId = await ownAccount(services, c);
      const person = (await has(services, c, 'allKeys')) ? undefined : actorOf(c).id;
      const { rows, next } = await need(services, accountAdmin).keys(accountId, page, person);
      const spent = await spentByKey(services, accountId);
      const capSpent = await capSpentByKey(services, accountId, rows);
      const shown = rows.map((row) => {
        const { id } = row;
        return { row, spent: spent && (spent.get(id) ?? '0.00'), capSpent: capSpent.get(id) };
      });
      return { rows: shown, next };
    })
    .action(create, async ({ json, c }) => {
      const accountId = await ownAccount(services, c);
      const wanted = await allowedTerms(services, c, json);
      if (wanted.access !== undefined) await requireRight(services, c, 'allKeys');
      return {
        action: 'key.create',
        subject: wanted.name,
        changes: changesOf(termsJson(wanted)),
        run: async () => {
          const { id, key, prefix } = await need(services, accountAdmin).createKey(accountId, wanted, actorOf(c).id);
          return { id, key, prefix };
        },
      };
    })
    .action(change, async ({ param: { id: subject }, json, c }) => {
      const before = await ownKey(services, c, subject);
      const regions = json.regions === undefined ? before.regions : (json.regions ?? undefined);
      const terms = { ...(await allowedTerms(services, c, json)), regions };
      const admin = need(services, accountAdmin);
      const { accountId } = before;
      const changes = changesBetween(termsJson(before), termsJson(terms));
      const run = async () => keyJson(await admin.updateKey(accountId, subject, terms));
      return { action: 'key.change', subject, changes, run };
    })
    .action(rotate, async ({ param: { id: subject }, json: { overlapHours }, c }) => {
      const { accountId } = await ownKey(services, c, subject);
      const admin = need(services, accountAdmin);
      const run = async () => rotatedJson(await admin.rotateKey(accountId, subject, overlapHours * hourMs));
      return { action: 'key.rotate', subject, changes: changesOf({ overlapHours }), run };
    })
    .action(revoke, async ({ param: { id: subject }, c }) => {
      const { accountId } = await ownKey(services, c, subject);
      const run = async () => keyJson(await need(services, accountAdmin).revokeKey(accountId, subject));
      return { action: 'key.revoke', subject, run };
    });
}

const allowedTerms = async (services: ConsoleServices, c: RequestContext, json: z.output<typeof keyTerms>) =>
  inTheirProject(services, await membershipOf(services, c), actorOf(c).id, termsOf(json));

/** Whom a group of the company's provider puts into a project makes keys for it alone, unless their role includes all keys. */
export async function inTheirProject(
  { companies }: Pick<ConsoleServices, 'companies'>,
  { accountId, role }: Membership,
  personId: string,
  wanted: KeyTerms,
): Promise<KeyTerms> {
  const project = includes(role, 'allKeys') ? undefined : await companies.projectOf(accountId, personId);
  if (project === undefined || wanted.project === project) return wanted;
  if (wanted.project === undefined) return { ...wanted, project };
  throw new GatewayError('forbidden', `Your keys are for the project "${project}".`, {
    field: 'project',
    code: 'other_project',
  });
}

/** One of the account, and one's own where the role does not include others'. */
async function ownKey(services: ConsoleServices, c: RequestContext, keyId: string): Promise<KeyView> {
  const key = await need(services, accountAdmin).key(await ownAccount(services, c), keyId);
  if (key.person === actorOf(c).id || (await has(services, c, 'allKeys'))) return key;
  throw new GatewayError('not_found', 'There is no such key.', { field: 'key' });
}

async function spentByKey(services: ConsoleServices, accountId: string): Promise<Map<string, string> | undefined> {
  const money = services.find(ledgerQueries);
  if (money === undefined) return undefined;
  const now = services.clock.now();
  const groups = await money.spend({ from: now - 30 * dayMs, until: now + 1, accountId }, 'key', 500);
  return new Map(groups.map((sums) => [sums.group, spentIn(moneyJson(sums)).spent!]));
}

/** The spending of keys that are not revoked. */
async function capSpentByKey(services: ConsoleServices, accountId: string, rows: readonly KeyView[]) {
  const money = services.find(ledgerQueries);
  const capped = rows.flatMap(({ id, cap, revokedAt }) =>
    cap === undefined || revokedAt !== undefined ? [] : [{ keyId: id, cap }],
  );
  if (money === undefined || capped.length === 0) return new Map<string, string>();
  const zone = await services.find(budgetAdmin)?.zone(accountId);
  const found = await capSpend(money, accountId, capped, { now: services.clock.now(), zone });
  return new Map(found.map(({ key, spent }) => [key.keyId, usdText(spent)]));
}
