/** Notices of the own account: what is sent of each kind, by which channel, from which threshold on; a test; and what operators see of them. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import { noticeChannels, noticeLanguages } from '../../common/domain/admin/notices.ts';
import { type ConsoleServices, need, ownAccount } from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import { answers, id, instant, takes, writerOf } from '../api/schemas.ts';
import { noticeAdmin } from '../services.ts';

const channel = z.enum(noticeChannels);
const channels = z.array(channel).max(noticeChannels.length);
const language = z.enum(noticeLanguages).describe('In which messages are written from now on.');
const threshold = z
  .string()
  .nullable()
  .describe('Decimal text: USD, a share from 0 to 1, or days; null: there is none.');

const kinds = z.array(
  z.object({
    kind: z
      .string()
      .describe(
        'low_balance, cap_share, window_share, plan_end, key_expiry, key_age, credit_overdue, price_change, domain_record …',
      ),
    title: z.string(),
    unit: z.enum(['usd', 'share', 'days', 'none']),
    channels,
    threshold,
    usual: threshold.describe('The threshold where the account has chosen none.'),
  }),
);
const sent = z
  .array(
    z.object({
      kind: z.string(),
      channel,
      title: z.string(),
      at: instant,
      sentAt: instant.nullable().describe('null: it was not taken yet.'),
      fault: z.string().nullable().describe('Why it was not taken the last time.'),
      waits: z.boolean().describe('It is sent again.'),
    }),
  )
  .describe('The latest messages, newest first, at most 20.');
const settings = z
  .object({
    kinds,
    mail: z.boolean().describe('Whether this gateway sends mails.'),
    webhook: z
      .object({ url: z.string(), secret: z.string().describe('Verifies its messages (standardwebhooks.com).') })
      .nullable(),
    last: sent,
  })
  .openapi('Notices');

const titles = { query: z.object({ language: language.optional().describe('Of the titles.') }) };
const get = route('get', '/notices', 'Notices of the own account', answers(settings), titles);
const usual = z.object({ kinds });
const usualGet = route('get', '/admin/notices', 'What accounts get that have chosen nothing', answers(usual), titles);
const sentOf = z.object({ rows: sent });
const sentGet = route('get', '/admin/accounts/{id}/notices', 'Notices of an account', answers(sentOf), {
  ...titles,
  params: z.object({ id }),
});
const change = route('patch', '/notices', 'Choose notices; kinds that are absent stay', answers(settings), {
  body: takes(
    z.strictObject({
      language,
      kinds: z
        .array(
          z.strictObject({
            kind: z.string().min(1).max(100),
            channels,
            threshold: z
              .string()
              .regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be decimal text, such as 0.8')
              .nullish()
              .describe('null: that of the gateway.'),
          }),
        )
        .max(100)
        .optional(),
      url: z
        .url({ protocol: /^https?$/ })
        .max(2_000)
        .nullish()
        .describe('Where the webhook is; null: none any more; absent: as it was.'),
      newSecret: z.boolean().optional().describe('Makes another secret; the one before signs too.'),
    }),
  ),
});
const test = route(
  'post',
  '/notices/test',
  'Send a test by one channel, at most six a minute',
  answers(z.object({ fault: z.string().nullable().describe('Why it was not taken; null: it was.') })),
  { body: takes(z.strictObject({ channel, language })) },
);
const mostTests = 6;

export function noticeRoutes(services: ConsoleServices) {
  const admin = () => need(services, noticeAdmin);
  return new Routes(services)
    .read(get, async ({ query, c }) =>
      settingsJson(await admin().settings(await ownAccount(services, c), query.language ?? 'en')),
    )
    .read(usualGet, async ({ query }) => usualJson(await admin().settings('', query.language ?? 'en')))
    .read(sentGet, async ({ param, query }) => {
      const { kinds, last } = await admin().settings(param.id, query.language ?? 'en');
      const titleOf = (kind: string) => kinds.find((one) => one.kind === kind)?.title;
      return sentJson({ rows: last.map((row) => ({ ...row, title: titleOf(row.kind) ?? row.title })) });
    })
    .action(change, async ({ json: { kinds = [], ...changed }, c }) => {
      const accountId = await ownAccount(services, c);
      const choices = kinds.map((kind) => ({ ...kind, threshold: kind.threshold ?? undefined }));
      return {
        action: 'notices.change',
        subject: accountId,
        run: async () => {
          await admin().change(accountId, { ...changed, choices });
          return settingsJson(await admin().settings(accountId, changed.language));
        },
      };
    })
    .action(test, async ({ json, c }) => {
      const accountId = await ownAccount(services, c);
      return {
        action: 'notices.test',
        subject: accountId,
        run: async () => {
          const retryAfterMs = services.throttle.take(`notices:${accountId}`, mostTests, 60_000);
          if (retryAfterMs > 0) throw new GatewayError('rate_limited', 'Wait before the next test.', { retryAfterMs });
          const { fault } = await admin().test(accountId, json.channel, json.language);
          return { fault: fault ?? null };
        },
        outcome: ({ fault }) => (fault === null ? 'done' : 'refused'),
      };
    });
}

const settingsJson = writerOf(settings);
const usualJson = writerOf(usual);
const sentJson = writerOf(sentOf);
