/** The addresses of batches: `/v1/batches`, which two protocols share, `/v1/messages/batches`, and Google's. */
import type { Endpoint, Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { type Dialect, dialectOf, renderError } from '../common/kit/dialects.ts';
import { type Batch, type BatchDialect, modelInEndpoint } from './batch.ts';
import { chatOrder, messagesLines } from './create.ts';
import { describeGoogle, googleEndpoints, listGoogle } from './google/endpoints.ts';
import {
  accountOf,
  cancel,
  type EndpointTools,
  found,
  json,
  newId,
  place,
  placeLines,
  removeEnded,
  requireFunds,
} from './orders.ts';
import { chatBatch, messagesBatch } from './shapes.ts';

const sendTimeoutMs = 3_600_000;

export function endpointsOf(tools: EndpointTools): Endpoint[] {
  return [
    ...chatEndpoints(tools),
    ...(tools.endpoints.includes('/v1/messages') ? messagesEndpoints(tools) : []),
    ...googleEndpoints(tools),
  ];
}

/** Google's clients with the version `v1` call the same address as chat's clients. */
function isGoogle({ endpoints }: EndpointTools, { request }: Exchange): boolean {
  return endpoints.some(modelInEndpoint) && dialectOf(request) === 'gemini';
}

function base(dialect: Dialect) {
  return {
    operation: 'batches',
    body: 'none',
    renderError: (error, exchange) => renderError(error, dialect, exchange.id),
  } satisfies Partial<Endpoint>;
}

function chatEndpoints(tools: EndpointTools): Endpoint[] {
  const common = {
    ...base('chat'),
    renderError: (error, exchange) => renderError(error, dialectOf(exchange.request), exchange.id),
  } satisfies Partial<Endpoint>;
  const path = '/v1/batches';
  const one = (batch: Batch) => json(chatBatch(batch));
  return [
    {
      ...common,
      method: 'POST',
      path,
      keeps: 'batches',
      body: 'json',
      describes: [
        {
          summary: 'Orders a batch of requests.',
          body: { types: ['application/json'], required: ['input_file_id', 'endpoint', 'completion_window'] },
        },
      ],
      handle: async (exchange) => one(await orderFile(tools, exchange)),
    },
    {
      ...common,
      method: 'GET',
      path,
      describes: [{ summary: 'Lists the batches.', query: { after: 'Id of the batch before.', limit: 'Of a page.' } }],
      handle: (exchange) =>
        isGoogle(tools, exchange) ? listGoogle(tools, exchange) : list(tools, exchange, undefined, 'after', chatBatch),
    },
    {
      ...common,
      method: 'GET',
      path: `${path}/:id`,
      describes: [{ summary: 'Describes a batch.' }],
      handle: async (exchange) =>
        isGoogle(tools, exchange) ? describeGoogle(tools, exchange) : one(await found(tools, exchange)),
    },
    {
      ...common,
      method: 'POST',
      path: `${path}/:id/cancel`,
      describes: [{ summary: 'Cancels a batch.' }],
      handle: async (exchange) => one(await cancel(tools, exchange)),
    },
  ];
}

function messagesEndpoints(tools: EndpointTools): Endpoint[] {
  const common = base('messages');
  const path = '/v1/messages/batches';
  const shapeFor = (exchange: Exchange) => (batch: Batch) => messagesBatch(batch, originOf(exchange));
  const one = (exchange: Exchange, batch: Batch) => json(shapeFor(exchange)(batch));
  return [
    {
      ...common,
      method: 'POST',
      path,
      keeps: 'batches',
      body: 'json',
      describes: [
        { summary: 'Orders a batch of requests.', body: { types: ['application/json'], required: ['requests'] } },
      ],
      handle: async (exchange) => one(exchange, await orderRequests(tools, exchange)),
    },
    {
      ...common,
      method: 'GET',
      path,
      describes: [
        { summary: 'Lists the batches.', query: { after_id: 'Id of the batch before.', limit: 'Of a page.' } },
      ],
      handle: (exchange) => list(tools, exchange, 'messages', 'after_id', shapeFor(exchange)),
    },
    {
      ...common,
      method: 'GET',
      path: `${path}/:id`,
      describes: [{ summary: 'Describes a batch.' }],
      handle: async (exchange) => one(exchange, await found(tools, exchange)),
    },
    {
      ...common,
      method: 'POST',
      path: `${path}/:id/cancel`,
      describes: [{ summary: 'Cancels a batch.' }],
      handle: async (exchange) => one(exchange, await cancel(tools, exchange)),
    },
    {
      ...common,
      method: 'DELETE',
      path: `${path}/:id`,
      describes: [{ summary: 'Deletes a batch that has ended, with its results.' }],
      handle: (exchange) => remove(tools, exchange),
    },
    {
      ...common,
      method: 'GET',
      path: `${path}/:id/results`,
      describes: [{ summary: 'Sends the results of a batch.', answers: ['application/jsonl'] }],
      timeoutMs: sendTimeoutMs,
      handle: (exchange) => results(tools, exchange),
    },
  ];
}

/** The address of results is one that the client can reach: the one that it has called. */
function originOf({ request }: Exchange): string {
  const host = request.headers['host'] ?? '';
  const protocol = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  return /^[\w.:[\]-]{1,255}$/.test(host) ? `${protocol}://${host}` : '';
}

async function orderFile(tools: EndpointTools, exchange: Exchange): Promise<Batch> {
  const order = chatOrder(
    exchange.request,
    tools.endpoints.filter((path) => modelInEndpoint(path) === undefined),
  );
  await requireFunds(tools, exchange);
  const file = await tools.files().find(accountOf(exchange), order.inputFile);
  if (file === undefined)
    throw new GatewayError('not_found', 'There is no such file.', {
      field: 'input_file_id',
      code: 'file_not_found',
      shouldRetry: false,
    });
  if (file.purpose !== 'batch')
    throw new GatewayError('invalid_request', 'The file must have been uploaded with the purpose "batch".', {
      field: 'input_file_id',
      shouldRetry: false,
    });
  return place(tools, exchange, { ...order, dialect: 'chat', id: newId(tools, 'batch_') });
}

function orderRequests(tools: EndpointTools, exchange: Exchange): Promise<Batch> {
  async function* body() {
    yield* messagesLines(exchange.request, tools.limits.lines);
  }
  const order = { endpoint: '/v1/messages', metadata: undefined, outputLifetimeMs: undefined };
  return placeLines(tools, exchange, body(), { ...order, dialect: 'messages', id: newId(tools, 'msgbatch_') });
}

async function list(
  { rows }: EndpointTools,
  exchange: Exchange,
  dialect: BatchDialect | undefined,
  cursor: 'after' | 'after_id',
  shape: (batch: Batch) => object,
): Promise<Answer> {
  const { query } = exchange.request;
  const text = query.get('limit') ?? '20';
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > 100)
    throw new GatewayError('invalid_request', '"limit" is a whole number from 1 to 100.', {
      field: 'limit',
      shouldRetry: false,
    });
  const all = await rows.list(accountOf(exchange), dialect, { limit, after: query.get(cursor) ?? undefined });
  const shown = all.slice(0, limit);
  return json({
    object: 'list',
    data: shown.map(shape),
    first_id: shown[0]?.id ?? null,
    last_id: shown.at(-1)?.id ?? null,
    has_more: all.length > limit,
  });
}

async function remove(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const batch = await found(tools, exchange);
  await removeEnded(tools, batch);
  for (const file of [batch.inputFile, batch.outputFile])
    if (file !== undefined) await tools.files().remove(batch.accountId, file);
  return json({ id: batch.id, type: 'message_batch_deleted' });
}

async function results(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const batch = await found(tools, exchange);
  if (batch.state !== 'ended' || batch.outputFile === undefined)
    throw new GatewayError('not_found', 'The results of this batch are not there yet.', { shouldRetry: false });
  return tools.files().answer(batch.accountId, batch.outputFile, exchange);
}
