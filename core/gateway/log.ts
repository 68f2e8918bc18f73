/** The log on pino; masks what looks like a credential. */
import cluster from 'node:cluster';
import { write, writeSync } from 'node:fs';
import { format } from 'node:util';
import pino from 'pino';
import { isPassing } from '../contract/errors.ts';
import type { Clock, Log } from '../contract/host-tools.ts';
import { outageOf } from '../contract/outage.ts';
import { maskSecrets } from '../contract/secret.ts';
import { systemClock } from './system.ts';

/**
 * An error for the log: name, message, code, stack, and the same of its cause. Never a statement or its values: of a failed
 * statement it is the driver's error, and where the query builder was called. Failures that pass have no stack.
 */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, code, cause, query } = error as NodeJS.ErrnoException & { cause?: unknown; query?: unknown };
  const framesAt = (error.stack ?? '').indexOf('\n    at ', (error.stack ?? '').indexOf(message) + message.length);
  const frames = framesAt < 0 || isPassing(error) ? {} : { stack: error.stack!.slice(framesAt + 1) };
  // The query builder puts the statement and its parameters into the message.
  if (typeof query === 'string' && cause instanceof Error) return { ...(describeError(cause) as object), ...frames };
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...frames,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  };
}

const repeatAfterMs = 60_000;
/** Longer than any pause between two tries of what fails: a failure after it belongs to another outage. */
const quietMs = 6_000;
const mostSentences = 500;

/** Transient failures repeat many times a second: each message is logged at once, then once a minute with a count. */
class Repetitions {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #logged = new Map<string, { at: number; lastAt: number; times: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** How often the message was suppressed since it was last logged; undefined: this one is suppressed. */
  next(sentence: string): number | undefined {
    const now = this.#clock.monotonic();
    const earlier = this.#logged.get(sentence);
    const isRepeated = earlier !== undefined && now - earlier.at < repeatAfterMs && now - earlier.lastAt < quietMs;
    if (isRepeated) {
      earlier.lastAt = now;
      earlier.times += 1;
      return undefined;
    }
    if (this.#logged.size >= mostSentences) this.#logged.clear();
    this.#logged.set(sentence, { at: now, lastAt: now, times: 0 });
    return earlier?.times ?? 0;
  }
}

const flushIntervalMs = 100;
const retryMs = 10;
const pageLength = 64 * 1024;
const mostWaiting = 8 * 1024 * 1024;

/**
 * Standard output, written in pages: that costs 1 µs per line, against 20 µs for a stream write of each line.
 */
class PagedOutput {
  #page = '';
  /** Bytes that the running write has not written yet. */
  #unwritten: Buffer | undefined;
  #dropped = 0;

  constructor() {
    setInterval(() => this.#flush(), flushIntervalMs).unref();
    process.on('exit', () => {
      try {
        writeSync(1, this.#page);
      } catch {
        // Standard output is closed.
      }
    });
  }

  /** Lines are dropped, and counted, while the reader is far behind. */
  readonly write = (line: string): void => {
    if (this.#page.length > mostWaiting) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0 && this.#page.length < pageLength) {
      this.#page += `{"level":"warn","lines":${this.#dropped},"msg":"log lines were dropped: they were not read in time"}\n`;
      this.#dropped = 0;
    }
    this.#page += line;
    if (this.#page.length > pageLength) this.#flush();
  };

  /** One write at a time; later lines wait for the next. */
  #flush(): void {
    if (this.#unwritten !== undefined || this.#page === '') return;
    this.#unwritten = Buffer.from(this.#page);
    this.#page = '';
    this.#put();
  }

  /** A pipe may accept a part or nothing; a closed pipe does not stop the process. */
  #put(): void {
    const page = this.#unwritten!;
    write(1, page, 0, cluster.isWorker ? pieceOf(page) : page.length, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#put(), retryMs).unref();
      } else if (error === null && written < page.length) {
        this.#unwritten = page.subarray(written);
        this.#put();
      } else {
        this.#unwritten = undefined;
        if (this.#page.length > pageLength) this.#flush();
      }
    });
  }
}

/** Bytes that a pipe accepts atomically (POSIX, PIPE_BUF; Linux has 4,096): several processes write to it. */
const pieceBytes = 4_096;
const lineEnd = 0x0a;

/** How much of the page to write at once so that other processes' output does not split a line. Longer lines may be split. */
function pieceOf(page: Buffer): number {
  if (page.length <= pieceBytes) return page.length;
  const whole = page.lastIndexOf(lineEnd, pieceBytes - 1) + 1;
  return whole > 0 ? whole : page.indexOf(lineEnd) + 1 || page.length;
}

let output: PagedOutput | undefined;

export interface LevelledLog extends Log {
  /** Sets the minimum level. */
  setLevel(level: string): void;
}

/**
 * `level` is pino's; `silent` writes nothing. Lines go to standard output, or each to `write`; all but records are masked.
 * `gateway` is a member of each line: several gateways may share an output.
 */
export function createLog(
  level: string,
  write?: (line: string) => void,
  gateway?: string,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): LevelledLog {
  output ??= new PagedOutput();
  const put = write ?? output.write;
  const repetitions = new Repetitions(clock);
  const log = pino(
    {
      level,
      base: gateway === undefined ? null : { gateway },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
      hooks: {
        logMethod([fields, sentence], method) {
          const { error, work = '', outage } = fields as { error?: unknown; work?: string; outage?: true };
          const belongsTo = outage === undefined && error !== undefined ? outageOf(error) : undefined;
          if (belongsTo !== undefined) {
            belongsTo.failed(error, false);
            return;
          }
          const leftOut = outage === undefined && isPassing(error) ? repetitions.next(`${sentence} ${work}`) : 0;
          if (leftOut === undefined) return;
          method.call(this, leftOut === 0 ? fields : { ...(fields as object), times: leftOut }, sentence as string);
        },
      },
    },
    { write: (line: string) => put(maskSecrets(line)) },
  );
  let written = log.isLevelEnabled('info');
  const head = `{"level":"info",${gateway === undefined ? '' : `"gateway":"${gateway}",`}"msg":"`;
  return Object.assign(log, {
    record(message: string, json: string) {
      if (written) put(`${head}${message}",${json.slice(1)}\n`);
    },
    setLevel(changed: string) {
      log.level = changed;
      written = log.isLevelEnabled('info');
    },
  });
}

const printing = ['log', 'info', 'debug', 'warn', 'error', 'trace'] as const;

/** Output of packages and Node becomes lines of the log: in its form, and masked. For a process that serves. */
export function logPrinted(log: Pick<Log, 'warn'>): void {
  for (const name of printing)
    console[name] = (...words: unknown[]) => log.warn({ text: format(...words) }, 'a package prints');
  // Without Node's own listener, which prints; where it was switched off, nothing is written.
  const isPrinted = process.listenerCount('warning') > 0;
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (!isPrinted || warning.name === 'ExperimentalWarning') return;
    const { name, code } = warning as NodeJS.ErrnoException;
    log.warn({ warning: name, ...(code === undefined ? {} : { code }), text: warning.message }, 'a package warns');
  });
}
