/**
 * Places an order: checks it, writes task and money in one transaction, and answers with the task, its result or its
 * stream.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { Call } from '../../common/domain/calls.ts';
import { isUndecided } from '../../common/domain/database.ts';
import { authorization } from '../../common/domain/ledger.ts';
import { model } from '../../common/domain/models.ts';
import { placedFor, placementIn } from '../../common/domain/organizations/placement.ts';
import type { Order } from '../../common/media/adapters.ts';
import { orderFields, storedTrace } from '../../common/wire/trace.ts';
import type { Submission } from '../contract.ts';
import type { Tools } from '../engine/dependencies.ts';
import type { NewTask, StoredTask } from '../engine/rows.ts';
import { streamOrder } from './streaming.ts';
import { boundsOf, type Candidate, candidatesFor, checkOrder, requirePrices } from './targets.ts';
import { endAsError, viewOf } from './view.ts';
import { awaitEnd, bytesOf, json, type OrderContext, submission, tryFindTask } from './waiting.ts';

/** What other plugins need of an order, to admit and price it. */
export function callOf({ order }: Submission, { catalog, providers, adapters }: Tools): Call {
  const entry = catalog.find(order.model);
  const candidates = entry === undefined ? [] : candidatesFor(entry, order.kind, providers, adapters);
  const { inputTokens, outputTokens, images, seconds } = boundsOf(candidates, order);
  return {
    protocol: candidates[0]?.adapter.name ?? order.kind,
    model: order.model,
    stream: order.previews !== undefined,
    billable: true,
    inputTokens,
    maxOutputTokens: outputTokens,
    choices: 1,
    kind: order.kind,
    images,
    seconds,
    ...mediaOf(order, candidates),
    ...providerOf(candidates),
  };
}

function providerOf(candidates: readonly Candidate[]): Pick<Call, 'provider'> {
  const [name, ...others] = new Set(candidates.map(({ provider }) => provider.name));
  return name === undefined || others.length > 0 ? {} : { provider: name };
}

/** The media of the result, if every target makes the same; otherwise the hold covers the dearest. */
function mediaOf(order: Order, candidates: readonly Candidate[]): Pick<Call, 'media'> {
  const [first, ...others] = candidates.map(({ adapter }) => adapter.bounds(order).media);
  const same = first !== undefined && others.every((media) => media?.join() === first.join());
  return same ? { media: first } : {};
}

/** 400 if no vendor can make it, 402 if the balance does not suffice; then nothing is stored or sent. */
export async function takeOrder(exchange: Exchange, context: OrderContext): Promise<Answer> {
  const { tools, engine } = context;
  const { order: asked, callbackUrl } = exchange.get(submission);
  const waits = isAwaited(exchange, context);
  const entry = exchange.get(model);
  const placement = placementIn(exchange);
  const offered = placement === undefined ? tools.providers : placedFor(placement, tools.providers, entry);
  const requested = placement?.regions === undefined ? asked : { ...asked, regions: [...placement.regions] };
  const candidates = candidatesFor(entry, requested.kind, offered, tools.adapters);
  requirePrices(candidates, entry, requested, tools.clock.now());
  const { dropped = [], clamped } = checkOrder(candidates, entry, requested);
  const order = clamped === undefined ? requested : { ...requested, clamped };
  const money = exchange.get(authorization);
  await tools.files.ensureRoom(money.accountId);
  const isStreamed = order.previews !== undefined;
  if (isStreamed) exchange.defer(engine.admit(context.mostStreams));
  const lease = { token: tools.random.bytes(12).toString('hex'), forMs: tools.timing.leaseMs };
  const task: NewTask = {
    id: `task_${tools.random.bytes(16).toString('hex')}`,
    requestId: money.id,
    accountId: money.accountId,
    keyId: money.keyId,
    trace: storedTrace(exchange),
    order: waits ? { ...order, waited: true } : order,
    callbackUrl,
    deadlineMs: tools.timing.deadlineMs[order.kind],
    ...(isStreamed ? { lease } : {}),
  };
  const headers = {
    'x-gateway-task': task.id,
    ...(dropped.length === 0 ? {} : { 'x-gateway-dropped': dropped.join(', ') }),
  };
  const placing = money.place((orm) => tools.rows.insert(orm, task));
  await placing.catch((error: unknown) => checkPlaced(error, task.id, tools));
  const placed = await readPlaced(task, tools);
  if (isStreamed) return streamOrder(exchange, context, { ...placed, order }, lease.token, headers);
  engine.wake();
  return answer(exchange, context, placed, { waits, headers });
}

function isAwaited(exchange: Exchange, { synchronous }: OrderContext): boolean {
  return synchronous || (exchange.get(submission).waits ?? exchange.get(caller).waitsForImages === true);
}

/** The order stands even if the database cannot be read now: the client needs the id of what it pays for. */
async function readPlaced(task: NewTask, tools: Tools): Promise<StoredTask> {
  return (await tryFindTask(tools, task.id)) ?? asPlaced(task, tools.clock.now());
}

function asPlaced({ order, deadlineMs, lease: _, ...given }: NewTask, at: number): StoredTask {
  return {
    ...given,
    ...{ order, kind: order.kind, model: order.model, state: 'queued', progress: 0, tries: 0 },
    ...{ attempts: [], vendorFiles: [], results: [], vendorId: undefined, made: undefined, error: undefined },
    ...{ createdAtMs: at, updatedAtMs: at, completedAtMs: undefined, leftMs: deadlineMs },
  };
}

/** Answers with the task, or with its result if the client waits. */
async function answer(
  exchange: Exchange,
  context: OrderContext,
  placed: StoredTask,
  { waits, headers }: { readonly waits: boolean; readonly headers: Headers },
): Promise<Answer> {
  const { tools, shape } = context;
  const { form } = exchange.get(submission);
  const host = exchange.request.headers['host'];
  // It may have started by now; the answer is the state in which it was accepted.
  const taken = { ...placed, state: 'queued', progress: 0 } as const;
  const address = `${context.tasksPath}/${placed.id}`;
  const pending = { ...headers, location: address, 'x-gateway-poll': `GET ${address}` };
  if (!waits) return json(shape.submitted(viewOf(taken, tools.files, host)), pending);
  const ended = await awaitEnd(exchange, context, placed.id).catch(unlessGatewayStops);
  if (ended !== undefined && ended.state !== 'completed') throw endAsError(ended);
  const bytes = form === 'base64' && ended !== undefined ? await tryBytesOf(ended, tools) : undefined;
  if (ended === undefined || bytes === 'unread') {
    const task = (await tryFindTask(tools, placed.id)) ?? ended ?? placed;
    return json(shape.submitted(viewOf(task, tools.files, host)), pending);
  }
  const view = viewOf(ended, tools.files, host, bytes);
  return json(shape.waited?.(view) ?? shape.render(view), headers);
}

/** A paid result is answered with its task where its bytes cannot be read now. */
function tryBytesOf(ended: StoredTask, tools: Tools): Promise<Map<string, string> | 'unread'> {
  return bytesOf(ended, tools).catch((error: unknown) => {
    tools.log.warn(
      { ...orderFields(ended), error, task: ended.id },
      'a result that a client waits for could not be read',
    );
    return 'unread';
  });
}

/** The order continues, and is paid, when this gateway process stops: the client gets the task, not an error. */
function unlessGatewayStops(reason: unknown): undefined {
  if (!(reason instanceof GatewayError) || reason.kind !== 'overloaded') throw reason;
}

/** How long it is asked whether an order stands. */
const askPausesMs = [100, 300, 1_000, 2_000, 0];

/**
 * A connection lost at the commit may have committed: if the row exists, the order was placed. Otherwise throws the
 * error.
 */
async function checkPlaced(error: unknown, id: string, { rows }: Tools): Promise<void> {
  if (error instanceof GatewayError) throw error;
  const find = () => rows.find(id).catch(() => 'unread' as const);
  let placed = await find();
  if (isUndecided(error)) {
    for (let tries = 0; placed === 'unread' && tries < askPausesMs.length; tries += 1) {
      await pause(askPausesMs[tries]);
      placed = await find();
    }
    if (placed === 'unread') throw unknownOrder(error, id);
  }
  if (placed === undefined || placed === 'unread') throw error;
}

function unknownOrder(cause: unknown, id: string): GatewayError {
  const message = `It is not known yet whether the order was taken: ask for its task, ${id}, before you order again.`;
  const headers = { 'x-gateway-task': id };
  return new GatewayError('overloaded', message, { code: 'order_unknown', shouldRetry: false, headers, cause });
}
