/** Keys of vendors: tried, stored, replaced and deleted; their texts go in and never come out. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { vendorLists, vendorSecrets, vendorSetup } from '../../services.ts';
import { actorOf, type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, instant, reasonInput, takes, writerOf } from '../schemas.ts';

const marks = {
  lastFour: z.string().describe('Empty for short secrets and files of credentials.'),
  fingerprint: z.string().describe("Tells two secrets apart; made with the gateway's own key."),
};
const vendorSecret = z
  .object({
    name: z.string().describe('`secret:NAME` in the settings of a vendor.'),
    state: z.enum(['stored', 'unreadable', 'missing']),
    ...marks,
    setAt: instant.nullable(),
    setBy: z.string().nullable(),
    usedBy: z.array(z.string()).describe('Vendors that name it.'),
    older: z.array(
      z.object({
        ...marks,
        until: instant.nullable(),
        untilWorked: z.boolean().describe('Until the newest has answered a call, and at most until then.'),
      }),
    ),
  })
  .openapi('VendorSecret');
const name = z.string().min(1).max(63);
const overlapHours = { none: 0, hour: 1, day: 24, week: 168 } as const;

const list = route(
  'get',
  '/admin/secrets',
  'Stored keys of vendors, and those that settings name',
  answers(z.object({ rows: z.array(vendorSecret) })),
);
const set = route('post', '/admin/secrets', 'Store a key of a vendor, or replace it', answers(vendorSecret), {
  body: takes(
    z.strictObject({
      name,
      value: z.string().min(1).max(64_000).describe('The key itself.'),
      overlap: z
        .enum(['none', 'hour', 'day', 'week', 'worked'])
        .optional()
        .describe('How long the earlier key is used too; absent: there must be none.'),
      reason: reasonInput.optional(),
    }),
  ),
});
const remove = route('post', '/admin/secrets/{name}/delete', 'Delete a stored key of a vendor', answers(done), {
  params: z.object({ name }),
  body: takes(z.strictObject({ reason: reasonInput })),
});

const listed = z.object({
  id: z.string(),
  state: z.enum(['served', 'known', 'priced', 'unpriced']),
  entry: z.record(z.string(), z.unknown()).describe('Its members in a gateway file.'),
});
const answer = z
  .object({
    ok: z.boolean(),
    status: z.number().nullable().describe("Of the vendor's refusal; null: it answered, or did not answer at all."),
    error: z.string().nullable().describe("With the beginning of the vendor's own words, without the key."),
    isPrivate: z.boolean().describe('The address is private and not in the configuration, so nothing was sent.'),
    tookMs: z.number(),
    models: z.array(listed),
    others: z.array(z.string()),
  })
  .openapi('VendorAnswer');
const look = route(
  'post',
  '/admin/vendors/test',
  'Ask a vendor for its models, with a key that is not stored by this',
  answers(answer),
  {
    body: takes(
      z.strictObject({
        name: z.string().min(1).max(63).describe('As the settings have it, or will.'),
        preset: z.string().max(63).optional(),
        speaks: z.record(z.string().max(63), z.string().max(2_000)).optional().describe('Protocol to base URL.'),
        key: z.string().max(64_000).optional().describe('Absent: one that the configured vendor has.'),
      }),
    ),
  },
);
const looksPerMinute = 20;

export function vendorSecretRoutes(services: ConsoleServices) {
  const secrets = () => need(services, vendorSecrets);
  return new Routes(services)
    .read(list, () => ({ rows: secrets().list().map(secretJson) }))
    .action(set, ({ json: { name: subject, value, overlap, reason }, c }) => ({
      action: overlap === undefined ? 'secret.set' : 'secret.replace',
      subject,
      reason,
      run: async () => {
        const lasts = overlap === 'worked' ? overlap : overlapHours[overlap ?? 'none'] * 3_600_000;
        return secretJson(await secrets().set(subject, value, actorOf(c).label, lasts, overlap === undefined));
      },
    }))
    .action(remove, ({ param: { name: subject }, json: { reason } }) => ({
      action: 'secret.delete',
      subject,
      reason,
      run: () => secrets().remove(subject),
    }))
    .action(look, ({ json: { key, ...draft } }) => {
      const retryAfterMs = services.throttle.take('look at vendors', looksPerMinute, 60_000);
      if (retryAfterMs > 0)
        throw new GatewayError('rate_limited', 'Many tests were made in this minute; wait a little.', { retryAfterMs });
      return {
        action: 'vendor.test',
        subject: draft.name,
        reason: draft.preset,
        run: async () => {
          const access = need(services, vendorSetup).open({ ...draft, key: key?.trim() });
          return answerJson(await need(services, vendorLists).read(access));
        },
        outcome: ({ ok }) => (ok ? 'done' : 'failed'),
      };
    });
}

const answerJson = writerOf(answer);
const secretJson = writerOf(vendorSecret);
