/** Dependencies of the answer to an order, and the wait for the task's end. */
import { setTimeout as pause } from 'node:timers/promises';
import { defineContextKey, type Exchange, type Host, type RequestLog } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import type { Shape, Submission } from '../contract.ts';
import type { Tools } from '../engine/dependencies.ts';
import type { Engine } from '../engine/engine.ts';
import type { StoredTask } from '../engine/rows.ts';
import { isFinal } from './view.ts';

export const submission = defineContextKey<Submission>('task submission');

const pollMs = 100;
const longestPollMs = 1_000;

export interface OrderContext {
  readonly tools: Tools;
  readonly engine: Engine;
  readonly host: Host;
  readonly shape: Shape;
  /** Base path of the order's task, without its id. */
  readonly tasksPath: string;
  /** Whether every client waits. */
  readonly synchronous: boolean;
  /** Longest wait before the client gets the task instead. */
  readonly waitMs: number;
  /** Limit of concurrent image streams. */
  readonly mostStreams: number;
}

/** undefined: the task has not ended within the longest wait. Throws when the client disconnects; the task continues. */
export async function awaitEnd(exchange: Exchange, context: OrderContext, id: string): Promise<StoredTask | undefined> {
  const { tools, waitMs } = context;
  const until = tools.clock.monotonic() + waitMs;
  for (let polls = 0; tools.clock.monotonic() < until; polls += 1) {
    await pause(Math.min(longestPollMs, pollMs * 1.5 ** polls), undefined, { signal: exchange.signal }).catch(() => {
      throw exchange.signal.reason;
    });
    const task = await tools.rows.find(id).catch((error: unknown) => unread(exchange.log, id, error));
    if (task === undefined) throw deleted();
    if (task !== 'unread' && isFinal(task.state)) return task;
  }
  return undefined;
}

/** The account deleted the task meanwhile. */
function deleted(): GatewayError {
  const message = 'The task was deleted before its result was read.';
  return new GatewayError('conflict', message, { code: 'task_deleted', shouldRetry: false });
}

function unread(log: Pick<RequestLog, 'warn'>, id: string, error: unknown): 'unread' {
  log.warn({ error, task: id }, 'a task that a client waits for could not be read');
  return 'unread';
}

/** undefined: no such task, or the database cannot be read now. The task continues either way. */
export function tryFindTask(tools: Tools, id: string): Promise<StoredTask | undefined> {
  return tools.rows.find(id).catch((error: unknown) => {
    unread(tools.log, id, error);
    return undefined;
  });
}

/** The results of a task by their ids, in base64. */
export async function bytesOf({ results, accountId }: StoredTask, { files }: Tools): Promise<Map<string, string>> {
  const read = new Map<string, string>();
  for (const { id } of results) {
    const bytes = await files.read(accountId, id);
    if (bytes !== undefined) read.set(id, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'));
  }
  return read;
}

export function json(body: object, headers: Headers = {}): Answer {
  return { status: 200, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}
