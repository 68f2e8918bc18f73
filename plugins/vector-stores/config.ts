/** Settings of the plugin: the model that makes the vectors, and what an account may keep. */
import { count, duration, size, z } from '../../core/contract/schema.ts';

const positive = (most: number) => count().refine((value) => value >= 1 && value <= most, `must be from 1 to ${most}`);
const bytes = (least: number) => size().refine((value) => value >= least, `must be at least ${least} bytes`);

export const configSchema = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(256)
    .describe(
      'Model of the gateway that makes the vectors of new stores, each paid as a call of it. Set it to one of the kind `embedding`; stores that are there keep theirs.',
    ),
  dimensions: z
    .int()
    .min(16)
    .max(8_192)
    .optional()
    .describe(
      "Numbers of a vector, asked of the model; absent: the model's own. Lower it for models that take it: searches are faster, and stores smaller.",
    ),
  file: bytes(1_024)
    .refine((value) => value <= 64 * 2 ** 20, 'must be at most 64MB')
    .prefault('16MB')
    .describe('Largest file that is put into a store. Raise it where a process has memory for a few of them.'),
  account: z
    .strictObject({
      stores: positive(100_000)
        .prefault(100)
        .describe('Stores of an account. Raise it for clients with one for each user.'),
      files: positive(1_000_000)
        .prefault(10_000)
        .describe('Files in all stores of an account. Raise it for many small ones.'),
      chunks: positive(10_000_000)
        .prefault(50_000)
        .describe(
          'Chunks in all stores of an account. Raise it where searches of larger stores may last longer: each reads all vectors of its store.',
        ),
      bytes: bytes(1_048_576)
        .prefault('1GB')
        .describe('Bytes of texts and vectors in all stores of an account. Raise it where the database has room.'),
    })
    .prefault({})
    .describe('What one account may keep.'),
  searches: positive(1_000)
    .prefault(4)
    .describe('Searches of one account at once in one process. Lower it to protect the database.'),
  at_once: positive(100)
    .prefault(2)
    .describe('Files that a process puts into stores at once. Raise it when files wait although the model has room.'),
  lease: duration()
    .refine((value) => value >= 1_000 && value <= 600_000, 'must be from 1s to 10m')
    .prefault('60s')
    .describe(
      'How long a process keeps a file that it does not renew; then another process continues it. Raise it when calls of the model last longer.',
    ),
});

export type Config = z.output<typeof configSchema>;
