/** Takes an order: checked, then task and money in one transaction; and waits for its end where the client does. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, Exchange, Headers, Host } from '../../core/contract.ts';
import { defineFact } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Call, deposit, model } from '../../core/vocabulary.ts';
import type { Order, Shape, Submission } from './contract.ts';
import type { Engine } from './engine.ts';
import type { StoredTask } from './rows.ts';
import { imageAnswer } from './shapes/index.ts';
import { boundsOf, checkOrder, type Place, placesFor } from './targets.ts';
import type { Tools } from './tools.ts';
import { endAsError, isFinal, viewOf } from './view.ts';

export const submission = defineFact<Submission>('task submission');

const lookMs = 100;
const longestLookMs = 1_000;

/** What the gateway must know of an order to admit and price it. */
export function callOf({ order }: Submission, { catalog, providers, adapters }: Tools): Call {
  const entry = catalog.find(order.model);
  const places = entry === undefined ? [] : placesFor(entry, order.kind, providers, adapters);
  const { inputTokens, outputTokens, images, seconds } = boundsOf(places, order);
  return {
    protocol: places[0]?.adapter.protocol ?? order.kind,
    model: order.model,
    stream: false,
    billable: true,
    inputTokens,
    maxOutputTokens: outputTokens,
    choices: 1,
    kind: order.kind,
    images,
    seconds,
    ...mediaOf(order, places),
  };
}

/** What will be made, where every place makes the same and nothing of it is left to the vendor; else the dearest is held for. */
function mediaOf(order: Order, places: readonly Place[]): Pick<Call, 'media'> {
  const [first, ...others] = places.map(({ adapter }) => adapter.bounds(order).media);
  const same = first !== undefined && others.every((media) => media?.join() === first.join());
  return same ? { media: first } : {};
}

export interface Taking {
  readonly tools: Tools;
  readonly engine: Engine;
  readonly host: Host;
  readonly shape: Shape;
  /** Every client waits. */
  readonly synchronous: boolean;
  /** How long a client may wait before it is given the task instead. */
  readonly waitMs: number;
}

/** 400 for what no vendor can make, 402 where the money is not there; then nothing is stored or sent. */
export async function takeOrder(exchange: Exchange, taking: Taking): Promise<Answer> {
  const { tools, engine, host, shape, synchronous } = taking;
  const asked = exchange.get(submission);
  const { order, callbackUrl } = asked;
  const entry = exchange.get(model);
  const dropped = checkOrder(placesFor(entry, order.kind, tools.providers, tools.adapters), entry, order);
  const headers = dropped.length === 0 ? {} : { 'x-gateway-dropped': dropped.join(', ') };
  const money = exchange.get(deposit);
  await tools.files.ensureRoom(money.accountId);
  const id = `task_${host.random.bytes(16).toString('hex')}`;
  const owner = { requestId: money.id, accountId: money.accountId, keyId: money.keyId };
  const deadlineMs = tools.timing.deadlineMs[order.kind];
  const placing = money.place((orm) => tools.rows.insert(orm, { id, ...owner, order, callbackUrl, deadlineMs }));
  await placing.catch((error: unknown) => checkPlaced(error, id, tools));
  engine.wake();
  const clientHost = exchange.request.headers['host'];
  if (!asked.waits && !synchronous) {
    // It may have begun by now; what the client is told is that it was taken.
    const task = { ...(await tools.rows.find(id, money.accountId))!, state: 'queued', progress: 0 } as const;
    return json(shape.submitted(viewOf(task, tools.files, clientHost)), headers);
  }
  const ended = await awaitEnd(exchange, taking, id);
  if (ended === undefined) {
    const task = await tools.rows.find(id, money.accountId);
    return json(shape.submitted(viewOf(task!, tools.files, clientHost)), headers);
  }
  if (ended.state !== 'completed') throw endAsError(ended);
  const bytes = asked.form === 'base64' ? await bytesOf(ended, tools) : undefined;
  const words = order.kind === 'image' ? imageAnswer : shape;
  return json(words.told(viewOf(ended, tools.files, clientHost, bytes)), headers);
}

/** A database that was lost at the commit may have made it: an order that is there was taken. Throws the error where it is not. */
async function checkPlaced(error: unknown, id: string, { rows }: Tools): Promise<void> {
  if (error instanceof GatewayError) throw error;
  const placed = await rows.find(id).catch(() => undefined);
  if (placed === undefined) throw error;
}

/** undefined: it has not ended within the time that clients may wait. Throws when the client leaves; the task goes on. */
async function awaitEnd(exchange: Exchange, taking: Taking, id: string): Promise<StoredTask | undefined> {
  const { tools, waitMs } = taking;
  const until = tools.clock.monotonic() + waitMs;
  for (let looks = 0; tools.clock.monotonic() < until; looks += 1) {
    await pause(Math.min(longestLookMs, lookMs * 1.5 ** looks), undefined, { signal: exchange.signal }).catch(() => {
      throw exchange.signal.reason;
    });
    const task = await tools.rows.find(id);
    if (task !== undefined && isFinal(task.state)) return task;
  }
  return undefined;
}

async function bytesOf({ results, accountId }: StoredTask, { files }: Tools): Promise<Map<string, string>> {
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
