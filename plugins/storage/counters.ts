/** Counters that several processes share: scripts on a Redis, a Valkey or a cluster of them. Loaded only if they are configured. */
import { Cluster, Redis } from 'ioredis';
import type { Log } from '../../core/contract/host-tools.ts';
import type { CounterScript, Counters } from '../common/domain/counters.ts';

const connectWithinMs = 1_000;
const longestPauseMs = 2_000;
/** What a stalled server may owe; more is refused at once. */
const mostUnanswered = 10_000;

export interface OpenedCounters extends Counters {
  /** Wakes every process that listens. */
  publish(channel: string): void;
  /** Called for each message on this channel. */
  subscribe(channel: string, listener: () => void): void;
  close(): Promise<void>;
}

/**
 * Connects in the background: while there is no connection, `run` fails at once. A command fails after `withinMs` without
 * an answer.
 */
export function openCounters(text: string, log: Log, withinMs: number): OpenedCounters {
  const client = connect(text);
  const known = new Set<string>();
  let listening: Redis | Cluster | undefined;
  let unanswered = 0;
  watch(client, log);
  return {
    async run(script: CounterScript, keys, values) {
      if (unanswered >= mostUnanswered) throw new Error('the counters have fallen behind');
      if (!known.has(script.name)) {
        client.defineCommand(script.name, { lua: script.lua });
        known.add(script.name);
      }
      unanswered += 1;
      try {
        const command = (client as unknown as Record<string, Command>)[script.name]!;
        if (client instanceof Redis) gather(client);
        return await answered(command.call(client, keys.length, ...keys, ...values), withinMs);
      } finally {
        unanswered -= 1;
      }
    },
    publish(channel) {
      // Only wakes early those who would look by themselves within a second: its loss costs nothing.
      client.publish(channel, '').catch(() => undefined);
    },
    subscribe(channel, listener) {
      listening ??= connect(text);
      listening.on('error', () => undefined);
      listening.on('message', (from: string) => {
        if (from === channel) listener();
      });
      listening.on('ready', () => void listening?.subscribe(channel).catch(() => undefined));
    },
    async close() {
      client.disconnect();
      listening?.disconnect();
    },
  };
}

/** Everything that is sent in one turn goes out in one packet, and so do its answers. A cluster's commands go by themselves. */
function gather({ stream }: Redis): void {
  // There is no stream before the first connection, and none that takes bytes while there is no other.
  if (stream === undefined || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}

/**
 * The answer, or an error when there is none in time. Not the client's own time-out: after this process itself has been busy
 * for longer, timers run before sockets are read, and an answer that lies there would count as missing.
 */
function answered<T>(answer: Promise<T>, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => setImmediate(reject, new Error('the counters have not answered in time'));
    const timer = setTimeout(late, withinMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

type Command = (...given: (string | number)[]) => Promise<unknown>;

/** Without the client's own pipelining: where a connection breaks under one, it throws beside every promise, and the process ends. */
function connect(text: string): Redis | Cluster {
  const options = {
    connectTimeout: connectWithinMs,
    // A command must not run after its caller has stopped waiting.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt: number) => Math.min(50 * attempt, longestPauseMs),
  };
  const urls = text.split(',');
  if (urls.length === 1) return new Redis(urls[0]!, options);
  const nodes = urls.map((url) => new URL(url));
  const { username, password, protocol } = nodes[0]!;
  return new Cluster(
    nodes.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) })),
    {
      enableOfflineQueue: false,
      // A slot that has moved is found by the second try.
      maxRedirections: 2,
      clusterRetryStrategy: options.retryStrategy,
      slotsRefreshTimeout: connectWithinMs,
      redisOptions: {
        ...options,
        ...(username === '' ? {} : { username: decodeURIComponent(username) }),
        ...(password === '' ? {} : { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' ? { tls: {} } : {}),
      },
    },
  );
}

/** One line when they go and one when they are back, however often it is tried in between. */
function watch(client: Redis | Cluster, log: Log): void {
  let away = false;
  client.on('error', (error: Error) => {
    if (!away) log.error({ error }, 'the counters do not answer; each process counts by itself');
    away = true;
  });
  client.on('ready', () => {
    if (away) log.info({}, 'the counters answer again');
    away = false;
  });
}
