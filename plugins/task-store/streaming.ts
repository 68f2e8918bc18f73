/** Answers an order with the stream of its image: the vendor's events as they come, the last one when it is kept and paid. */
import type { Answer, Exchange, Headers } from '../../core/contract.ts';
import { GatewayError, toGatewayError } from '../../core/errors.ts';
import { keepAliveFrame } from '../../core/sse.ts';
import { errorShape } from '../../core/vocabulary.ts';
import { Live } from './live.ts';
import type { StoredTask } from './rows.ts';
import { completedFrame, errorFrame } from './shapes/index.ts';
import { awaitEnd, bytesOf, type Taking } from './taking.ts';
import { endAsError, isFinal, viewOf } from './view.ts';

/**
 * The task was placed with this lease. Before the first event an error is an answer of its own; behind it, the protocol's
 * event. Who leaves finds the image at the task.
 */
export async function streamOrder(
  exchange: Exchange,
  taking: Taking,
  task: StoredTask,
  lease: string,
  headers: Headers,
): Promise<Answer> {
  const live = new Live();
  // Its failures are in the row.
  const work = taking.engine.follow(task, lease, live);
  exchange.signal.addEventListener('abort', () => live.leave(), { once: true });
  if (!(await live.began())) {
    exchange.signal.throwIfAborted();
    await work;
    // The vendor refused, or answered without a stream: how it ended is known before the head.
    const ended = await endOf(exchange, taking, task);
    if (ended.state !== 'completed') throw endAsError(ended);
    return answerOf(task, headers, whole(await lastFrame(taking, ended, task, live)));
  }
  return answerOf(task, headers, events(exchange, taking, task, live, work));
}

/** The head names the task, for whoever is cut off. */
function answerOf({ id }: StoredTask, headers: Headers, body: AsyncIterable<Uint8Array>): Answer {
  const own = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'x-gateway-task': id };
  // Frames are handed on whole, so that one of ours fits between any two.
  return { status: 200, headers: { ...own, ...headers }, body, idleFrame: () => keepAliveFrame };
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}

async function* events(
  exchange: Exchange,
  taking: Taking,
  task: StoredTask,
  live: Live,
  work: Promise<void>,
): AsyncGenerator<Uint8Array, void> {
  yield* live.frames();
  let failure: GatewayError;
  try {
    exchange.signal.throwIfAborted();
    await work;
    const ended = await endOf(exchange, taking, task);
    if (ended.state === 'completed') {
      yield await lastFrame(taking, ended, task, live);
      return;
    }
    failure = endAsError(ended);
  } catch (error) {
    failure = toGatewayError(error);
  }
  if (failure.kind === 'client_left') return;
  exchange.fail(failure);
  const shape = taking.host.find(errorShape)?.members(failure, exchange.id);
  yield Buffer.from(errorFrame(failure, shape));
}

/** Mostly it has ended with its work; a result that is kept with trouble takes longer. */
async function endOf(exchange: Exchange, taking: Taking, { id }: StoredTask): Promise<StoredTask> {
  const found = await taking.tools.rows.find(id);
  const ended = found !== undefined && isFinal(found.state) ? found : await awaitEnd(exchange, taking, id);
  if (ended !== undefined) return ended;
  throw new GatewayError('upstream_timeout', 'The image is not done yet; ask for its task.', { shouldRetry: false });
}

async function lastFrame({ tools }: Taking, ended: StoredTask, { order }: StoredTask, live: Live): Promise<Uint8Array> {
  if (live.last !== undefined) return live.last;
  const view = viewOf({ ...ended, order }, tools.files, undefined, await bytesOf(ended, tools));
  return Buffer.from(completedFrame(view));
}
