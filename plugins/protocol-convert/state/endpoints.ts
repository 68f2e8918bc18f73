/**
 * The endpoints of stored responses: get, list input items, delete. Responses that an upstream stores are requested
 * from it.
 */

import type { Endpoint, Exchange, Next } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, listOf, objectOf, tryParse } from '../../../core/json/json.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { Protocol } from '../../common/wire/protocols.ts';
import { invalid } from '../request/checks.ts';
import { listPage } from './listing.ts';
import { responseNotFound } from './not-found.ts';
import type { ResponseRecord } from './record.ts';
import { replayed } from './replay.ts';
import type { ResponseStore } from './store.ts';
import type { Upstreams } from './upstreams.ts';

export interface StateEndpointsOptions {
  readonly store: ResponseStore;
  readonly upstreams: Upstreams;
  readonly protocol: Protocol;
}

/** Rate-limited like the protocol's other calls, and free: no inference runs. */
export function stateEndpoints(options: StateEndpointsOptions): Endpoint[] {
  const { store, upstreams, protocol } = options;
  const common = {
    operation: 'responses',
    body: 'none',
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  } satisfies Partial<Endpoint>;
  const path = '/v1/responses/:response_id';
  return [
    { ...common, ...saying('Gets a stored response.'), method: 'GET', path, handle: retrieve },
    { ...common, ...saying('Deletes a stored response.'), method: 'DELETE', path, handle: remove },
    {
      ...common,
      ...saying('Lists the input of a stored response.'),
      method: 'GET',
      path: `${path}/input_items`,
      handle: listInput,
    },
    { ...common, method: 'POST', path: `${path}/cancel`, handle: cancel },
  ];

  async function retrieve(exchange: Exchange, forward: Next): Promise<Answer> {
    const record = await find(exchange);
    if (record.kind === 'relayed') return upstreams.ask(exchange, record, '', forward);
    if (exchange.request.query.get('stream') === 'true')
      return stream(replayed(objectOf(tryParse(record.response)) ?? {}, startOf(exchange.request.query)));
    return json(record.response);
  }

  async function remove(exchange: Exchange, forward: Next): Promise<Answer> {
    const record = await find(exchange);
    const { accountId, id } = record;
    const answer =
      record.kind === 'relayed'
        ? await upstreams.ask(exchange, record, '', forward)
        : json(JSON.stringify({ id, object: 'response', deleted: true }));
    await store.delete(accountId, id);
    return answer;
  }

  async function listInput(exchange: Exchange, forward: Next): Promise<Answer> {
    const record = await find(exchange);
    if (record.kind === 'relayed') return upstreams.ask(exchange, record, '/input_items', forward);
    const items = listOf(tryParse(record.input)).filter(isObject);
    return json(JSON.stringify(listPage(items, exchange.request.query)));
  }

  async function cancel(exchange: Exchange): Promise<Answer> {
    await find(exchange);
    const message = 'Only a response that runs in the background can be cancelled; this gateway runs none there.';
    throw new GatewayError('invalid_request', message, { code: 'unsupported' });
  }

  async function find(exchange: Exchange): Promise<ResponseRecord> {
    const id = exchange.request.params['response_id'] ?? '';
    const record = await store.find(exchange.find(caller)?.accountId ?? '', id);
    if (record === undefined) throw responseNotFound(id);
    return record;
  }
}

function saying(summary: string): Pick<Endpoint, 'describes'> {
  return { describes: [{ summary }] };
}

/** The number of the last event that the client has; -1: it has none. */
function startOf(query: URLSearchParams): number {
  const after = query.get('starting_after');
  if (after === null) return -1;
  if (!/^\d{1,9}$/.test(after)) throw invalid('The field "starting_after" must be a whole number.', 'starting_after');
  return Number(after);
}

function stream(body: string): Answer {
  return { status: 200, headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }, body };
}

function json(body: string): Answer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
}
