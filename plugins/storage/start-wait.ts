/** Waits at the start until the database answers, logs that it waits, and ends with one sentence when it does not. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../core/contract/host-tools.ts';
import { reasons } from './passing.ts';

const betweenTriesMs = 250;
const reportIntervalMs = 5_000;

export interface StartWaitOptions {
  /** The database as logs may name it. */
  readonly name: string;
  /** How long it may take until it answers; 0: the first failure is final. */
  readonly limitMs: number;
  readonly log: Log;
  /** Asked after a failure: a sentence where waiting cannot help. */
  readonly check?: () => Promise<string | undefined>;
}

/** One for each database: every step of a start that may be its first statement goes through `run`. */
export class StartWait {
  readonly #options: StartWaitOptions;

  constructor(options: StartWaitOptions) {
    this.#options = options;
  }

  /**
   * Resolves with what `work` gives. While it fails because the database cannot be reached it is tried again, so it must be
   * safe to repeat. Rejects with a sentence when the time is over or the database refuses this gateway; other errors pass.
   * Once `work` calls `answered` with what it does now, it may take as long as it needs.
   */
  async run<T>(work: (answered: (reason: string) => void) => Promise<T>): Promise<T> {
    const { limitMs } = this.#options;
    const over = new AbortController();
    const limit = () => (limitMs === 0 ? undefined : setTimeout(() => over.abort(), limitMs));
    let timer = limit();
    let waitedMs = 0;
    let reason = 'it has not answered yet';
    let isAnswered = false;
    const answered = (doing: string) => {
      clearTimeout(timer);
      isAnswered = true;
      reason = doing;
    };
    const reporter = setInterval(() => {
      waitedMs += reportIntervalMs;
      this.#report(waitedMs, isAnswered, reason);
    }, reportIntervalMs);
    try {
      for (;;) {
        const outcome = await endsBefore(work(answered), over.signal);
        if ('value' in outcome) return outcome.value;
        const { error } = outcome;
        if (error !== undefined) reason = await this.#reasonToWait(error);
        if (isAnswered) timer = limit();
        isAnswered = false;
        if (over.signal.aborted || limitMs === 0) throw this.#gaveUp(reason);
        await pause(betweenTriesMs, undefined, { signal: over.signal }).catch(() => undefined);
        if (over.signal.aborted) throw this.#gaveUp(reason);
      }
    } finally {
      clearTimeout(timer);
      clearInterval(reporter);
    }
  }

  #report(waitedMs: number, isAnswered: boolean, reason: string): void {
    const { name, limitMs, log } = this.#options;
    const [waited, limit] = [waitedMs, limitMs].map((milliseconds) => Math.round(milliseconds / 1_000));
    const most = isAnswered ? '' : ` of ${limit} s`;
    log.warn({}, `waiting for the database ${name} for ${waited} s${most}: ${reason}`);
  }

  #gaveUp(reason: string): Error {
    const { name, limitMs } = this.#options;
    const how = limitMs === 0 ? '' : ` within ${Math.round(limitMs / 1_000)} s (storage.start_timeout)`;
    return new Error(`The database ${name} did not answer${how}: ${reason}.`);
  }

  /** Says in words why the start waits, where waiting can help. Throws the error itself, or a sentence for what the database refuses. */
  async #reasonToWait(error: unknown): Promise<string> {
    const { code, message } = said(error);
    const known = reasons.get(code ?? '');
    if (known !== undefined) {
      const final = await this.#options.check?.();
      if (final !== undefined) throw new Error(final);
      return known;
    }
    if (code !== undefined && refusals.has(code))
      throw new Error(`The database ${this.#options.name} (storage.database) refuses this gateway: ${message}.`);
    if (code !== undefined && distrust.test(code))
      throw new Error(
        `The certificate of the database ${this.#options.name} is not trusted, which storage.database asks for (sslmode): ${message}.`,
      );
    throw error;
  }
}

/** A wrong password, role, database or right, a full disk, a server that only reads: only an operator can change that. */
const refusals = new Set(['28000', '28P01', '3D000', '42501', '53100', '25006']);

/** What Node says of a certificate. */
const distrust = /CERT|VERIFY_LEAF/;

/** The innermost error with a code: drizzle wraps the driver's, and Node gathers those of several addresses. */
function said(error: unknown): { code: string | undefined; message: string } {
  let found = {
    code: undefined as string | undefined,
    message: error instanceof Error ? error.message : String(error),
  };
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') found = { code, message: at.message };
  }
  return found;
}

type Ended<T> = { readonly value: T } | { readonly error: unknown };

/** How the work ended; without an error of its own when the signal came first. */
async function endsBefore<T>(work: Promise<T>, signal: AbortSignal): Promise<Ended<T>> {
  const ended = work.then(
    (value): Ended<T> => ({ value }),
    (error: unknown): Ended<T> => ({ error }),
  );
  const { promise, resolve } = Promise.withResolvers<Ended<T>>();
  const abort = () => resolve({ error: undefined });
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([ended, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
