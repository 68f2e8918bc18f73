/** One answer and one charge for all requests of an account that carry the same Idempotency-Key and the same body. */
import { type Answer, definePlugin, type Exchange, type Host, type Next, type Part } from '../../core/contract.ts';
import { toGatewayError, UpstreamRefusal } from '../../core/errors.ts';
import { duration, size, z } from '../../core/schema.ts';
import { attempts, call, caller, type Database, database, ledger, usageReport } from '../../core/vocabulary.ts';
import { Calls, type Ending } from './calls.ts';
import { Copy } from './copy.ts';
import { type KeyedCall, readKey } from './key.ts';
import { readOrMakeOwner } from './owner.ts';
import { CallRows, type KeyedRows, type Lifetimes } from './rows.ts';
import { tellAgain, toldAnswer, toldError } from './told.ts';

const leaseMs = 60_000;
const renewIntervalMs = 15_000;
const flushIntervalMs = 200;
const expiryIntervalMs = 600_000;

const configSchema = z.strictObject({
  keep: duration()
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 30 * 86_400_000, 'must be from 1s to 30d')
    .prefault('24h')
    .describe('How long a key lives: its answer is given again for so long.'),
  max_bytes: size()
    .prefault('4MB')
    .describe('Largest answer that is kept; a repetition of a larger one is refused, not run again.'),
  finish: duration()
    .refine((milliseconds) => milliseconds <= 600_000, 'must be at most 10m')
    .prefault('5m')
    .describe('How long a call with a key goes on when its client leaves, so that the repetition finds its answer.'),
});

type Config = z.output<typeof configSchema>;

export default definePlugin<Config>({
  name: 'idempotency',
  config: configSchema,
  needs: [database],
  uses: [ledger],
  reads: [call, caller],
  awaits: [attempts],
  setup: (host, config) => setUpIdempotency(host, config, sqlRows),
});

async function sqlRows(host: Host, store: Database, lifetimes: Lifetimes): Promise<KeyedRows> {
  const owner = host.mode === 'serve' ? await readOrMakeOwner(host.directory, host.random) : '';
  return new CallRows(store, owner, lifetimes);
}

/** The plugin's setup with the table of the caller's choice. */
export async function setUpIdempotency(
  host: Host,
  config: Config,
  rowsOf: (host: Host, store: Database, lifetimes: Lifetimes) => Promise<KeyedRows>,
): Promise<Part> {
  const store = host.need(database);
  await store.migrate('idempotency', new URL('./migrations/', import.meta.url));
  const rows = await rowsOf(host, store, { keepMs: config.keep, leaseMs });
  const calls = new Calls({
    rows,
    clock: host.clock,
    log: host.log,
    mayBeCharged: (id) => mayBeCharged(host, id),
    safe: async () => host.find(ledger)?.safe(),
  });
  let left: readonly string[] = [];
  return {
    applies: (endpoint) => endpoint.method === 'POST' && (endpoint.states?.includes(call) ?? false),
    async handle(exchange, next) {
      const keyed = exchange.get(call).billable
        ? readKey(exchange.request, exchange.get(caller).accountId, exchange.id)
        : undefined;
      if (keyed === undefined) return next();
      const earlier = await calls.enter(keyed);
      return earlier === undefined
        ? run(exchange, next, keyed, calls, config)
        : tellAgain(earlier.told, earlier.requestId);
    },
    async start() {
      left = await rows.leftRunning();
      host.every(flushIntervalMs, 'keep answers of keyed calls', () => calls.flush());
      host.every(renewIntervalMs, 'renew keyed calls', () => calls.renew());
      host.every(expiryIntervalMs, 'forget old keys', () => rows.deleteExpired());
    },
    // The journal has been recovered by now: what it had of these calls is in the ledger.
    listening: () => rows.forsake(left),
    stop: () => calls.flush(),
  };
}

/**
 * A request whose process has died, or was silent: charged, charged perhaps (its hold is open), or not. What ran in vain
 * counts as charged: a second run could be billed by a vendor, and be charged, beside the answer that its process still
 * has. Without a ledger nothing is.
 */
async function mayBeCharged(host: Host, requestId: string): Promise<boolean | 'open' | 'unknown'> {
  const books = host.find(ledger);
  if (books === undefined) return false;
  const end = await books.endOf(requestId);
  if (end === undefined) return 'unknown';
  return end === 'open' ? 'open' : end === 'SETTLE' || end === 'in_vain';
}

/** Runs the call, and keeps what its client is told, also where the client is told it in vain. */
async function run(exchange: Exchange, next: Next, keyed: KeyedCall, calls: Calls, config: Config): Promise<Answer> {
  const copy = new Copy(config.max_bytes);
  let answer: Answer | undefined;
  let failure: { readonly error: unknown } | undefined;
  exchange.defer(() => calls.end(keyed, endingOf(exchange, copy, answer, failure)));
  exchange.outlive({ longestMs: config.finish, maxBytes: Number.POSITIVE_INFINITY });
  try {
    const given = await next();
    // Plugins further out, and the core, add headers of their own to this one answer; what is kept stays as it is now.
    answer = { ...given, headers: { ...given.headers } };
    given.body = copy.of(given.body);
    return given;
  } catch (error) {
    failure = { error };
    throw error;
  }
}

/** Kept is what was answered, and a failure that may have run: to run it again could be billed twice. */
function endingOf(
  exchange: Exchange,
  copy: Copy,
  answer: Answer | undefined,
  failure: { readonly error: unknown } | undefined,
): Ending {
  const ran = mayHaveRun(exchange);
  if (answer !== undefined) {
    if (answer.status >= 400 && !ran) return 'free';
    const body = copy.whole();
    return body === undefined ? 'lost' : { told: toldAnswer(answer.status, answer.headers, body) };
  }
  if (!ran) return 'free';
  const { signal } = exchange;
  const reason: unknown = signal.aborted ? signal.reason : failure?.error;
  const error = toGatewayError(reason);
  // A client that has left was told nothing.
  const told = error.kind === 'client_left' ? undefined : toldError(reason instanceof UpstreamRefusal ? reason : error);
  return told === undefined ? 'lost' : { told };
}

function mayHaveRun(exchange: Exchange): boolean {
  const report = exchange.find(usageReport);
  const sent = exchange.find(attempts)?.some(({ result }) => result !== 'refused' && result !== 'not_sent') ?? false;
  return sent || (report !== undefined && Object.keys(report.usage).length > 0);
}
