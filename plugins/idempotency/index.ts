/** One answer and one charge for all requests of an account with the same Idempotency-Key and the same body. */

import {
  definePlugin,
  type Exchange,
  type Host,
  type Next,
  type Outcome,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { duration, size, z } from '../../core/contract/schema.ts';
import { toGatewayError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { caller } from '../common/domain/accounts.ts';
import { attempts, call, keyedCalls, usageReport } from '../common/domain/calls.ts';
import { type Database, database, isUndecided } from '../common/domain/database.ts';
import { ledger, type ServedBy, servedBy } from '../common/domain/ledger.ts';
import { readOrMakeOwner } from '../common/kit/jobs/owner.ts';
import { BodyCopy } from '../common/wire/answer-body.ts';
import { Calls, type Ending } from './calls.ts';
import { type KeyedCall, readKey } from './key.ts';
import { CallRows, type KeyedRows, type Lifetimes } from './rows.ts';
import { replayAnswer, storedAnswer, storedError } from './stored-answer.ts';

const leaseMs = 60_000;
const renewIntervalMs = 15_000;
const flushIntervalMs = 200;
const expiryIntervalMs = 600_000;

const configSchema = z.strictObject({
  keep: duration()
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 30 * 86_400_000, 'must be from 1s to 30d')
    .prefault('24h')
    .describe(
      'How long a key lives: its answer is given again for so long. Raise it when clients repeat calls after a day.',
    ),
  max_bytes: size()
    .prefault('4MB')
    .describe(
      'Largest answer that is kept; a repetition of a larger one is refused, not run again. Raise it when clients repeat calls with large answers.',
    ),
  finish: duration()
    .refine((milliseconds) => milliseconds <= 600_000, 'must be at most 10m')
    .prefault('5m')
    .describe(
      'How long a call with a key goes on when its client leaves, so that the repetition finds its answer. Raise it for models that answer slowly.',
    ),
});

type Config = z.output<typeof configSchema>;

export default definePlugin<Config>({
  name: 'idempotency',
  config: configSchema,
  services: { requires: [database], optional: [ledger], provides: [keyedCalls] },
  requires: [call, caller],
  requiresAtEnd: [attempts],
  setup: (host, config) => setUpIdempotency(host, config, sqlRows),
});

async function sqlRows(host: Host, store: Database, lifetimes: Lifetimes): Promise<KeyedRows> {
  const owner = host.mode === 'serve' ? await readOrMakeOwner(host.directory, host.random) : '';
  return new CallRows(store, owner, lifetimes);
}

/** Sets the plugin up with the given table. */
export async function setUpIdempotency(
  host: Host,
  config: Config,
  rowsOf: (host: Host, store: Database, lifetimes: Lifetimes) => Promise<KeyedRows>,
): Promise<PluginInstance> {
  const store = host.get(database);
  await store.migrate('idempotency', new URL('./migrations/', import.meta.url));
  const rows = await rowsOf(host, store, { keepMs: config.keep, leaseMs });
  const calls = new Calls({
    rows,
    clock: host.clock,
    log: host.log,
    mayBeCharged: (id) => mayBeCharged(host, id),
    durable: async () => host.find(ledger)?.safe(),
    healthy: () => store.healthy(),
    keepMs: config.keep,
  });
  host.provide(keyedCalls, { keepMs: config.keep });
  let left: readonly string[] = [];
  return {
    applies: (endpoint) => endpoint.method === 'POST' && (endpoint.setsOnOpen?.includes(call) ?? false),
    // A retry gets the stored answer even if the account could not pay for another call.
    admit: ({ request }) => (request.headers['idempotency-key'] === undefined ? undefined : 'later'),
    handle(exchange, next) {
      const hasKey = exchange.request.headers['idempotency-key'] !== undefined && exchange.get(call).billable;
      const keyed = hasKey ? readKey(exchange) : undefined;
      if (keyed === undefined) return next();
      return calls
        .enter(keyed)
        .then((earlier) =>
          earlier === undefined
            ? run(exchange, next, keyed, calls, config)
            : replayAnswer(earlier.answer, earlier.requestId),
        );
    },
    lifecycle: {
      async start() {
        left = await rows.findRunning();
        host.every(flushIntervalMs, 'keep answers of keyed calls', () => (calls.waits ? calls.flush() : undefined));
        host.every(renewIntervalMs, 'renew keyed calls', () => calls.renew());
        host.every(expiryIntervalMs, 'forget old keys', () => rows.deleteExpired());
      },
      // The journal has been recovered by now: its records of these calls are in the ledger.
      listening: () => rows.abandon(left),
      stop: () => calls.flush(),
    },
  };
}

/**
 * Whether a request of a dead or silent process was charged: yes, possibly (money is set aside for it), or no. A request
 * that ran in vain counts as charged: a second run could be billed by a vendor, and be charged, beside the answer
 * that its process still has. Without a ledger it is never charged.
 */
async function mayBeCharged(host: Host, requestId: string): Promise<boolean | 'open' | 'unknown'> {
  const ledgerService = host.find(ledger);
  if (ledgerService === undefined) return false;
  const end = await ledgerService.endOf(requestId);
  if (end === undefined) return 'unknown';
  return end === 'open' ? 'open' : end === 'charged' || end === 'in_vain';
}

/** Runs the call and stores its answer, even if the client has disconnected. */
async function run(exchange: Exchange, next: Next, keyed: KeyedCall, calls: Calls, config: Config): Promise<Answer> {
  const isKept = exchange.find(caller)?.retention !== 'none';
  const copy = new BodyCopy(isKept ? config.max_bytes : -1);
  let answer: Answer | undefined;
  let failure: { readonly error: unknown } | undefined;
  let served: ServedBy | undefined;
  exchange.defer((outcome) => {
    const isReplaced = answer !== undefined && (exchange.find(servedBy) !== served || isRefused(answer, outcome));
    const ending = isReplaced ? replacedEnding(exchange) : endingOf(exchange, copy, answer, failure);
    // That the call ran is known, and what it was answered with is not.
    calls.end(keyed, isKept || ending === 'free' ? ending : 'lost');
  });
  exchange.continueAfterDisconnect({ longestMs: config.finish, maxBytes: Number.POSITIVE_INFINITY });
  try {
    const given = await next();
    // Outer plugins and the core add headers to this one answer; the stored answer stays as it is now.
    answer = { ...given, headers: { ...given.headers } };
    served = exchange.find(servedBy);
    given.body = copy.of(given.body);
    return given;
  } catch (error) {
    failure = { error };
    throw error;
  }
}

/** A plugin above has thrown an error after the answer. */
function isRefused(answer: Answer, { kind, status }: Outcome): boolean {
  return kind === 'complete' && status >= 400 && answer.status < 400;
}

/** What a plugin above has kept from the client, who may not have paid for it, is not given to a repetition. */
function replacedEnding(exchange: Exchange): Ending {
  return mayHaveRun(exchange) ? 'lost' : 'free';
}

/** Answers are stored, and failures of calls that may have run: running those again could be billed twice. */
function endingOf(
  exchange: Exchange,
  copy: BodyCopy,
  answer: Answer | undefined,
  failure: { readonly error: unknown } | undefined,
): Ending {
  const ran = mayHaveRun(exchange) || isUndecided(failure?.error);
  if (answer !== undefined) {
    if (answer.status >= 400 && !ran) return 'free';
    const body = copy.whole();
    return body === undefined ? 'lost' : { answer: storedAnswer(answer.status, answer.headers, body) };
  }
  if (!ran) return 'free';
  const { signal } = exchange;
  const reason: unknown = signal.aborted ? signal.reason : failure?.error;
  const error = toGatewayError(reason);
  // A disconnected client received nothing.
  const storedForm =
    error.kind === 'client_left' ? undefined : storedError(reason instanceof UpstreamRefusal ? reason : error);
  return storedForm === undefined ? 'lost' : { answer: storedForm };
}

function mayHaveRun(exchange: Exchange): boolean {
  const report = exchange.find(usageReport);
  const sent = exchange.find(attempts)?.some(({ result }) => result !== 'refused' && result !== 'not_sent') ?? false;
  return sent || (report !== undefined && Object.keys(report.usage).length > 0);
}
