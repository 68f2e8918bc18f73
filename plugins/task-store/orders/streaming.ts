/**
 * Answers an order with the stream of its image: the vendor's events as they come, the last one after storage and
 * payment.
 */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { errorShape } from '../../common/domain/error-shape.ts';
import { keepAliveLine } from '../../common/kit/sse.ts';
import { Live } from '../engine/live.ts';
import type { StoredTask } from '../engine/rows.ts';
import { completedFrame, errorFrame } from './shapes/index.ts';
import { endAsError, isFinal, viewOf } from './view.ts';
import { awaitEnd, bytesOf, type OrderContext, tryFindTask } from './waiting.ts';

/**
 * The task was placed with this lease. Before the first event an error is an answer; after it, an event of the
 * protocol. A client that disconnects finds the image at the task.
 */
export async function streamOrder(
  exchange: Exchange,
  context: OrderContext,
  task: StoredTask,
  lease: string,
  headers: Headers,
): Promise<Answer> {
  const live = new Live();
  // The row records its failures.
  const work = context.engine.runStreamed(task, lease, live);
  exchange.signal.addEventListener('abort', () => live.disconnect(), { once: true });
  if (!(await live.began())) {
    exchange.signal.throwIfAborted();
    await work;
    // The vendor refused, or answered without a stream: the end is known before the head.
    const ended = await endOf(exchange, context, task);
    if (ended.state !== 'completed') throw endAsError(ended);
    return answerOf(headers, whole(await lastFrame(context, ended, task, live)));
  }
  return answerOf(headers, events(exchange, context, task, live, work));
}

/** The head names the task, for a client that is cut off. */
function answerOf(headers: Headers, body: AsyncIterable<Uint8Array>): Answer {
  const own = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
  // Frames are relayed whole, so that the gateway's own event fits between any two.
  const failed = (error: GatewayError) => Buffer.from(`\n\n${errorFrame(error)}`);
  return { status: 200, headers: { ...own, ...headers }, body, idleFrame: () => keepAliveLine, failed };
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}

async function* events(
  exchange: Exchange,
  context: OrderContext,
  task: StoredTask,
  live: Live,
  work: Promise<void>,
): AsyncGenerator<Uint8Array, void> {
  yield* live.frames();
  let failure: GatewayError;
  try {
    exchange.signal.throwIfAborted();
    await work;
    const ended = await endOf(exchange, context, task);
    if (ended.state === 'completed') {
      yield await lastFrame(context, ended, task, live);
      return;
    }
    failure = endAsError(ended);
  } catch (error) {
    failure = toGatewayError(error);
  }
  if (failure.kind === 'client_left') return;
  exchange.fail(failure);
  const shape = context.host.find(errorShape)?.members(failure, exchange.id);
  yield Buffer.from(errorFrame(failure, shape));
}

/** The task has usually ended with the work; storing a result may take longer. */
async function endOf(exchange: Exchange, context: OrderContext, { id }: StoredTask): Promise<StoredTask> {
  const found = await tryFindTask(context.tools, id);
  const ended = found !== undefined && isFinal(found.state) ? found : await awaitEnd(exchange, context, id);
  if (ended !== undefined) return ended;
  throw new GatewayError('upstream_timeout', 'The image is not done yet; ask for its task.', { shouldRetry: false });
}

async function lastFrame(
  { tools }: OrderContext,
  ended: StoredTask,
  { order }: StoredTask,
  live: Live,
): Promise<Uint8Array> {
  if (live.last !== undefined) return live.last;
  const view = viewOf({ ...ended, order }, tools.files, undefined, await bytesOf(ended, tools));
  return Buffer.from(completedFrame(view));
}
