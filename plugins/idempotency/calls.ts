/** Keyed calls of this process: who runs, who has ended, and what the database is still to be told of it. */
import type { Clock, Log } from '../../core/contract.ts';
import type { KeyedCall } from './key.ts';
import { inProgress, keyReused, lostAnswer, unavailable } from './refusals.ts';
import type { KeyedRows, KnownCall } from './rows.ts';
import type { Told } from './told.ts';

/** Memory for answers that a database, slow or away, has not got yet; beyond it answers are lost, and the log says so. */
const queueBytes = 64 * 2 ** 20;
/** Calls that wait for the database at most; beyond that keyed calls are refused. */
const queueCalls = 10_000;
const claimTries = 3;
const writesAtOnce = 8;

/** What became of a call: its answer, an answer that was not kept, or nothing, so that it may be tried again. */
export type Ending = { readonly told: Told } | 'lost' | 'free';

/** An answer that was given before, and to which request. */
export interface EarlierAnswer {
  readonly told: Told;
  readonly requestId: string;
}

export interface CallsOptions {
  readonly rows: KeyedRows;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the ledger has, or may still get, a charge, or an attempt that may have run, of a request that was left behind. */
  readonly mayBeCharged: (requestId: string) => Promise<boolean | 'open' | 'unknown'>;
  /** Resolves when no crash can take how calls have ended by now. */
  readonly safe: () => Promise<void>;
}

interface Entry {
  readonly call: KeyedCall;
  readonly startedAt: number;
  /** Set when it has ended; it stays here until the database knows. */
  ending?: Ending;
  /** The database's row is on its way out. */
  leaving?: Promise<void>;
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #flushing: Promise<void> | undefined;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /**
   * undefined: the call is this exchange's to run, and it must be ended. Else what was answered before. Throws `conflict`
   * where another body came under its key, its twin still runs, or the answer is lost; `overloaded` while the database
   * cannot be asked: a promise that cannot be kept is not given.
   */
  async enter(call: KeyedCall): Promise<EarlierAnswer | undefined> {
    const id = idOf(call);
    for (let near = this.#entries.get(id); near !== undefined; near = this.#entries.get(id)) {
      if (near.leaving === undefined) return this.#answerOf(near, call);
      // A call that came to nothing: its key is free in a moment.
      await near.leaving;
    }
    if (this.#entries.size >= queueCalls) throw unavailable();
    const entry: Entry = { call, startedAt: this.#options.clock.monotonic() };
    this.#entries.set(id, entry);
    let known: KnownCall | undefined;
    try {
      known = await this.#claim(call);
    } catch (error) {
      // The mark may have been made all the same.
      this.end(call, 'free');
      throw unavailable(error);
    }
    if (known === undefined) return undefined;
    this.#entries.delete(id);
    return earlierAnswer(known, call);
  }

  /** Nothing runs any more under the call's key. Known to this process at once, to the others in a moment. */
  end(call: KeyedCall, ending: Ending): void {
    const entry = this.#entries.get(idOf(call));
    if (entry === undefined || entry.call !== call || entry.ending !== undefined) return;
    entry.ending = ending;
    if (ending === 'free') entry.leaving = this.#free(entry);
    else this.#bytes += bytesOf(ending);
    if (this.#bytes > queueBytes) this.#lose(entry);
  }

  /** Tells the database what has ended. Rejects when it cannot be told; then it waits for the next time. */
  flush(): Promise<void> {
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Calls of this process are alive: others must not take them for forsaken. */
  async renew(): Promise<void> {
    const calls = [...this.#entries.values()].map(({ call }) => call);
    if (calls.length > 0) await this.#options.rows.renew(calls);
  }

  #answerOf({ call, startedAt, ending }: Entry, asked: KeyedCall): EarlierAnswer {
    if (call.fingerprint !== asked.fingerprint) throw keyReused();
    if (ending === 'lost') throw lostAnswer(call.requestId);
    if (ending === undefined || ending === 'free') throw inProgress(this.#options.clock.monotonic() - startedAt);
    return { told: ending.told, requestId: call.requestId };
  }

  /** undefined: the database has it as running by this exchange. Else what it knows of an earlier one. */
  async #claim(call: KeyedCall): Promise<KnownCall | undefined> {
    const { rows } = this.#options;
    for (let tries = claimTries; tries > 0; tries--) {
      if (await rows.claim(call)) return undefined;
      const known = await rows.find(call);
      if (known === undefined) continue;
      if (!known.forsaken || known.fingerprint !== call.fingerprint) return known;
      const charged = await this.#options.mayBeCharged(known.requestId);
      // A process that has not come back may have charged it in a journal that nobody else can read.
      if (charged === 'open' || (charged === 'unknown' && !known.returned)) return known;
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
      this.#options.log.warn({ error }, 'a key could not be freed; it is tried again');
      // Until then its twins are told to wait.
      delete entry.leaving;
    }
  }

  /** A crash that took that the call came to nothing would have it charged by an estimate, and its twin beside it. */
  async #freeRow(call: KeyedCall): Promise<void> {
    await this.#options.safe();
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

  /** The database is told how one call ended; then it needs no place here any more. */
  async #write(entry: Entry): Promise<void> {
    const { call, ending } = entry;
    const id = idOf(call);
    if (entry.leaving !== undefined) await entry.leaving;
    if (this.#entries.get(id) !== entry || ending === undefined) return;
    if (ending === 'free') await this.#freeRow(call);
    else {
      await this.#options.rows.finish({ call, told: ending === 'lost' ? undefined : ending.told });
      this.#bytes -= bytesOf(ending);
    }
    this.#entries.delete(id);
  }

  #lose(entry: Entry): void {
    this.#bytes -= bytesOf(entry.ending!);
    entry.ending = 'lost';
    this.#options.log.error(
      { request: entry.call.requestId },
      'the answer of a keyed call is lost: the database is away',
    );
  }
}

function earlierAnswer(known: KnownCall, call: KeyedCall): EarlierAnswer {
  const { fingerprint, requestId, state, ageMs, told } = known;
  if (fingerprint !== call.fingerprint) throw keyReused();
  if (state === 'running') throw inProgress(ageMs);
  if (told === undefined) throw lostAnswer(requestId);
  return { told, requestId };
}

/** What an answer takes in memory, about. */
function bytesOf(ending: Ending): number {
  return typeof ending === 'string' ? 0 : ending.told.body.length + 1_000;
}

/** Neither part holds a space: accounts are uuids, hashes hex. */
function idOf({ accountId, keyHash }: KeyedCall): string {
  return `${accountId} ${keyHash}`;
}
