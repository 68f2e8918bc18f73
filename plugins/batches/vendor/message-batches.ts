/** Batches of messages: all requests in one order, results as lines at an address. They carry no name of ours but the ids of lines. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { BatchApi, Found, VendorOrder, VendorResult, VendorResults, VendorState } from './api.ts';
import { markOf } from './ids.ts';
import { badAnswer, type Wire } from './wire.ts';

const path = '/v1/messages/batches';
const mostPages = 20;
const slackMs = 600_000;

export const messageBatches: BatchApi = {
  protocol: 'messages',
  takes: (endpoint) => endpoint === '/v1/messages',
  auth: { header: 'x-api-key', value: '{key}' },
  headers: { 'anthropic-version': '2023-06-01' },
  passedHeaders: ['anthropic-version', 'anthropic-beta'],
  mostLines: 100_000,
  mostBytes: 240 * 2 ** 20,
  lineOf: ({ id, body }) => `{"custom_id":"${id}","params":${body}}`,
  async order(wire, _order, requests) {
    async function* body() {
      let before = '{"requests":[';
      for await (const line of requests as AsyncIterable<Uint8Array>) {
        yield Buffer.from(before);
        yield line;
        before = ',';
      }
      yield Buffer.from(']}');
    }
    const stream = { type: 'application/json', body: body() };
    return stateOf((await wire.call({ method: 'POST', path, stream })).json);
  },
  find,
  async get(wire, id) {
    return stateOf((await wire.call({ method: 'GET', path: `${path}/${id}` })).json);
  },
  async cancel(wire, id) {
    await wire.call({ method: 'POST', path: `${path}/${id}/cancel`, json: {} });
  },
  results,
  async forget(wire, id) {
    await wire.call({ method: 'DELETE', path: `${path}/${id}` });
  },
};

/** Only the ids of its lines identify its owner, and the vendor returns them once it has ended. */
async function find(wire: Wire, order: VendorOrder, isOther: (id: string) => Promise<boolean>): Promise<Found> {
  let isUndecided = false;
  for await (const batch of listed(wire)) {
    const createdAt = Date.parse(textOf(batch['created_at']) ?? '');
    if (createdAt < order.sentAt - slackMs) break;
    const state = stateOf(batch);
    if (linesIn(batch) !== order.lines || (await isOther(state.id))) continue;
    if (state.end === undefined || 'refused' in state.end) isUndecided = true;
    else if (await isOf(wire, order.name, state.end)) return state;
  }
  return isUndecided ? 'undecided' : 'absent';
}

async function isOf(wire: Wire, name: string, end: VendorResults): Promise<boolean> {
  for await (const { id } of results(wire, end)) return id.startsWith(markOf(name));
  return false;
}

async function* listed(wire: Wire): AsyncGenerator<JsonObject> {
  let after = '';
  for (let page = 0; page < mostPages; page++) {
    const { json } = await wire.call({ method: 'GET', path: `${path}?limit=100${after}` });
    yield* listOf(json['data']).filter(isObject);
    if (json['has_more'] !== true || typeof json['last_id'] !== 'string') return;
    after = `&after_id=${encodeURIComponent(json['last_id'])}`;
  }
}

function linesIn(batch: JsonObject): number {
  const counts = Object.values(objectOf(batch['request_counts']) ?? {});
  return counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0);
}

function stateOf(batch: JsonObject): VendorState {
  const { id } = batch;
  if (typeof id !== 'string' || !/^[\w-]{1,200}$/.test(id)) throw badAnswer('it has no id');
  if (batch['processing_status'] !== 'ended') return { id, end: undefined };
  const counts = objectOf(batch['request_counts']) ?? {};
  const has = (name: string) => typeof counts[name] === 'number' && counts[name] > 0;
  const ended = has('canceled') ? 'cancelled' : has('expired') ? 'expired' : 'completed';
  return { id, end: { ended, places: [textOf(batch['results_url']) ?? `${path}/${id}/results`] } };
}

async function* results(wire: Wire, { places }: VendorResults): AsyncGenerator<VendorResult> {
  for (const place of places)
    for await (const line of wire.lines({ method: 'GET', path: place })) {
      const result = resultOf(line);
      if (result !== undefined) yield result;
    }
}

const statuses = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['overloaded_error', 529],
]);

function resultOf({ custom_id: id, result }: JsonObject): VendorResult | undefined {
  const { type, message, error } = objectOf(result) ?? {};
  if (typeof id !== 'string') return undefined;
  if (type === 'succeeded' && isObject(message)) return { id, status: 200, body: message };
  if (type === 'canceled') return { id, missed: 'cancelled' };
  if (type === 'expired') return { id, missed: 'expired' };
  if (type !== 'errored' || !isObject(error)) return undefined;
  const status = statuses.get(textOf(objectOf(error['error'])?.['type']) ?? '') ?? 500;
  return { id, status, body: error };
}
