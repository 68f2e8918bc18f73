/** The process's log: pino, with everything that looks like a credential masked before it is written. */
import cluster from 'node:cluster';
import { write, writeSync } from 'node:fs';
import pino from 'pino';
import type { Log } from './contract.ts';
import { maskSecrets } from './secret.ts';

/** An error for the log: name, words, place, code, and the same of its cause. Its other members may hold values of statements. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, code, cause } = error as NodeJS.ErrnoException & { cause?: unknown };
  const stack = withoutValues(error.stack ?? '');
  return {
    name,
    message: withoutValues(error.message),
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  };
}

/** The query builder writes a failed statement's values into the message, on lines that begin with this word. */
function withoutValues(text: string): string {
  return text.replace(/^params:.*$/gm, 'params: ***');
}

const flushIntervalMs = 100;
const retryMs = 10;
const pageLength = 64 * 1024;
const mostWaiting = 8 * 1024 * 1024;

/**
 * Standard output by the page: a request's line costs a microsecond so, and twenty when each line is handed to a stream by
 * itself.
 */
class PagedOutput {
  #page = '';
  /** What a running write has not put out yet. */
  #unwritten: Buffer | undefined;
  #dropped = 0;

  constructor() {
    setInterval(() => this.#flush(), flushIntervalMs).unref();
    process.on('exit', () => {
      try {
        writeSync(1, this.#page);
      } catch {
        // Standard output is gone; nobody reads on.
      }
    });
  }

  /** Lines are dropped, and counted, while whoever reads them has fallen far behind. */
  readonly write = (line: string): void => {
    if (this.#page.length > mostWaiting) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0 && this.#page.length < pageLength) {
      this.#page += `{"level":"warn","lines":${this.#dropped},"msg":"log lines were dropped: nobody read them in time"}\n`;
      this.#dropped = 0;
    }
    this.#page += line;
    if (this.#page.length > pageLength) this.#flush();
  };

  /** One write at a time; what comes meanwhile waits for the next. */
  #flush(): void {
    if (this.#unwritten !== undefined || this.#page === '') return;
    this.#unwritten = Buffer.from(this.#page);
    this.#page = '';
    this.#put();
  }

  /** A pipe may take a part, or nothing for now; a reader that is gone is no reason to stop serving. */
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

/** What a pipe takes as a whole or not at all (POSIX, PIPE_BUF; Linux has 4,096): several processes write to it. */
const pieceBytes = 4_096;
const lineEnd = 0x0a;

/** How much of the page to write at once so that no other process's lines come in between a line. A longer one may be torn. */
function pieceOf(page: Buffer): number {
  if (page.length <= pieceBytes) return page.length;
  const whole = page.lastIndexOf(lineEnd, pieceBytes - 1) + 1;
  return whole > 0 ? whole : page.indexOf(lineEnd) + 1 || page.length;
}

let output: PagedOutput | undefined;

export interface LevelledLog extends Log {
  /** The least level of lines that are written from now on. */
  setLevel(level: string): void;
}

/**
 * `level` is pino's; `silent` writes nothing. Lines go to standard output, or each to `write`; all but records are masked.
 * `gateway` stands in each line: several may write to one output.
 */
export function createLog(level: string, write?: (line: string) => void, gateway?: string): LevelledLog {
  output ??= new PagedOutput();
  const put = write ?? output.write;
  const log = pino(
    {
      level,
      base: gateway === undefined ? null : { gateway },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
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
