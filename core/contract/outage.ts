/** An outage of a store, or of work that is repeated: one line in the log when it begins, at most one a minute while it lasts, one at its end. */
import { defineService } from './extensions.ts';
import type { Clock, Log } from './host-tools.ts';

/** Time between two lines about one outage. */
const repeatAfterMs = 60_000;
const mostCauses = 10;

export interface OutageOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Pick<Log, 'info' | 'error'>;
  readonly began: string;
  readonly over: string;
  /** Fields of each of its lines. */
  readonly fields: object;
}

const causes = new WeakMap<Error, Outage>();

/** The outage that an error, or what caused it, belongs to. */
export function outageOf(error: unknown): Outage | undefined {
  let at = error;
  for (let depth = 0; at instanceof Error && depth < mostCauses; depth += 1, at = at.cause) {
    const found = causes.get(at);
    if (found !== undefined) return found;
  }
  return undefined;
}

export class Outage {
  readonly #options: OutageOptions;
  /** Monotonic milliseconds. */
  #since: number | undefined;
  #failures = 0;
  /** When a line about failures was written. */
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isWritten = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** How long it lasts; undefined: there is none. */
  get lastsMs(): number | undefined {
    return this.#since === undefined ? undefined : this.#options.clock.monotonic() - this.#since;
  }

  /** The error belongs to this outage: it has no log line of its own. */
  mark<E>(error: E): E {
    if (error instanceof Error && outageOf(error) === undefined) causes.set(error, this);
    return error;
  }

  /** `isCertain`: a line is written unless this outage has one; otherwise only if none was written within the last minute. */
  failed(error: unknown, isCertain = true): void {
    const cause = outageOf(error);
    if (cause !== undefined && cause !== this) {
      cause.failed(error, false);
      return;
    }
    const { clock, log, began, fields } = this.#options;
    const now = clock.monotonic();
    const begins = this.#since === undefined;
    this.#since ??= now;
    this.#failures += 1;
    if (now - this.#writtenAt < repeatAfterMs && !(isCertain && !this.#isWritten)) return;
    this.#writtenAt = now;
    this.#isWritten = true;
    const so = begins ? {} : { failures: this.#failures, seconds: Math.round((now - this.#since) / 1_000) };
    // The member `outage` marks this line as the outage's own, so that it is not suppressed.
    log.error({ error, outage: true, ...fields, ...so }, began);
  }

  /** The failing work has succeeded since; a round with nothing to do is no success. */
  succeeded(): void {
    if (this.#since === undefined) return;
    const { clock, log, over, fields } = this.#options;
    const seconds = Math.round((clock.monotonic() - this.#since) / 1_000);
    if (this.#isWritten) log.info({ ...fields, failures: this.#failures, seconds }, over);
    this.#since = undefined;
    this.#failures = 0;
    this.#isWritten = false;
  }
}

/** Regular work of this process that fails, and for how long; not what fails because a store is away. */
export const regularWorks = defineService<{ failing(): readonly { readonly name: string; readonly forMs: number }[] }>(
  'regular works',
);
