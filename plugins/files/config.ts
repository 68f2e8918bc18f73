/** Settings of files. */
import { count, duration, secretList, secretText, size, z } from '../../core/contract/schema.ts';

const atLeast = (lowest: number, words: string) =>
  [(value: number) => value >= lowest, { error: `must be at least ${words}` }] as const;

const part = () => z.number().refine((value) => value >= 0 && value <= 1, { error: 'must be from 0 to 1' });

export const configSchema = z
  .strictObject({
    origin: z
      .string()
      .refine((value) => value === '' || isOrigin(value), {
        error: 'must be an origin such as https://gateway.example, without a path',
      })
      .default('')
      .describe(
        'Where clients reach this gateway; addresses of files begin with it. Set it behind TLS or a proxy. Empty: the Host header where that is local, else the address listened at.',
      ),
    links: duration()
      .refine(...atLeast(1_000, '1s'))
      .prefault('24h')
      .describe(
        'How long an address of a file is good; each answer that names a file gives a new one. Raise it when clients fetch files late.',
      ),
    retention: duration()
      .refine(...atLeast(1_000, '1s'))
      .prefault('7d')
      .describe(
        'How long a generated file is kept. Raise it when clients come back later; lower it when the disk fills.',
      ),
    secret: secretList(16)
      .default([])
      .describe(
        'Secret that addresses are signed with, or a list: the first signs, all are accepted; empty: made once and kept in the database. Set it to keep it apart from the rows.',
      ),
    file_limit: size().prefault('512MB').describe('Largest file that is kept. Raise it for long videos.'),
    account_limit: size()
      .prefault('10GB')
      .describe('What the files of one account may take together. Lower it when few accounts fill the disk.'),
    total_limit: size()
      .prefault('100GB')
      .describe('What all files of this gateway may take together. Set it to the room that your disk or bucket has.'),
    free: z
      .strictObject({
        limit: part()
          .default(0.5)
          .describe(
            'Share of `total_limit` that all accounts without a payment may take together. Lower it when strangers can sign up.',
          ),
        account: part()
          .default(0.05)
          .describe(
            'Share of `total_limit` that each account without a payment may take, and not more than `account_limit`. Lower it when strangers can sign up.',
          ),
      })
      .prefault({})
      .describe(
        'Parts of `total_limit` for accounts that have never paid money in, or have it all back; the rest is kept for those that have.',
      ),
    disk: z
      .enum(['own', 'shared'])
      .default('own')
      .describe(
        'Whether all processes on one PostgreSQL use one data directory (shared: one machine, or a network file system) or each its own; with own, several processes need a bucket. Use shared for workers of one machine.',
      ),
    disk_reserve: size()
      .prefault('1GB')
      .describe(
        'Space that files leave free on the disk of the data directory. Raise it when other programs write there.',
      ),
    answers: count()
      .refine(...atLeast(1, '1'))
      .prefault(200)
      .describe('Files that are sent to clients at the same time. Raise it when clients get 429 with the code files.'),
    answers_per_client: count()
      .refine(...atLeast(1, '1'))
      .optional()
      .describe(
        'Files that are sent at the same time to one account, and to one network, at most. Set it when one client takes too much. Default: a quarter.',
      ),
    slowest: size()
      .prefault('4KB')
      .describe(
        'Bytes a second that a client takes of a file at least; after half a minute below it the answer is cut. Lower it for clients on slow lines.',
      ),
    uploads: z
      .strictObject({
        file_limit: size()
          .refine(...atLeast(1, '1'))
          .prefault('512MB')
          .describe('Largest file that a client may upload. Raise it for videos and large batches.'),
        files: count()
          .refine(...atLeast(1, '1'))
          .prefault(10_000)
          .describe(
            'Files that an account may have, uploaded ones and those of its batches. Lower it when few accounts fill the disk.',
          ),
        retention: duration()
          .refine(...atLeast(3_600_000, '1h'))
          .prefault('30d')
          .describe('How long an uploaded file is kept at most. Raise it when clients refer to files for longer.'),
        parallel: count()
          .refine(...atLeast(1, '1'))
          .prefault(4)
          .describe(
            'Files that an account may upload at the same time; ten times as many in all. Raise it for clients that upload many small files.',
          ),
      })
      .prefault({})
      .describe('Files that clients upload, and that batches make for them.'),
    fetch: z
      .strictObject({
        parallel: count()
          .refine(...atLeast(1, '1'))
          .prefault(4)
          .describe(
            'Files that are fetched from vendors at the same time. Raise it when results wait although the network has room.',
          ),
        timeout: duration()
          .refine((value) => value >= 1_000 && value <= 1_800_000, { error: 'must be between 1s and 30m' })
          .prefault('5m')
          .describe('Time in which a file must have come, all tries together. Raise it for large videos.'),
        attempts: count()
          .refine(...atLeast(1, '1'))
          .prefault(4)
          .describe("Tries to fetch one file. Raise it when a vendor's store fails often."),
        allow_private: z
          .boolean()
          .default(false)
          .describe('Fetch from private addresses too. Turn it on for tests and closed networks alone.'),
      })
      .prefault({})
      .describe('How results are fetched from the addresses that vendors give for them.'),
    s3: z
      .strictObject({
        bucket: z
          .string()
          .default('')
          .describe('Name of the bucket; empty: files lie in the data directory. Set it where several hosts serve.'),
        prefix: z
          .string()
          .regex(/^(?:[\w-]+\/)*$/, { error: 'must be empty or end with a slash, such as gateway/' })
          .default('')
          .describe('What names of objects begin with, such as gateway/. Set it when the bucket has other contents.'),
        endpoint: z
          .string()
          .refine((value) => value === '' || URL.canParse(value), { error: 'must be a URL' })
          .default('')
          .describe(
            "URL of the S3-compatible service; empty: the one of the region. Set it for a store that is not Amazon's.",
          ),
        region: z
          .string()
          .min(1)
          .default('us-east-1')
          .describe('Region of the bucket. Change it to where the bucket is.'),
        access_key_id: z
          .string()
          .default('')
          .describe(
            'Access key; empty: what the environment or the machine provides. Set it where there is no role of the machine.',
          ),
        secret_access_key: secretText()
          .default('')
          .describe('Secret of the access key. Set it together with the access key, best from a file.'),
        path_style: z
          .boolean()
          .default(false)
          .describe(
            'Whether the bucket is in the path, not in the host name. Turn it on for stores that know no host names of buckets.',
          ),
        redirect: z
          .boolean()
          .default(false)
          .describe(
            'Send clients to a presigned address of the bucket instead of the bytes. Turn it on to take the traffic of files off the gateway.',
          ),
      })
      .prefault({})
      .describe('An S3-compatible store, also for several hosts; without it files lie in the data directory.'),
  })
  .refine(({ links, retention }) => links <= retention, {
    path: ['links'],
    error: 'must not be longer than `retention`',
  });

export type FilesConfig = z.output<typeof configSchema>;

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text;
}
