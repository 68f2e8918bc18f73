/** What clients ask of tasks they have: one, a list, its file, its end. An id that is not theirs is the same 404 as one of nobody. */
import type { Answer, Exchange } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { caller } from '../../core/vocabulary.ts';
import type { MediaKind, Shape } from './contract.ts';
import { giveUp } from './ends.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { imageTask, videoTask } from './shapes/index.ts';
import { json } from './submit.ts';
import { targetOf } from './targets.ts';
import type { Tools } from './tools.ts';
import { isFinal, statesNamed, viewOf } from './view.ts';

const idForm = /^task_[0-9a-f]{32}$/;
const defaultLimit = 20;
const mostListed = 100;
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
    return json(this.#word(await this.#find(exchange, scope), exchange, scope));
  }

  /** Newest first; `after` is the last id of the page before. */
  async list(exchange: Exchange, scope: Scope): Promise<Answer> {
    const { query } = exchange.request;
    const limit = limitIn(query.get('limit'));
    const status = query.get('status');
    const states = status === null ? undefined : statesNamed(status);
    if (status !== null && states === undefined)
      throw new GatewayError('invalid_request', 'The parameter "status" names no state of a task.', {
        field: 'status',
      });
    const kind = scope.kind ?? kindIn(query.get('kind'));
    const after = query.get('after') ?? undefined;
    const page = { limit: limit + 1, kind, states, after };
    const found = await this.#tools.rows.list(exchange.get(caller).accountId, page);
    const tasks = found.slice(0, limit);
    return json({
      object: 'list',
      data: tasks.map((task) => this.#word(task, exchange, scope)),
      first_id: tasks[0]?.id ?? null,
      last_id: tasks.at(-1)?.id ?? null,
      has_more: found.length > limit,
    });
  }

  /** Cancels what nobody has begun to make; 409 for what has begun. */
  async cancel(exchange: Exchange, scope: Scope): Promise<Answer> {
    const task = await this.#find(exchange, scope);
    await this.takeBack(task, exchange.signal);
    const { id, accountId } = task;
    return json(this.#word((await this.#tools.rows.find(id, accountId))!, exchange, scope));
  }

  /** Cancels a task of which it is known that it may be; one that is cancelled already stays so. */
  async takeBack(task: StoredTask, signal: AbortSignal): Promise<void> {
    if (task.state === 'cancelled' || (await this.#takeBack(task, signal))) return;
    const message = isFinal(task.state) ? 'The task has ended.' : 'The task has begun and cannot be cancelled.';
    throw new GatewayError('conflict', message, { code: 'task_not_cancellable', shouldRetry: false });
  }

  /** The first file of what was made. */
  async content(exchange: Exchange, scope: Scope): Promise<Answer> {
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

  #word(task: StoredTask, exchange: Exchange, { shape }: Scope): object {
    const words = shape ?? (task.kind === 'image' ? imageTask : videoTask);
    return words.told(viewOf(task, this.#tools.files, exchange.request.headers['host']));
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

function limitIn(text: string | null): number {
  if (text === null) return defaultLimit;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= mostListed) return limit;
  throw new GatewayError('invalid_request', `The parameter "limit" must be from 1 to ${mostListed}.`, {
    field: 'limit',
  });
}

function kindIn(text: string | null): MediaKind | undefined {
  if (text === null || text === 'image' || text === 'video') return text ?? undefined;
  throw new GatewayError('invalid_request', 'The parameter "kind" must be image or video.', { field: 'kind' });
}
