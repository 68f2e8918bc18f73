/** Settings of the plugin. */
import { count, duration, size, z } from '../../core/contract/schema.ts';

const positive = (most: number) => count().refine((value) => value >= 1 && value <= most, `must be from 1 to ${most}`);

export const configSchema = z.strictObject({
  per_account: positive(1_000_000)
    .prefault(200)
    .describe('Connections of one account at once at most, in one process. Raise it for clients with many sessions.'),
  per_key: positive(1_000_000)
    .prefault(100)
    .describe('Connections of one key at once at most, in one process. Raise it for clients with many sessions.'),
  message: size()
    .refine((bytes) => bytes >= 1_024, 'must be at least 1KB')
    .prefault('32MB')
    .describe(
      'Largest message of a client; a larger one closes the connection with 1009. Raise it for clients that send large media.',
    ),
  queue: positive(100)
    .prefault(4)
    .describe('Turns that may wait on one connection while another one runs. Raise it for clients that send ahead.'),
  memory: size()
    .prefault('512MB')
    .describe(
      'Memory of all connections together for conversations that may be continued, of turns that run too, for waiting messages, and for messages that have not arrived whole. Lower it on a small machine.',
    ),
  account_memory: size()
    .optional()
    .describe(
      'What the connections of one account may take of the memory. Set it when one client takes too much. Default: a quarter, or two of the largest messages.',
    ),
  control_frames: positive(1_000_000)
    .prefault(600)
    .describe(
      'Pings and pongs of one connection in a minute at most; with more it is closed. Raise it for clients that ping often.',
    ),
  arrival: duration()
    .prefault('2m')
    .describe('Time in which a message that has begun must have arrived whole. Raise it for clients on slow lines.'),
  ping: duration()
    .prefault('25s')
    .describe(
      'Silence after which a connection is pinged; unanswered for as long, it is cut. Keep it below the idle timeout of a proxy in front.',
    ),
  idle: duration()
    .prefault('15m')
    .describe(
      'How long a connection may be open without a message while nothing runs. Raise it for clients that pause for long.',
    ),
  longest: duration()
    .prefault('60m')
    .describe(
      'How long a connection may be open; what runs then is finished first. Raise it for sessions of more than an hour.',
    ),
  stall: duration()
    .prefault('60s')
    .describe(
      'How long a client may read nothing of what waits for it, or send nothing of a message that has begun. Raise it for clients on slow lines.',
    ),
});

export type WebSocketsConfig = z.output<typeof configSchema>;
