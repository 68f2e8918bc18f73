/** Settings of tasks. */
import { count, duration, secretList, size, z } from '../../core/contract/schema.ts';

const between = (least: number, most: number, fallback: string) =>
  duration()
    .refine((milliseconds) => milliseconds >= least && milliseconds <= most, 'is out of bounds')
    .prefault(fallback);
const dayMs = 86_400_000;

export const configSchema = z.strictObject({
  expose: z
    .array(z.enum(['images', 'videos']))
    .min(1)
    .default(['images', 'videos'])
    .describe('Kinds of media that can be ordered here. Shorten it to what you sell.'),
  mode: z
    .enum(['asynchronous', 'synchronous'])
    .default('asynchronous')
    .describe(
      '`synchronous`: every client waits for the result; otherwise only clients that ask for it. Use synchronous for programs that expect the images in the answer.',
    ),
  workers: count()
    .refine((value) => value >= 1 && value <= 1_000, 'must be from 1 to 1000')
    .prefault(8)
    .describe(
      'Tasks that this process works on at the same time; those that wait for a vendor do not count. Raise it when tasks wait in the queue.',
    ),
  streams: count()
    .prefault(100)
    .describe(
      'Images that this process streams to clients at the same time, beside the workers; 0: none. Raise it when clients get 503 for streamed images.',
    ),
  lease: between(1_000, 600_000, '30s').describe(
    'How long a silent worker keeps its tasks. Raise it when processes pause for long.',
  ),
  deadline: z
    .strictObject({
      image: between(1_000, 7 * dayMs, '30m').describe(
        'Time in which images must have been made. Raise it for slow models.',
      ),
      video: between(1_000, 7 * dayMs, '6h').describe(
        'Time in which a video must have been made. Raise it for slow models.',
      ),
    })
    .prefault({})
    .describe('Tasks that take longer fail, and cost nothing.'),
  reconcile: between(0, dayMs, '2m').describe(
    'How long to wait for the outcome of a lost worker before the task fails. Raise it for vendors that answer late.',
  ),
  poll: z
    .strictObject({
      first: between(10, 600_000, '3s').describe(
        "Pause before the first poll of a vendor's task. Lower it for models that are quick.",
      ),
      longest: between(10, 600_000, '15s').describe(
        'Longest pause between two polls. Raise it when the vendor limits them.',
      ),
    })
    .prefault({})
    .describe('How often tasks of vendors are polled.'),
  retry: z
    .strictObject({
      first: between(10, 600_000, '2s').describe(
        'Pause before busy vendors are tried again. Raise it for vendors that stay busy.',
      ),
      longest: between(10, 3_600_000, '1m').describe(
        'Longest pause between two tries. Raise it for vendors that stay busy.',
      ),
    })
    .prefault({})
    .describe('How often vendors that are busy, or that cannot be reached, are tried again.'),
  wait: between(1_000, 590_000, '9m').describe(
    'How long a client may wait for a result; then it is given the task. Keep it below the timeout of a proxy in front.',
  ),
  drain: between(0, 600_000, '30s').describe(
    'How long a process that stops waits for vendors that are at work. Keep it below the time after which your orchestrator kills the process.',
  ),
  retention: between(60_000, 3_650 * dayMs, '30d').describe(
    'How long tasks can be queried after their end. Raise it when clients come back later.',
  ),
  callbacks: z
    .strictObject({
      secret: secretList(16)
        .default([])
        .describe(
          'Secret, or a list, from which the secrets of all accounts derive; each signs; empty: generated once and stored in the database. Set it to keep it apart from the rows.',
        ),
      pause: between(10, 3_600_000, '5s').describe(
        'Pause before a failed callback is sent again; it doubles, up to an hour. Raise it when receivers are slow to recover.',
      ),
      allow_private: z
        .boolean()
        .default(false)
        .describe('Call private addresses too. Turn it on for tests and closed networks alone.'),
    })
    .prefault({})
    .describe('Callbacks at the end of a task, to the `callback_url` of the order.'),
  references: z
    .strictObject({
      limit: size()
        .prefault('20MB')
        .describe('Largest reference file that is fetched from an address. Raise it for large pictures.'),
      allow_private: z
        .boolean()
        .default(false)
        .describe('Fetch from private addresses too. Turn it on for tests and closed networks alone.'),
    })
    .prefault({})
    .describe('References by address, for vendors that accept bytes only.'),
});

export type TaskConfig = z.output<typeof configSchema>;
