/** What it takes to answer an order, and how its end is waited for. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, defineFact, type Exchange, type Headers, type Host } from '../../core/contract.ts';
import type { Shape, Submission } from './contract.ts';
import type { Engine } from './engine.ts';
import type { StoredTask } from './rows.ts';
import type { Tools } from './tools.ts';
import { isFinal } from './view.ts';

export const submission = defineFact<Submission>('task submission');

const lookMs = 100;
const longestLookMs = 1_000;

export interface Taking {
  readonly tools: Tools;
  readonly engine: Engine;
  readonly host: Host;
  readonly shape: Shape;
  /** Every client waits. */
  readonly synchronous: boolean;
  /** How long a client may wait before it is given the task instead. */
  readonly waitMs: number;
  /** Images that are streamed at the same time. */
  readonly mostStreams: number;
}

/** undefined: it has not ended within the time that clients may wait. Throws when the client leaves; the task goes on. */
export async function awaitEnd(exchange: Exchange, taking: Taking, id: string): Promise<StoredTask | undefined> {
  const { tools, waitMs } = taking;
  const until = tools.clock.monotonic() + waitMs;
  for (let looks = 0; tools.clock.monotonic() < until; looks += 1) {
    await pause(Math.min(longestLookMs, lookMs * 1.5 ** looks), undefined, { signal: exchange.signal }).catch(() => {
      throw exchange.signal.reason;
    });
    const task = await look(tools, id);
    if (task !== undefined && isFinal(task.state)) return task;
  }
  return undefined;
}

/** undefined: it is not there, or the database cannot be asked just now. The task goes on, whoever waits for it. */
export function look({ rows, log }: Tools, id: string): Promise<StoredTask | undefined> {
  return rows.find(id).catch((error: unknown) => {
    log.warn({ error, task: id }, 'a task that somebody waits for could not be read');
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
