/** The section of a gateway file: what accounts get that have chosen nothing. */
import type { Fault } from '../../core/contract/remarks.ts';
import { duration, z } from '../../core/contract/schema.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import {
  type NoticeChannel,
  type NoticeKind,
  noticeChannels,
  noticeKinds,
  noticeLanguages,
} from '../common/domain/admin/notices.ts';
import { parseUsd } from '../common/domain/money.ts';

const kind = z.strictObject({
  threshold: z
    .number()
    .positive()
    .max(1_000_000)
    .refine((value) => /^\d+(\.\d{1,9})?$/.test(String(value)), 'must have at most nine decimals')
    .optional()
    .describe(
      'A notice is sent when it is crossed: USD, a share from 0 to 1, or days. Change it to what suits most clients. Default: that of the kind.',
    ),
  channels: z
    .array(z.enum(noticeChannels))
    .optional()
    .describe(
      'How it is sent to accounts that have chosen nothing: mail goes to their people, a webhook to the address that they have written. Write [] to send nothing before a client chooses it. Default: that of the kind.',
    ),
});

export const configSchema = z.strictObject({
  every: duration()
    .refine((value) => value >= 1_000 && value <= 3_600_000, 'must be from 1s to 1h')
    .prefault('1m')
    .describe('How often accounts with new movements of money are looked at. Raise it where notices may come later.'),
  retention: duration()
    .refine((value) => value >= 3_600_000, 'must be at least 1h')
    .prefault('90d')
    .describe('How long messages are kept after they were made. Raise it when clients ask about older ones.'),
  language: z
    .enum(noticeLanguages)
    .default('en')
    .describe('Language of messages to accounts that have chosen nothing. Write that of most clients.'),
  allow_private: z
    .boolean()
    .default(false)
    .describe(
      'Webhooks of clients may lie in a private network or on this machine. Turn it on only where every client is your own.',
    ),
  kinds: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,60}$/, 'must be a short name of small letters'), kind)
    .default({})
    .describe(
      'Thresholds and channels by kind: low_balance, cap_share, budget_share, window_share, plan_end, key_expiry, key_age, credit_overdue, price_change, domain_record, or one of a plugin. Set it to what suits most clients; each can choose otherwise.',
    ),
});
export type NoticesConfig = z.output<typeof configSchema>;

/** In billionths. */
export function usualThreshold({ kinds }: NoticesConfig, { name, threshold }: NoticeKind): bigint {
  const written = Object.hasOwn(kinds, name) ? kinds[name]!.threshold : undefined;
  return written === undefined ? threshold : parseUsd(String(written));
}

export function usualChannels({ kinds }: NoticesConfig, { name, channels }: NoticeKind): readonly NoticeChannel[] {
  const written = Object.hasOwn(kinds, name) ? kinds[name]!.channels : undefined;
  return written ?? channels;
}

/** Faults that show only when every plugin has added its kinds. */
export function problemsOf({ kinds }: NoticesConfig, known: readonly NoticeKind[]): Fault[] {
  return Object.entries(kinds).flatMap(([name, { threshold }]): Fault[] => {
    const found = known.find((one) => one.name === name);
    const names = known.map((one) => one.name);
    if (found === undefined) {
      const hint = didYouMean(name, names) || `; known are ${names.join(', ')}`;
      const message = `there is no kind of notice "${name}"${hint}`;
      return [{ path: ['kinds', name], message, lacks: { point: noticeKinds, name } }];
    }
    const fault = threshold === undefined ? undefined : thresholdFault(found, parseUsd(String(threshold)));
    return fault === undefined ? [] : [{ path: ['kinds', name, 'threshold'], message: fault }];
  });
}

const billion = 1_000_000_000n;
/** For what ends, and for what has an age. */
const mostDays = { below: 90n, above: 3_650n };

/** undefined: a kind can have this threshold, in billionths. */
export function thresholdFault({ unit, beyond }: NoticeKind, threshold: bigint): string | undefined {
  if (unit === 'none') return 'is a kind without a threshold';
  if (threshold <= 0n) return 'must be above zero';
  if (unit === 'share' && threshold > billion) return 'must be a share, at most 1';
  const most = mostDays[beyond];
  if (unit === 'days' && threshold > most * billion) return `must be at most ${most} days`;
  return undefined;
}
