/** Orders of images and videos: followed to their end, or cancelled at any moment. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Chance } from '../simulation/chance.ts';

interface Seen {
  readonly status: number;
  readonly text: string;
}

/** What one call came to. `wrong`: it must not have ended so. */
export interface Result {
  readonly kind: string;
  readonly wrong?: string | undefined;
  /** The answer came whole and is charged. */
  readonly requestId?: string | undefined;
}

export type Send = (path: string, init: { method?: string; body?: string }) => Promise<Seen>;

interface Order {
  readonly path: string;
  /** Where the task is asked for and deleted. */
  readonly tasks: string;
  readonly body: object;
  /** Its vendor now and then fails: the task may fail too, and is then free. */
  readonly shaky?: true;
}

const films = '/v1/contents/generations/tasks';
/** So long may a task take before the soak calls it lost. */
const maxTaskMs = 120_000;

export const orders = {
  image: (prompt: string): Order => ({
    path: '/v1/images/generations',
    tasks: '/v1/tasks',
    body: { model: 'paint', prompt },
  }),
  video: (prompt: string): Order => ({
    ...{ path: films, tasks: films },
    body: { model: 'film', content: [{ type: 'text', text: `${prompt}[[sandbox: takes=300ms]]` }], duration: 3 },
  }),
  shakyVideo: (prompt: string): Order => ({
    ...{ path: films, tasks: '/v1/tasks', shaky: true },
    body: { model: 'clip', content: [{ type: 'text', text: `${prompt}[[sandbox: takes=1s]]` }], duration: 3 },
  }),
};

/** Orders, and looks until it has ended. */
export async function follow(request: Send, kind: string, order: Order): Promise<Result> {
  const placed = await place(request, order);
  return typeof placed !== 'string'
    ? { kind: `${kind}, refused`, ...placed }
    : await untilEnded(request, kind, placed, order.shaky ?? false);
}

/** Orders and cancels: what was cancelled stays so and learns that again, what was too late to cancel ends by itself. */
export async function cancel(send: Send, chance: Chance, order: Order): Promise<Result> {
  const placed = await place(send, order);
  if (typeof placed !== 'string') return { kind: 'cancel, refused', ...placed };
  await pause(chance.below(order.shaky ? 400 : 60));
  const first = await send(placed, { method: 'DELETE' });
  if (first.status !== 200) {
    const isTooLate = first.status === 409 || (order.shaky === true && first.status >= 429);
    if (!isTooLate) return { kind: 'cancel', wrong: `deletion: status ${first.status}: ${first.text.slice(0, 200)}` };
    return await untilEnded(send, 'cancel, too late', placed, order.shaky ?? false);
  }
  const second = await send(placed, { method: 'DELETE' });
  if (second.status === 404) return { kind: 'cancel, of a task that had ended' };
  const isSame = second.status === 200 && [first, second].every(isCancelled);
  return {
    kind: 'cancel',
    wrong: isSame ? undefined : `${first.text.slice(0, 200)}, then ${second.text.slice(0, 200)}`,
  };
}

/** Where the task is asked for; or that it was refused, which a shaky vendor's may be. */
async function place(send: Send, { path, tasks, body, shaky }: Order): Promise<string | { wrong?: string }> {
  const reply = await send(path, { body: JSON.stringify(body) });
  if (reply.status >= 300) return shaky ? {} : { wrong: `status ${reply.status}: ${reply.text.slice(0, 200)}` };
  const { id, data } = JSON.parse(reply.text) as { id?: string; data?: { id: string } };
  return `${tasks}/${id ?? data!.id}`;
}

async function untilEnded(send: Send, kind: string, task: string, mayFail: boolean): Promise<Result> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < maxTaskMs) {
    const seen = await send(task, {});
    const state = stateOf(seen);
    if (state === 'completed' || state === 'succeeded') return { kind };
    if (seen.status === 200 && state === 'failed' && mayFail) return { kind: `${kind}, failed` };
    if (seen.status !== 200 || state === 'failed' || state === 'cancelled')
      return { kind, wrong: `ended with ${seen.status}, ${state}: ${seen.text.slice(0, 300)}` };
    await pause(200);
  }
  return { kind, wrong: 'did not end' };
}

/** In a shape that has no such state it is a failure with this reason. */
const isCancelled = (seen: Seen) => stateOf(seen) === 'cancelled' || seen.text.includes('The task was cancelled.');

function stateOf({ text }: Seen): string | undefined {
  const read = JSON.parse(text) as { status?: string; data?: { status: string } };
  return read.data?.status ?? read.status;
}
