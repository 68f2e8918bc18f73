/** Drivers in a thread of their own, as the thread that serves requests sees them. */
import { Worker } from 'node:worker_threads';
import type { DriverOptions } from './driver.ts';
import { unavailable } from './passing.ts';
import type { Driver, Rows, Statement } from './pool.ts';

/** A message to the thread: open a driver, run a statement on it, end it. */
export type Order =
  | { readonly kind: 'open'; readonly driver: number; readonly options: DriverOptions }
  | { readonly kind: 'run'; readonly driver: number; readonly call: number; readonly statement: Statement }
  | { readonly kind: 'end'; readonly driver: number; readonly call: number; readonly timeoutSeconds: number };

/** A message from the thread: a call's rows or error, and that a driver's connection is gone. */
export type Report =
  | { readonly kind: 'done'; readonly call: number; readonly rows: Rows; readonly command: string | undefined }
  | { readonly kind: 'failed'; readonly call: number; readonly error: Readonly<Record<string, unknown>> }
  | { readonly kind: 'closed'; readonly driver: number };

type Call = Pick<PromiseWithResolvers<Rows>, 'resolve' | 'reject'> & { readonly driver: number };

/** One thread for all drivers of the process. It keeps the process alive only while a driver is open, and is reused by later drivers. */
class DriverThread {
  readonly #worker: Worker;
  readonly #onClose = new Map<number, () => void>();
  readonly #calls = new Map<number, Call>();
  #numbers = 0;

  constructor() {
    // Node strips the types by itself, so the thread needs none of the loaders that this one was started with.
    this.#worker = new Worker(new URL('./thread-entry.ts', import.meta.url), { execArgv: [] });
    this.#worker.unref();
    this.#worker.on('message', (report: Report) => this.#take(report));
    this.#worker.on('error', (error) => this.#fail(error as Error));
    this.#worker.on('exit', () => this.#fail(unavailable('The thread of the database drivers has ended.')));
  }

  open(options: DriverOptions, onClose: () => void): Driver {
    const driver = ++this.#numbers;
    this.#onClose.set(driver, onClose);
    this.#worker.ref();
    this.#order({ kind: 'open', driver, options });
    return {
      run: (statement) => this.#call(driver, (call) => ({ kind: 'run', driver, call, statement })),
      end: async (timeoutSeconds) => {
        if (!this.#onClose.delete(driver)) return;
        await this.#call(driver, (call) => ({ kind: 'end', driver, call, timeoutSeconds }));
        if (this.#onClose.size === 0 && this.#calls.size === 0) this.#worker.unref();
      },
    };
  }

  #call(driver: number, order: (call: number) => Order): Promise<Rows> {
    const call = ++this.#numbers;
    const { promise, resolve, reject } = Promise.withResolvers<Rows>();
    this.#calls.set(call, { driver, resolve, reject });
    this.#order(order(call));
    return promise;
  }

  #order(order: Order): void {
    this.#worker.postMessage(order);
  }

  #take(report: Report): void {
    if (report.kind === 'closed') {
      this.#onClose.get(report.driver)?.();
      return;
    }
    const call = this.#calls.get(report.call);
    this.#calls.delete(report.call);
    if (report.kind === 'failed') call?.reject(Object.assign(new Error(String(report.error['message'])), report.error));
    else call?.resolve(Object.assign(report.rows, { command: report.command }));
  }

  /** Every driver of a thread that is gone is gone with it; the next one is opened in a new thread. */
  #fail(error: Error): void {
    if (current === this) current = undefined;
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
    for (const onClose of [...this.#onClose.values()]) onClose();
    this.#onClose.clear();
  }
}

let current: DriverThread | undefined;

/** Starts the thread before the first driver is known. */
export function warmUpThread(): void {
  current ??= new DriverThread();
}

/** A driver in the thread of all drivers. `onClose` is called when its connection is gone. */
export function openThreadDriver(options: DriverOptions, onClose: () => void): Driver {
  current ??= new DriverThread();
  return current.open(options, onClose);
}
