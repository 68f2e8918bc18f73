/** The workers: take due tasks, run their next step, renew the lease meanwhile. Any number of processes may run one. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { orderFields } from '../../common/wire/trace.ts';
import { copy } from './copy.ts';
import { Creation } from './create.ts';
import type { Tools, WorkerContext } from './dependencies.ts';
import { endUncharged } from './final-states.ts';
import type { Live } from './live.ts';
import { endUnknown, expired, poll } from './poll.ts';
import type { From, StoredTask } from './rows.ts';
import { unknownOutcome } from './verdict.ts';

const fullMs = 5_000;

export class Engine {
  readonly #tools: Tools;
  readonly #workers: number;
  readonly #running = new Set<Promise<void>>();
  readonly #streamed = new Set<Promise<void>>();
  #streamingClients = 0;
  readonly #stopping = new AbortController();
  #taking: Promise<void> | undefined;
  #takeAgain = false;
  #stopped = false;
  readonly #onWake: () => void;

  /** `onWake` is called when this process may have made a task due. */
  constructor(tools: Tools, workers: number, onWake: () => void = () => {}) {
    this.#tools = tools;
    this.#workers = workers;
    this.#onWake = onWake;
  }

  /** Tasks that this process works on. */
  get active(): number {
    return this.#running.size;
  }

  /** Reserves capacity for one streaming client; returns its release. Throws overloaded if `most` clients stream already. */
  admit(most: number): () => void {
    if (Math.max(this.#streamingClients, this.#streamed.size) >= most) {
      const details = { retryAfterMs: fullMs };
      throw new GatewayError('overloaded', 'Too many images are being streamed at the moment.', details);
    }
    this.#streamingClients += 1;
    return () => {
      this.#streamingClients -= 1;
    };
  }

  /** Takes due tasks for the free workers. Resolves when they are taken, not when they are done. */
  turn(): Promise<void> {
    if (this.#taking !== undefined) {
      this.#takeAgain = true;
      return this.#taking;
    }
    this.#taking = this.#take().finally(() => {
      this.#taking = undefined;
      if (this.#takeAgain) {
        this.#takeAgain = false;
        this.wake();
      }
    });
    return this.#taking;
  }

  /** Like `turn`, without waiting; errors are logged. */
  wake(): void {
    this.#onWake();
    this.turn().catch((error: unknown) => {
      this.#tools.log.error({ error }, 'due tasks could not be taken; trying again');
    });
  }

  async #take(): Promise<void> {
    const free = this.#workers - this.#running.size;
    if (free <= 0 || this.#stopped) return;
    const { rows, random, timing } = this.#tools;
    const lease = random.bytes(12).toString('hex');
    const taken = await rows.take(lease, free, timing.leaseMs);
    for (const task of taken) {
      const work = this.#work(task, lease).finally(() => {
        this.#running.delete(work);
        this.wake();
      });
      this.#running.add(work);
    }
  }

  /**
   * Runs the next step of a task that was placed with this lease, for a client that streams it. It uses no worker, as
   * the client's own connection bounds it. Resolves when the step is done.
   */
  runStreamed(task: StoredTask, lease: string, live: Live): Promise<void> {
    const work = this.#work(task, lease, live).finally(() => {
      this.#streamed.delete(work);
      live.end();
      this.wake();
    });
    this.#streamed.add(work);
    return work;
  }

  async #work(task: StoredTask, lease: string, live?: Live): Promise<void> {
    const { rows, log, timing } = this.#tools;
    const renewing = setInterval(() => {
      rows.renew(task.id, lease, timing.leaseMs).catch((error: unknown) => {
        log.warn({ ...orderFields(task), error, task: task.id }, 'the lease of a task could not be renewed');
      });
    }, timing.leaseMs / 3);
    try {
      const { signal } = this.#stopping;
      await step(this.#tools, task, live === undefined ? { lease, signal } : { lease, signal, live });
    } catch (error) {
      // The lease expires, and another worker continues from the row.
      log.error({ ...orderFields(task), error, task: task.id, state: task.state }, 'a step of a task failed');
    } finally {
      clearInterval(renewing);
    }
  }

  /** Waits for running steps up to `withinMs`; then aborts them. Other processes continue them when their leases expire. */
  async stop(withinMs: number): Promise<void> {
    this.#stopped = true;
    await this.#taking?.catch(() => {});
    const all = Promise.allSettled([...this.#running, ...this.#streamed]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([all, late]);
    clearTimeout(timer);
    this.#stopping.abort(new Error('the gateway stops'));
    await Promise.allSettled([...this.#running, ...this.#streamed]);
  }
}

/** Runs one step of a task, by its row alone. */
async function step(tools: Tools, task: StoredTask, worker: WorkerContext): Promise<void> {
  const from: From = { states: [task.state], by: { lease: worker.lease } };
  switch (task.state) {
    case 'queued':
    case 'creating': {
      // A worker sent it and was lost, or is slow: it is never sent again.
      if (task.attempts.at(-1)?.result === 'running') return reconcile(tools, task, from);
      if (task.leftMs > 0) return new Creation(tools, task, worker).run();
      await endUncharged(tools, task, from, { state: 'failed', error: expired, attempts: task.attempts });
      return;
    }
    case 'reconciling':
      return endUnknown(tools, task, from, unknownOutcome);
    case 'running':
      return poll(tools, task, worker);
    case 'copying':
      return copy(tools, task, worker);
    default:
  }
}

/** The worker that sent it may only be slow: its outcome is accepted for a while. */
async function reconcile({ rows, timing, log }: Tools, task: StoredTask, from: From): Promise<void> {
  log.warn({ ...orderFields(task), task: task.id }, 'the worker that sent a task to its vendor was lost');
  await rows.move(task.id, from, { state: 'reconciling', dueMs: timing.reconcileMs });
}
