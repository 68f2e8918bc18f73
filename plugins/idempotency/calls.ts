/** Keyed calls of this process: running ones, ended ones, and updates that the database still lacks. */
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import type { KeyedCall } from './key.ts';
import { inProgress, keyReused, lostAnswer, unavailable } from './refusals.ts';
import type { KeyedRows, KnownCall } from './rows.ts';
import type { StoredAnswer } from './stored-answer.ts';

/**
 * Memory for answers that a slow or absent database has not stored yet; beyond it answers are lost and a warning is
 * logged.
 */
const queueBytes = 64 * 2 ** 20;
/** The most calls that wait for the database; beyond that keyed calls are refused. */
const queueCalls = 10_000;
/** Memory for answers that are given again while the database is away: of those that it has stored, the last. */
const recentBytes = 16 * 2 ** 20;
const recentMs = 600_000;
const claimTries = 3;
const writesAtOnce = 8;

/** The end of a call: its answer, an answer that was not kept, or no execution, so that it may be retried. */
export type Ending = { readonly answer: StoredAnswer } | 'lost' | 'free';

/** An earlier answer and the request that produced it. */
export interface EarlierAnswer {
  readonly answer: StoredAnswer;
  readonly requestId: string;
}

export interface CallsOptions {
  readonly rows: KeyedRows;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether an abandoned request has, or may still get, a charge or an attempt that may have run, in the ledger. */
  readonly mayBeCharged: (requestId: string) => Promise<boolean | 'open' | 'unknown'>;
  /** Resolves when the ends of calls so far are durable. */
  readonly durable: () => Promise<void>;
  /** Whether the database answers. */
  readonly healthy: () => boolean;
  /** How long a key lives. */
  readonly keepMs: number;
}

interface Entry {
  readonly call: KeyedCall;
  readonly startedAt: number;
  /** Set when it has ended; the entry stays until the database has it. */
  ending?: Ending;
  /** The deletion of the database's row. */
  leaving?: Promise<void>;
  /** The running query: resolves with the earlier call in the database, or undefined when this one runs. */
  lookup?: Promise<KnownCall | undefined>;
}

/** An answer that the database has too. */
interface Recent {
  readonly call: KeyedCall;
  readonly answer: StoredAnswer;
  readonly endedAt: number;
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  readonly #recent = new Map<string, Recent>();
  #recentBytes = 0;
  #flushing: Promise<void> | undefined;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /**
   * Undefined: this exchange runs the call and must end it. Otherwise the earlier answer. Throws `conflict` where
   * its key was used with another body, a call with the same key is running, or the answer is lost; `overloaded`
   * while the database cannot be asked, because idempotency cannot be guaranteed: then only answers of this process are given again.
   */
  async enter(call: KeyedCall): Promise<EarlierAnswer | undefined> {
    const id = idOf(call);
    for (let local = this.#entries.get(id); local !== undefined; local = this.#entries.get(id)) {
      if (local.lookup !== undefined) {
        const known = await local.lookup;
        if (known !== undefined) return earlierAnswer(known, call);
        continue;
      }
      if (local.leaving === undefined) return this.#answerOf(local, call);
      // A call without a result: its key is freed in a moment.
      await local.leaving;
    }
    // A key that is new here may be taken elsewhere: without the database it is unknown.
    if (!this.#options.healthy()) return earlierAnswer(this.#recentOf(call), call);
    if (this.#entries.size >= queueCalls) throw unavailable();
    const entry: Entry = { call, startedAt: this.#options.clock.monotonic() };
    this.#entries.set(id, entry);
    entry.lookup = this.#lookUp(id, entry);
    const known = await entry.lookup;
    return known === undefined ? undefined : earlierAnswer(known, call);
  }

  /**
   * Asks the database once for all requests with this key that arrive meanwhile. Afterwards the entry is a running
   * call, or removed.
   */
  async #lookUp(id: string, entry: Entry): Promise<KnownCall | undefined> {
    try {
      const known = await this.#claim(entry.call);
      delete entry.lookup;
      if (known !== undefined) this.#entries.delete(id);
      return known;
    } catch (error) {
      delete entry.lookup;
      // The row may have been written despite the error.
      this.end(entry.call, 'free');
      return this.#recentOf(entry.call, error);
    }
  }

  /** Ends the call with this key. This process has the end at once, others in a moment. */
  end(call: KeyedCall, ending: Ending): void {
    const entry = this.#entries.get(idOf(call));
    if (entry === undefined || entry.call !== call || entry.ending !== undefined) return;
    entry.ending = ending;
    if (ending === 'free') entry.leaving = this.#free(entry);
    else this.#bytes += bytesOf(ending);
    if (this.#bytes > queueBytes) this.#lose(entry);
  }

  /** Stores ended calls in the database. Rejects when that fails; they are retried at the next flush. */
  flush(): Promise<void> {
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Renews this process's calls, so that other processes do not treat them as abandoned. */
  renew(): Promise<void> | undefined {
    const calls = [...this.#entries.values()].map(({ call }) => call);
    return calls.length === 0 ? undefined : this.#options.rows.renew(calls);
  }

  /** Whether the ends of calls wait to be written. */
  get waits(): boolean {
    return this.#flushing !== undefined || this.#entries.values().some(({ ending }) => ending !== undefined);
  }

  #answerOf({ call, startedAt, ending }: Entry, requested: KeyedCall): EarlierAnswer {
    if (call.fingerprint !== requested.fingerprint) throw keyReused();
    if (ending === 'lost') throw lostAnswer(call.requestId);
    // Nothing runs: the database could not be asked, and may have the key.
    if (ending === 'free') return earlierAnswer(this.#recentOf(requested), requested);
    if (ending === undefined) throw inProgress(this.#options.clock.monotonic() - startedAt);
    return { answer: ending.answer, requestId: call.requestId };
  }

  /** Undefined: the database has it as running by this exchange. Otherwise the earlier call. */
  async #claim(call: KeyedCall): Promise<KnownCall | undefined> {
    const { rows } = this.#options;
    for (let tries = claimTries; tries > 0; tries--) {
      if (await rows.claim(call)) return undefined;
      const known = await rows.find(call);
      if (known === undefined) continue;
      if (!known.abandoned || known.fingerprint !== call.fingerprint) return known;
      const charged = await this.#options.mayBeCharged(known.requestId);
      if (isUndecided(charged, known)) return known;
      if (charged === true) return { ...known, state: 'lost' };
      if (await rows.takeOver(call, known)) return undefined;
    }
    throw new Error('the row of a keyed call changes faster than it can be read');
  }

  async #free(entry: Entry): Promise<void> {
    const id = idOf(entry.call);
    try {
      await this.#freeRow(entry.call);
      this.#entries.delete(id);
    } catch (error) {
      this.#options.log.warn({ ...entry.call.logFields, error }, 'a key could not be freed; retrying');
      // Until then calls with the same key are refused as in progress.
      delete entry.leaving;
    }
  }

  /** The void must be durable first: a crash that lost it would charge the call by an estimate, beside its retry. */
  async #freeRow(call: KeyedCall): Promise<void> {
    await this.#options.durable();
    await this.#options.rows.free(call);
  }

  async #drain(): Promise<void> {
    const ended = [...this.#entries.values()].filter(({ ending }) => ending !== undefined);
    while (ended.length > 0) {
      const outcomes = await Promise.allSettled(ended.splice(0, writesAtOnce).map((entry) => this.#write(entry)));
      const failed = outcomes.find(({ status }) => status === 'rejected');
      if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    }
  }

  /** Stores the end of one call in the database; then it is removed here. */
  async #write(entry: Entry): Promise<void> {
    const { call, ending } = entry;
    const id = idOf(call);
    if (entry.leaving !== undefined) await entry.leaving;
    if (this.#entries.get(id) !== entry || ending === undefined) return;
    if (ending === 'free') await this.#freeRow(call);
    else {
      await this.#options.rows.finish({ call, answer: ending === 'lost' ? undefined : ending.answer });
      this.#bytes -= bytesOf(ending);
      if (ending !== 'lost')
        this.#remember(id, { call, answer: ending.answer, endedAt: this.#options.clock.monotonic() });
    }
    this.#entries.delete(id);
  }

  #remember(id: string, recent: Recent): void {
    this.#forget(id);
    this.#recent.set(id, recent);
    this.#recentBytes += bytesOf({ answer: recent.answer });
    for (const oldest of this.#recent.keys()) {
      if (this.#recentBytes <= recentBytes) break;
      this.#forget(oldest);
    }
  }

  /** The answer that this process has stored under the key a while ago. */
  #recentOf(call: KeyedCall, cause?: unknown): KnownCall {
    const { clock, keepMs } = this.#options;
    const known = this.#recent.get(idOf(call));
    if (known === undefined) throw unavailable(cause);
    const ageMs = clock.monotonic() - known.endedAt;
    if (ageMs >= Math.min(recentMs, keepMs)) throw unavailable(cause);
    const { fingerprint, requestId } = known.call;
    return {
      fingerprint,
      requestId,
      state: 'answered',
      abandoned: false,
      returned: false,
      ageMs,
      answer: known.answer,
    };
  }

  #forget(id: string): void {
    const known = this.#recent.get(id);
    if (known === undefined) return;
    this.#recent.delete(id);
    this.#recentBytes -= bytesOf({ answer: known.answer });
  }

  #lose(entry: Entry): void {
    this.#bytes -= bytesOf(entry.ending!);
    entry.ending = 'lost';
    this.#options.log.error({ ...entry.call.logFields }, 'the answer of a keyed call is lost: the database is away');
  }
}

/** A process that has not returned may have charged it in a journal that no other process can read. */
function isUndecided(charged: boolean | 'open' | 'unknown', { returned }: KnownCall): boolean {
  return charged === 'open' || (charged === 'unknown' && !returned);
}

function earlierAnswer(known: KnownCall, call: KeyedCall): EarlierAnswer {
  const { fingerprint, requestId, state, ageMs, answer } = known;
  if (fingerprint !== call.fingerprint) throw keyReused();
  if (state === 'running') throw inProgress(ageMs);
  if (answer === undefined) throw lostAnswer(requestId);
  return { answer, requestId };
}

/** The approximate memory of an answer. */
function bytesOf(ending: Ending): number {
  return typeof ending === 'string' ? 0 : ending.answer.body.length + 1_000;
}

/** Neither value contains a space: accounts are UUIDs, hashes are hex. */
function idOf({ accountId, keyHash }: KeyedCall): string {
  return `${accountId} ${keyHash}`;
}
