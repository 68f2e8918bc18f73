/** Queries about one task: state, file, deletion. The id of another account's task gets the same 404 as an unknown id. */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { MediaKind } from '../../common/media/adapters.ts';
import type { Shape } from '../contract.ts';
import type { Tools } from '../engine/dependencies.ts';
import { endUncharged } from '../engine/final-states.ts';
import type { From, StoredTask, TaskError } from '../engine/rows.ts';
import { imageTask, videoTask } from './shapes/index.ts';
import { targetOf } from './targets.ts';
import { isFinal, viewOf } from './view.ts';
import { json } from './waiting.ts';

const idForm = /^task_[0-9a-f]{32}$/;
const cancelTimeoutMs = 30_000;
const cancelled: TaskError = { code: 'cancelled', message: 'The task was cancelled.' };

/** The tasks that an endpoint serves, and their shape. */
export interface Scope {
  /** undefined: every kind, each in the shape of its kind. */
  readonly kind: MediaKind | undefined;
  readonly shape?: Shape;
}

export class Queries {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  async one(exchange: Exchange, scope: Scope): Promise<Answer> {
    return json(renderTask(await this.#find(exchange, scope), exchange, scope, this.#tools));
  }

  /**
   * Deletes a final task with its files; the ledger keeps its cost. Cancels a task that has not started, or that the
   * vendor cancels; 409 for any other. A cancelled task stays, so that a repeated cancellation gets the same answer.
   */
  async delete(exchange: Exchange, scope: Scope): Promise<Answer> {
    const { rows } = this.#tools;
    const task = await this.#find(exchange, scope);
    const shape = shapeOf(task, scope);
    const { id, accountId } = task;
    if (task.state === 'completed' || task.state === 'failed') return this.#remove(task, shape);
    await this.cancelTask(task, exchange.signal);
    if (shape.deletesCancelled === true) return this.#remove(task, shape);
    const cancelled = await rows.find(id, accountId);
    if (cancelled === undefined) throw noSuchTask();
    return json(renderTask(cancelled, exchange, scope, this.#tools));
  }

  /** Files first: if the process dies in between, the task can be deleted again. */
  async #remove({ id, accountId }: StoredTask, shape: Shape): Promise<Answer> {
    const { rows, files } = this.#tools;
    await files.removeFilesOfTask(accountId, id);
    if (!(await rows.remove(id, accountId))) throw noSuchTask();
    return json(shape.deleted({ id }));
  }

  /** Cancels a task if possible; a cancelled one stays cancelled. */
  async cancelTask(task: StoredTask, signal: AbortSignal): Promise<void> {
    if (task.state === 'cancelled' || (await this.#takeBack(task, signal))) return;
    const message = isFinal(task.state) ? 'The task has ended.' : 'The task has begun and cannot be cancelled.';
    throw new GatewayError('conflict', message, { code: 'task_not_cancellable', shouldRetry: false });
  }

  /** The first result file. */
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
    // Between two attempts nothing is in flight; a worker that starts one now fails its own state check.
    if (task.state === 'queued' || (task.state === 'creating' && departed?.result !== 'running')) {
      const from: From = { states: ['queued', 'creating'], by: { departure: departed?.number ?? 0 } };
      return endUncharged(this.#tools, task, from, bad);
    }
    if (task.state !== 'running' || !(await this.#vendorTakesBack(task, signal))) return false;
    const attempts = task.attempts.map((each) => (each === departed ? { ...each, result: 'refused' as const } : each));
    return endUncharged(this.#tools, task, { states: ['running'], by: 'any' }, { ...bad, attempts });
  }

  async #vendorTakesBack(task: StoredTask, signal: AbortSignal): Promise<boolean> {
    const { catalog, providers, adapters, vendors } = this.#tools;
    const last = task.attempts.at(-1);
    const found = last && targetOf(last, catalog.find(task.model), providers, adapters);
    const taskApi = found?.adapter.tasks;
    const wanted = taskApi?.cancel?.(task.vendorId ?? '');
    if (found === undefined || taskApi === undefined || wanted === undefined || task.vendorId === undefined)
      return false;
    try {
      // For a finished task, vendors take the same request as a deletion and charge all the same.
      const state = await vendors.call(taskApi.poll(task.vendorId), found.target, cancelTimeoutMs, signal);
      if (taskApi.readPolled(state, task.order, task.vendorId).state !== 'queued') return false;
      const { status } = await vendors.call(wanted, found.target, cancelTimeoutMs, signal);
      return status >= 200 && status < 300;
    } catch {
      // The outcome is unknown: the task continues.
      return false;
    }
  }
}

function noSuchTask(): GatewayError {
  return new GatewayError('not_found', 'There is no task of this id.', { code: 'task_not_found' });
}

/** The endpoint's protocol, else the protocol of the task's kind. */
function shapeOf({ kind }: StoredTask, { shape }: Scope): Shape {
  return shape ?? (kind === 'image' ? imageTask : videoTask);
}

/** The task rendered in the endpoint's protocol, else in that of its kind. */
export function renderTask(task: StoredTask, exchange: Exchange, scope: Scope, { files }: Tools): object {
  return shapeOf(task, scope).render(viewOf(task, files, exchange.request.headers['host']));
}
