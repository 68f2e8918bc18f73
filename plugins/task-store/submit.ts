/** Takes an order: checked, then task and money in one transaction; answered with the task, its end, or a stream of it. */
import type { Answer, Exchange, Headers } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Call, deposit, model } from '../../core/vocabulary.ts';
import type { Order, Submission } from './contract.ts';
import type { NewTask, StoredTask } from './rows.ts';
import { imageAnswer } from './shapes/index.ts';
import { streamOrder } from './streaming.ts';
import { awaitEnd, bytesOf, json, look, submission, type Taking } from './taking.ts';
import { boundsOf, checkOrder, type Place, placesFor } from './targets.ts';
import type { Tools } from './tools.ts';
import { endAsError, viewOf } from './view.ts';

/** What the gateway must know of an order to admit and price it. */
export function callOf({ order }: Submission, { catalog, providers, adapters }: Tools): Call {
  const entry = catalog.find(order.model);
  const places = entry === undefined ? [] : placesFor(entry, order.kind, providers, adapters);
  const { inputTokens, outputTokens, images, seconds } = boundsOf(places, order);
  return {
    protocol: places[0]?.adapter.protocol ?? order.kind,
    model: order.model,
    stream: order.previews !== undefined,
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

/** 400 for what no vendor can make, 402 where the money is not there; then nothing is stored or sent. */
export async function takeOrder(exchange: Exchange, taking: Taking): Promise<Answer> {
  const { tools, engine } = taking;
  const { order, callbackUrl, waits } = exchange.get(submission);
  const entry = exchange.get(model);
  const dropped = checkOrder(placesFor(entry, order.kind, tools.providers, tools.adapters), entry, order);
  const headers = dropped.length === 0 ? {} : { 'x-gateway-dropped': dropped.join(', ') };
  const money = exchange.get(deposit);
  await tools.files.ensureRoom(money.accountId);
  const isStreamed = order.previews !== undefined;
  if (isStreamed) exchange.defer(engine.admit(taking.mostStreams));
  const lease = { token: tools.random.bytes(12).toString('hex'), forMs: tools.timing.leaseMs };
  const task: NewTask = {
    id: `task_${tools.random.bytes(16).toString('hex')}`,
    requestId: money.id,
    accountId: money.accountId,
    keyId: money.keyId,
    order: waits || taking.synchronous ? { ...order, waited: true } : order,
    callbackUrl,
    deadlineMs: tools.timing.deadlineMs[order.kind],
    ...(isStreamed ? { lease } : {}),
  };
  const placing = money.place((orm) => tools.rows.insert(orm, task));
  await placing.catch((error: unknown) => checkPlaced(error, task.id, tools));
  const placed = await readPlaced(task, tools);
  if (isStreamed) return streamOrder(exchange, taking, { ...placed, order }, lease.token, headers);
  engine.wake();
  return answer(exchange, taking, placed, headers);
}

/** A database that cannot be asked just now has the order all the same: its client must have the id of what it pays for. */
async function readPlaced(task: NewTask, tools: Tools): Promise<StoredTask> {
  return (await look(tools, task.id)) ?? asPlaced(task, tools.clock.now());
}

function asPlaced({ order, deadlineMs, lease: _, ...given }: NewTask, at: number): StoredTask {
  return {
    ...given,
    ...{ order, kind: order.kind, model: order.model, state: 'queued', progress: 0, tries: 0 },
    ...{ attempts: [], vendorFiles: [], results: [], vendorId: undefined, made: undefined, error: undefined },
    ...{ createdAtMs: at, updatedAtMs: at, completedAtMs: undefined, leftMs: deadlineMs },
  };
}

/** With the task, or with what it came to where the client waits for that. */
async function answer(exchange: Exchange, taking: Taking, placed: StoredTask, headers: Headers): Promise<Answer> {
  const { tools, shape, synchronous } = taking;
  const { waits, form } = exchange.get(submission);
  const host = exchange.request.headers['host'];
  // It may have begun by now; what the client is told is that it was taken.
  const taken = { ...placed, state: 'queued', progress: 0 } as const;
  if (!waits && !synchronous) return json(shape.submitted(viewOf(taken, tools.files, host)), headers);
  const ended = await awaitEnd(exchange, taking, placed.id).catch(unlessGatewayStops);
  if (ended === undefined) {
    const task = (await look(tools, placed.id)) ?? placed;
    return json(shape.submitted(viewOf(task, tools.files, host)), headers);
  }
  if (ended.state !== 'completed') throw endAsError(ended);
  const bytes = form === 'base64' ? await bytesOf(ended, tools) : undefined;
  const words = placed.kind === 'image' ? imageAnswer : shape;
  return json(words.told(viewOf(ended, tools.files, host, bytes)), headers);
}

/** The order goes on, and is paid, when the gateway that took it stops: its client is given the task to come back to, no error. */
function unlessGatewayStops(reason: unknown): undefined {
  if (!(reason instanceof GatewayError) || reason.kind !== 'overloaded') throw reason;
}

/** A database that was lost at the commit may have made it: an order that is there was taken. Throws the error where it is not. */
async function checkPlaced(error: unknown, id: string, { rows }: Tools): Promise<void> {
  if (error instanceof GatewayError) throw error;
  const placed = await rows.find(id).catch(() => undefined);
  if (placed === undefined) throw error;
}
