/** The settings of `bodies`. */
import type { Notice } from '../../../core/contract/contract.ts';
import { duration, size, z } from '../../../core/contract/schema.ts';

const dayMs = 86_400_000;

const rule = z
  .strictObject({
    accounts: z
      .array(z.string().min(1))
      .max(100)
      .optional()
      .describe('Accounts whose bodies are kept, by name or id. Set it to investigate one client. Default: all.'),
    keys: z
      .array(z.uuid())
      .max(100)
      .optional()
      .describe('Keys whose bodies are kept, by id. Set it to investigate one program. Default: all.'),
    models: z
      .array(z.string().min(1))
      .max(100)
      .optional()
      .describe('Models whose bodies are kept, as clients name them. Set it to investigate one model. Default: all.'),
    when: z
      .enum(['all', 'errors'])
      .default('all')
      .describe(
        'Which of their requests: all, or `errors`: only those that were answered with a status from 400 on, or whose answer broke off. Use errors to keep little.',
      ),
    share: z
      .number()
      .gt(0)
      .max(1)
      .default(1)
      .describe(
        'Which part of them, chosen by chance: 0.01 is one in a hundred. Lower it where there is much traffic.',
      ),
  })
  .describe('Requests to which all that is said here applies.');

export const bodiesSection = z
  .strictObject({
    of: z
      .array(rule)
      .max(100)
      .default([])
      .describe(
        'Whose bodies are kept; none: only what `requests record` or the console asks for, for a limited time. Name as few as possible.',
      ),
    largest: size()
      .refine((bytes) => bytes >= 1_024 && bytes <= 2 ** 20, 'must be from 1KB to 1MB')
      .prefault('64KB')
      .describe(
        'How much of each body is kept; media count as the few words that stand in their place. Raise it for long conversations.',
      ),
    retention: duration()
      .refine((milliseconds) => milliseconds >= 60_000 && milliseconds <= 30 * dayMs, 'must be from 1m to 30d')
      .prefault('3d')
      .describe('How long bodies are kept; not longer than the rows of their requests. Shorten it to keep less.'),
    mask: z
      .array(z.string().min(2).max(60))
      .max(100)
      .default([])
      .describe(
        'Further names whose values are masked, beside password, secret, token, api_key, authorization and their like. Add the names that your clients use for secrets.',
      ),
    personal: z
      .array(z.enum(['emails', 'cards']))
      .default([])
      .describe(
        'What else is masked wherever it stands: mail addresses, numbers of payment cards. Set it where bodies contain personal data.',
      ),
    memory: size()
      .refine((bytes) => bytes >= 2 ** 20 && bytes <= 2 ** 30, 'must be from 1MB to 1GB')
      .prefault('32MB')
      .describe(
        'Memory for bodies until they are written; further ones are dropped, and the log has their number. Raise it when bodies are missing under load.',
      ),
  })
  .describe(
    'Keep bodies of requests and answers, masked, for operators to look at; without this section none are kept. Set it to investigate, with the consent of your clients.',
  );

export type BodiesConfig = z.output<typeof bodiesSection>;
export type BodyRule = BodiesConfig['of'][number];

/** A notice for settings that record the bodies of all requests. */
export function noticesOf(bodies: BodiesConfig | undefined): Notice[] {
  const isForAll = bodies?.of.some(
    ({ accounts, keys, models, when, share }) =>
      accounts === undefined && keys === undefined && models === undefined && when === 'all' && share === 1,
  );
  if (isForAll !== true) return [];
  return [
    {
      level: 'warning',
      text: 'request-log.bodies keeps the bodies of every request: a rule in `of` names no account, key or model.',
    },
  ];
}
