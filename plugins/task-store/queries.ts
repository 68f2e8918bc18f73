/** What clients ask of a task they have: its state, its file, its end. An id that is not theirs is the same 404 as one of nobody. */
import type { Answer, Exchange } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { caller } from '../../core/vocabulary.ts';
import type { MediaKind, Shape } from './contract.ts';
import { giveUp } from './ends.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { imageTask, videoTask } from './shapes/index.ts';
import { json } from './taking.ts';
import { targetOf } from './targets.ts';
import type { Tools } from './tools.ts';
import { isFinal, viewOf } from './view.ts';

const idForm = /^task_[0-9a-f]{32}$/;
const cancelTimeoutMs = 30_000;
const cancelled: TaskError = { code: 'cancelled', message: 'The task was cancelled.' };

/** Which tasks an endpoint speaks of, and how. */
export interface Scope {
  /** undefined: of every kind, each in the shape of its kind. */
  readonly kind: MediaKind | undefined;
  readonly shape?: Shape;
}

export class Queries {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  async one(exchange: Exchange, scope: Scope): Promise<Answer> {
    return json(wordOf(await this.#find(exchange, scope), exchange, scope, this.#tools));
  }

  /** Cancels what nobody has begun to make; 409 for what has begun. */
  async cancel(exchange: Exchange, scope: Scope): Promise<Answer> {
    const task = await this.#find(exchange, scope);
    await this.takeBack(task, exchange.signal);
    const { id, accountId } = task;
    return json(wordOf((await this.#tools.rows.find(id, accountId))!, exchange, scope, this.#tools));
  }

  /** Cancels a task of which it is known that it may be; one that is cancelled already stays so. */
  async takeBack(task: StoredTask, signal: AbortSignal): Promise<void> {
    if (task.state === 'cancelled' || (await this.#takeBack(task, signal))) return;
    const message = isFinal(task.state) ? 'The task has ended.' : 'The task has begun and cannot be cancelled.';
    throw new GatewayError('conflict', message, { code: 'task_not_cancellable', shouldRetry: false });
  }

  /** The first file of what was made. */
  async content(exchange: Exchange, scope: Scope): Promise<Answer> {
    const variant = exchange.request.query.get('variant') ?? 'video';
    if (variant !== 'video') {
      const message = 'The parameter "variant" must be video: nothing else is kept.';
      throw new GatewayError('invalid_request', message, { field: 'variant' });
    }
    const task = await this.#find(exchange, scope);
    const [first] = task.results;
    if (first === undefined)
      throw new GatewayError('not_found', 'There is no file of this task (yet).', { code: 'no_content' });
    return this.#tools.files.answer(task.accountId, first.id, exchange);
  }

  async #find(exchange: Exchange, { kind }: Scope): Promise<StoredTask> {
    const id = exchange.request.params['id'] ?? '';
    const task = idForm.test(id) ? await this.#tools.rows.find(id, exchange.get(caller).accountId) : undefined;
    if (task === undefined || (kind !== undefined && task.kind !== kind)) throw noSuchTask();
    return task;
  }

  async #takeBack(task: StoredTask, signal: AbortSignal): Promise<boolean> {
    const bad = { state: 'cancelled', error: cancelled, attempts: task.attempts } as const;
    const departed = task.attempts.at(-1);
    // Between two tries nothing is under way; a worker that departs now is told by its own statement that it came late.
    if (task.state === 'queued' || (task.state === 'creating' && departed?.result !== 'running')) {
      const from: From = { states: ['queued', 'creating'], by: { departure: departed?.number ?? 0 } };
      return giveUp(this.#tools, task, from, bad);
    }
    if (task.state !== 'running' || !(await this.#vendorTakesBack(task, signal))) return false;
    const attempts = task.attempts.map((each) => (each === departed ? { ...each, result: 'refused' as const } : each));
    return giveUp(this.#tools, task, { states: ['running'], by: 'anybody' }, { ...bad, attempts });
  }

  async #vendorTakesBack(task: StoredTask, signal: AbortSignal): Promise<boolean> {
    const { catalog, providers, adapters, vendors } = this.#tools;
    const last = task.attempts.at(-1);
    const found = last && targetOf(last, catalog.find(task.model), providers, adapters);
    const wanted = found?.adapter.tasks?.cancel?.(task.vendorId ?? '');
    if (found === undefined || wanted === undefined || task.vendorId === undefined) return false;
    try {
      const { status } = await vendors.ask(wanted, found.target, cancelTimeoutMs, signal);
      return status >= 200 && status < 300;
    } catch {
      // Nobody knows: the task goes on, and tells in its time.
      return false;
    }
  }
}

function noSuchTask(): GatewayError {
  return new GatewayError('not_found', 'There is no task of this id.', { code: 'task_not_found' });
}

/** The task in the endpoint's protocol, else in the one of its kind. */
export function wordOf(task: StoredTask, exchange: Exchange, { shape }: Scope, { files }: Tools): object {
  const words = shape ?? (task.kind === 'image' ? imageTask : videoTask);
  return words.told(viewOf(task, files, exchange.request.headers['host']));
}
