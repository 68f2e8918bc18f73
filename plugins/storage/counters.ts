/** Counters that several processes share: scripts on a Redis, a Valkey or a cluster of them. Loaded only if they are configured. */
import { Cluster, Redis } from 'ioredis';
import type { Host } from '../../core/contract/contract.ts';
import { markPassing } from '../../core/contract/errors.ts';
import { Outage } from '../../core/contract/outage.ts';
import type { CounterScript, Counters } from '../common/domain/counters.ts';

const connectWithinMs = 1_000;
const longestPauseMs = 2_000;
/** Answers in a row that fail until the counters count as away: a single one may be late. */
const failuresToBeAway = 3;
/** Unanswered orders of a stalled server; more are refused at once. */
const mostUnanswered = 10_000;

export interface OpenedCounters extends Counters {
  /** Wakes every process that listens. */
  publish(channel: string): void;
  /** Called for each message on this channel. */
  subscribe(channel: string, listener: () => void): void;
  /** A sentence where the server does not let this gateway in, as soon as it is known at the start. */
  refusal(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Connects in the background: while there is no connection, `run` fails at once. A command fails after `withinMs` without
 * an answer.
 */
export function openCounters(
  text: string,
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  withinMs: number,
): OpenedCounters {
  const client = connect(text);
  const known = new Set<string>();
  let listening: Redis | Cluster | undefined;
  let unanswered = 0;
  const name = namesOf(text);
  const refused = refusalOf(client, name);
  const health = new CountersHealth(client, name, { clock, log });
  return {
    healthy: () => health.isGood,
    awayMs: () => health.awayMs,
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
        const answer = await answered(command.call(client, keys.length, ...keys, ...values), withinMs);
        health.succeeded();
        return answer;
      } catch (error) {
        throw health.failed(error);
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
    refusal: () => refused,
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

/** Whether the counters give answers: their connection stands, and of the last answers one came in time. */
class CountersHealth {
  readonly #outage: Outage;
  #isConnected = false;
  #failures = 0;

  constructor(client: Redis | Cluster, name: string, { clock, log }: Pick<Host, 'clock' | 'log'>) {
    const began = 'the counters do not answer; each process counts by itself';
    const fields = { store: 'counters', counters: name, setting: 'storage.counters' };
    this.#outage = new Outage({ clock, log, began, over: 'the counters answer again', fields });
    let isFirst = true;
    client.on('error', (error: Error) => {
      // A start ends by the first refusal: no line beside.
      if (!isFirst || !refusals.test(reasonOf(error))) this.#outage.failed(markPassing(error));
      isFirst = false;
    });
    client.on('close', () => {
      this.#isConnected = false;
    });
    client.on('ready', () => {
      this.#isConnected = true;
      this.#failures = 0;
      this.#outage.succeeded();
    });
  }

  get isGood(): boolean {
    return this.#isConnected && this.#failures < failuresToBeAway;
  }

  get awayMs(): number {
    return this.#outage.lastsMs ?? 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#isConnected = true;
    this.#outage.succeeded();
  }

  failed(error: unknown): unknown {
    // Errors of a script: the counters answer. Replies of other kinds say that they take no commands.
    if (error instanceof Error && error.name === 'ReplyError' && error.message.startsWith('ERR ')) return error;
    this.#failures += 1;
    if (this.#failures >= failuresToBeAway || !this.#isConnected) this.#outage.failed(error);
    return this.#outage.mark(error);
  }
}

/** What Redis answers to a wrong or missing password, and to a user without the right. */
const refusals = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR (?:invalid password|.*AUTH))/;

/** A cluster's own error only says that no node answered. */
function reasonOf(error: Error & { lastNodeError?: Error }): string {
  return (error.lastNodeError ?? error).message;
}

/** Resolves when it is known whether the server lets this gateway in: with a sentence if it does not. */
function refusalOf(client: Redis | Cluster, name: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  client.once('error', (error: Error) => {
    const reason = reasonOf(error);
    if (!refusals.test(reason)) return resolve(undefined);
    return resolve(`The counters ${name} (storage.counters) refuse this gateway: ${reason.replace(/\.$/, '')}.`);
  });
  client.once('ready', () => resolve(undefined));
  // Servers that are away are no reason to wait.
  setTimeout(() => resolve(undefined), connectWithinMs).unref();
  return promise;
}

/** Without users and passwords. */
function namesOf(text: string): string {
  const urls = text.split(',').map((url) => new URL(url));
  return urls.map(({ protocol, host }) => `${protocol}//${host}`).join(', ');
}
