/** The settings of `cache`. */
import { count, duration, size, z } from '../../core/contract/schema.ts';
import { isLess, one, parseDecimal, type Ratio } from '../common/domain/money.ts';

const dayMs = 86_400_000;
const leastBytes = 2 ** 20;

const share = z.union([z.number(), z.string()]).transform((value, context): Ratio => {
  try {
    const ratio = parseDecimal(String(value));
    if (!isLess(one, ratio)) return ratio;
  } catch {
    // As any other value that is no share.
  }
  context.addIssue({ code: 'custom', message: 'must be a number from 0 to 1, such as 0.1' });
  return z.NEVER;
});

const name = z.string().min(1).max(200);

const rule = z
  .strictObject({
    operations: z
      .array(name)
      .min(1)
      .max(100)
      .optional()
      .describe('Operations that it is for, such as chat or embeddings. Name those that are repeated. Default: all.'),
    models: z
      .array(name)
      .min(1)
      .max(1_000)
      .optional()
      .describe(
        'Models that it is for, by id or as clients name them; * stands for any letters. Name models with answers that stay right. Default: all.',
      ),
    without: z
      .union([z.enum(['tools', 'media']), z.array(z.enum(['tools', 'media']))])
      .transform((written) => [written].flat())
      .prefault([])
      .describe(
        'Requests that it is not for: tools, those that declare tools; media, those that show pictures, sound or files. Use tools for agents, whose steps differ although they look alike.',
      ),
    keep: duration()
      .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 30 * dayMs, 'must be from 1s to 30d')
      .describe('How long an answer is given again. Shorten it where answers age.'),
    price: share.describe(
      'What a hit costs, as a share of what the call would have cost this account; 0: nothing. Set it to what you want to earn by hits.',
    ),
  })
  .describe('Requests to which all that is said here applies. The first that fits decides.');

const similar = z
  .strictObject({
    model: name.describe('Model of embeddings of this gateway. Its calls are charged to the client as its own.'),
    at: z
      .number()
      .min(0.5)
      .max(1)
      .default(0.95)
      .describe('How near two questions must be, as the cosine of their vectors. Lower it for more and worse hits.'),
    newest: count()
      .refine((value) => value >= 1 && value <= 4_096, 'must be from 1 to 4096')
      .prefault(256)
      .describe('Answers that a question is compared with, the newest ones. Raise it for many different questions.'),
  })
  .describe(
    'Answer a question in chat by the answer to nearly the same one. Off without this section; never across models, settings, instructions, earlier turns or tools.',
  );

export const configSchema = z.strictObject({
  store: z
    .enum(['memory', 'redis', 'postgres'])
    .default('memory')
    .describe(
      'Where answers are kept: memory, of each process; redis, the server of storage.counters; postgres, the database. Use redis or postgres where several processes serve.',
    ),
  bytes: size()
    .refine((bytes) => bytes >= leastBytes, 'must be at least 1MB')
    .prefault('64MB')
    .describe(
      'What all answers may take in the store; those that were used longest ago go first. Raise it for more hits.',
    ),
  account: size()
    .refine((bytes) => bytes >= 2 ** 16, 'must be at least 64KB')
    .prefault('16MB')
    .describe("What one account's answers may take. Lower it where many accounts share a small store."),
  largest: size()
    .refine((bytes) => bytes >= 1_024 && bytes <= 16 * 2 ** 20, 'must be from 1KB to 16MB')
    .prefault('1MB')
    .describe('Largest request and largest answer that are kept. Raise it for long answers.'),
  of: z
    .array(rule)
    .max(100)
    .default([])
    .describe('What is kept, in rules; none: nothing, and calls do not enter the cache. Name what is repeated.'),
  scope: z
    .enum(['account', 'project', 'key'])
    .default('account')
    .describe(
      'Who gets an answer again: the account, the keys of one project, or one key. Narrow it where teams must not share.',
    ),
  honour: z
    .array(z.enum(['cache-control']))
    .default(['cache-control'])
    .describe(
      'What of a request is obeyed: cache-control with no-store, no-cache and max-age. Empty it where clients send it without meaning it.',
    ),
  wait: duration()
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 600_000, 'must be from 1s to 10m')
    .prefault('2m')
    .describe(
      'How long a call waits for the answer to an equal one that runs; then it is made by itself. Raise it for slow models.',
    ),
  similar: similar.optional(),
});

export type CacheConfig = z.output<typeof configSchema>;
export type WrittenRule = CacheConfig['of'][number];
