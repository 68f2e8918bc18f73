/** Stored keys of vendors: given, replaced and deleted; their texts go in and never come out. */

import { z } from '@hono/zod-openapi';
import { vendorSecrets } from '../../services.ts';
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
      reason: reasonInput,
    }),
  ),
});
const remove = route('post', '/admin/secrets/{name}/delete', 'Delete a stored key of a vendor', answers(done), {
  params: z.object({ name }),
  body: takes(z.strictObject({ reason: reasonInput })),
});

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
    }));
}

const secretJson = writerOf(vendorSecret);
