/** The workers: take what is due, do its next step, keep the lease while they work. Any number of processes may run one. */
import { GatewayError } from '../../core/errors.ts';
import { copy } from './copy.ts';
import { Creation } from './create.ts';
import { giveUp } from './ends.ts';
import type { Live } from './live.ts';
import { expired, giveUpUnknown, poll } from './poll.ts';
import type { From, StoredTask } from './rows.ts';
import type { Hand, Tools } from './tools.ts';
import { unknownOutcome } from './verdict.ts';

const fullMs = 5_000;

export class Engine {
  readonly #tools: Tools;
  readonly #workers: number;
  readonly #running = new Set<Promise<void>>();
  readonly #followed = new Set<Promise<void>>();
  #lookers = 0;
  readonly #stopping = new AbortController();
  #taking: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(tools: Tools, workers: number) {
    this.#tools = tools;
    this.#workers = workers;
  }

  /** Tasks that this process works on now. */
  get active(): number {
    return this.#running.size;
  }

  /** A place for one who looks on, and how it is given back. Throws overloaded where `most` look on already. */
  admit(most: number): () => void {
    if (Math.max(this.#lookers, this.#followed.size) >= most) {
      const details = { retryAfterMs: fullMs };
      throw new GatewayError('overloaded', 'Too many images are being streamed at the moment.', details);
    }
    this.#lookers += 1;
    return () => {
      this.#lookers -= 1;
    };
  }

  /** Takes what is due, as far as workers are free. Resolves when it was taken, not when it is done. */
  turn(): Promise<void> {
    if (this.#taking !== undefined) {
      this.#again = true;
      return this.#taking;
    }
    this.#taking = this.#take().finally(() => {
      this.#taking = undefined;
      if (this.#again) {
        this.#again = false;
        this.wake();
      }
    });
    return this.#taking;
  }

  /** As `turn`, for whoever does not wait. */
  wake(): void {
    this.turn().catch((error: unknown) => {
      this.#tools.log.error({ error }, 'tasks that are due could not be taken; they are tried again');
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
   * The next step of a task that came with this lease, for somebody who looks on; beside the workers, as the client's own
   * connection is the limit of it. Resolves when it is done.
   */
  follow(task: StoredTask, lease: string, live: Live): Promise<void> {
    const work = this.#work(task, lease, live).finally(() => {
      this.#followed.delete(work);
      live.end();
      this.wake();
    });
    this.#followed.add(work);
    return work;
  }

  async #work(task: StoredTask, lease: string, live?: Live): Promise<void> {
    const { rows, log, timing } = this.#tools;
    const renewing = setInterval(() => {
      rows.renew(task.id, lease, timing.leaseMs).catch((error: unknown) => {
        log.warn({ error, task: task.id }, 'the lease of a task could not be renewed');
      });
    }, timing.leaseMs / 3);
    try {
      const { signal } = this.#stopping;
      await step(this.#tools, task, live === undefined ? { lease, signal } : { lease, signal, live });
    } catch (error) {
      // The lease runs out, and somebody goes on from what the row says.
      log.error({ error, task: task.id, state: task.state }, 'a step of a task failed');
    } finally {
      clearInterval(renewing);
    }
  }

  /** Lets running steps end within the time; then they are broken off, and go on elsewhere when their leases run out. */
  async stop(withinMs: number): Promise<void> {
    this.#stopped = true;
    await this.#taking?.catch(() => {});
    const all = Promise.allSettled([...this.#running, ...this.#followed]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([all, late]);
    clearTimeout(timer);
    this.#stopping.abort(new Error('the gateway stops'));
    await Promise.allSettled([...this.#running, ...this.#followed]);
  }
}

/** One step of a task, by what its row says and by nothing else. */
export async function step(tools: Tools, task: StoredTask, hand: Hand): Promise<void> {
  const mine: From = { states: [task.state], by: { lease: hand.lease } };
  switch (task.state) {
    case 'queued':
    case 'creating': {
      // Somebody has sent it and was lost, or is slow: it is never sent again.
      if (task.attempts.at(-1)?.result === 'running') return reconcile(tools, task, mine);
      if (task.leftMs > 0) return new Creation(tools, task, hand).run();
      await giveUp(tools, task, mine, { state: 'failed', error: expired, attempts: task.attempts });
      return;
    }
    case 'reconciling':
      return giveUpUnknown(tools, task, mine, unknownOutcome);
    case 'running':
      return poll(tools, task, hand);
    case 'copying':
      return copy(tools, task, hand);
    default:
  }
}

/** Whoever sent it may only have been slow: for a while its answer is still taken. */
async function reconcile({ rows, timing, log }: Tools, task: StoredTask, mine: From): Promise<void> {
  log.warn({ task: task.id }, 'whoever sent a task to its vendor was lost');
  await rows.move(task.id, mine, { state: 'reconciling', dueMs: timing.reconcileMs });
}
