/** What the addresses of batches of all protocols share: orders are placed, found and cancelled for an account. */
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { funds } from '../common/domain/ledger.ts';
import { jsonAnswer } from '../common/kit/dialects.ts';
import { storedTrace } from '../common/wire/trace.ts';
import type { Batch } from './batch.ts';
import { type EstimateTools, requireFirstLines } from './estimate.ts';
import type { BatchRows, NewBatch } from './rows.ts';
import type { BatchSpace } from './space.ts';

export interface EndpointTools extends EstimateTools {
  readonly rows: BatchRows;
  readonly space: BatchSpace;
  /** Addresses that lines may call. */
  readonly endpoints: readonly string[];
  readonly mostOpen: number;
  readonly windowMs: number;
  readonly wake: () => void;
}

const headerNames = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'x-gateway-tags'];

export const accountOf = (exchange: Exchange) => exchange.get(caller).accountId;
export const idOf = ({ request }: Exchange) => request.params['id'] ?? '';
export const json = (value: object): Answer => jsonAnswer(JSON.stringify(value));

type Ordered = Pick<NewBatch, 'id' | 'dialect' | 'inputFile' | 'endpoint' | 'metadata' | 'outputLifetimeMs'>;

export async function place(tools: EndpointTools, exchange: Exchange, order: Ordered): Promise<Batch> {
  const { rows, space, mostOpen, windowMs, wake } = tools;
  const { accountId, keyId } = exchange.get(caller);
  const { remoteAddress, headers } = exchange.request;
  const kept = headerNames.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]));
  const by = { accountId, keyId, requestId: exchange.id, trace: storedTrace(exchange) };
  const batch = { ...order, ...by, remoteAddress, headers: Object.fromEntries(kept), windowMs };
  await requireFirstLines(tools, exchange, batch);
  await space.take(batch, 0);
  if (!(await rows.create(batch, mostOpen))) {
    await space.release(batch);
    throw new GatewayError('rate_limited', `At most ${mostOpen} batches of an account run at once.`, {
      code: 'batches',
      retryAfterMs: 60_000,
    });
  }
  wake();
  return (await rows.find(accountId, order.id))!;
}

export function newId({ host }: EndpointTools, prefix: string): string {
  return prefix + host.random.bytes(16).toString('hex');
}

/** Before the input is looked at: an account without money could fill the database with lines that only wait. */
export async function requireFunds({ host }: EndpointTools, exchange: Exchange): Promise<void> {
  await host.find(funds)?.require(exchange);
}

/** Keeps lines as the input of the batch, and places it; the input is removed if it is refused. */
export async function placeLines(
  tools: EndpointTools,
  exchange: Exchange,
  lines: AsyncIterable<Uint8Array>,
  order: Omit<Ordered, 'inputFile'>,
): Promise<Batch> {
  await requireFunds(tools, exchange);
  const files = tools.files();
  const accountId = accountOf(exchange);
  const received = await files.receive(accountId, lines);
  const details = { name: `${order.id}_input.jsonl`, purpose: 'batch', mediaType: 'application/jsonl' };
  const { id: inputFile } = await files.keep(accountId, received, details);
  try {
    return await place(tools, exchange, { ...order, inputFile });
  } catch (error) {
    await files.remove(accountId, inputFile);
    throw error;
  }
}

export async function found({ rows }: EndpointTools, exchange: Exchange): Promise<Batch> {
  const batch = await rows.find(accountOf(exchange), idOf(exchange));
  if (batch === undefined) throw noSuchBatch();
  return batch;
}

export async function cancel(tools: EndpointTools, exchange: Exchange): Promise<Batch> {
  await tools.rows.cancel(accountOf(exchange), idOf(exchange));
  tools.wake();
  return found(tools, exchange);
}

/** Removes the row of a batch that has ended; its files are the caller's. */
export async function removeEnded({ rows, space }: EndpointTools, batch: Batch): Promise<void> {
  if (batch.state === 'ended' && (await rows.remove(batch.accountId, batch.id))) return space.release(batch);
  throw new GatewayError('invalid_request', 'A batch that runs cannot be deleted; cancel it first.', {
    shouldRetry: false,
  });
}

/** The same for ids that never were, that are gone, and that belong to others. */
export function noSuchBatch(): GatewayError {
  return new GatewayError('not_found', 'There is no such batch.', { code: 'batch_not_found', shouldRetry: false });
}
