/** The plugin alone: opens a request on a fake exchange, answers for the upstream, reads the answer. */

import type { Endpoint, UpstreamRequest } from '../../../core/contract/contract.ts';
import { upstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { call, spendGuard, type UsageReport, usageReport } from '../../../plugins/common/domain/calls.ts';
import { type Model, model as sold } from '../../../plugins/common/domain/models.ts';
import { type Target, target } from '../../../plugins/common/domain/upstreams.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { type FakeExchange, fakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';

export const host = fakeHost();
const part = await setUp(protocolConvert, host);
export const endpoints = part.endpoints!;

export interface RelayRequest {
  path: string;
  body: unknown;
  headers?: Record<string, string>;
  target?: Partial<Omit<Target, 'upstream'>> & { upstream?: Partial<Target['upstream']> };
  observe?: (outputTokens: number) => boolean;
  /** The catalogue's entry of the model; absent: none is known. */
  sold?: Model;
  /** Id of the exchange. */
  id?: string;
}

/** The endpoint of a path, with its wildcard. */
export function endpointFor(path: string): { endpoint: Endpoint; wildcard: string | undefined } {
  for (const endpoint of endpoints) {
    if (endpoint.path === path) return { endpoint, wildcard: undefined };
    const stem = endpoint.path.replace(/\*$/, '');
    if (endpoint.path.endsWith('*') && path.startsWith(stem)) return { endpoint, wildcard: path.slice(stem.length) };
  }
  throw new Error(`no endpoint for ${path}`);
}

export function targetFor(protocol: string, model: string, changes: RelayRequest['target'] = {}): Target {
  const { upstream, ...rest } = changes;
  return {
    provider: 'vendor',
    model,
    protocol,
    baseUrl: 'http://127.0.0.1:9',
    key: { reveal: () => 'upstream-key' },
    credential: 'vendor#1',
    traits: {},
    upstream: {
      auth: undefined,
      headers: {},
      dropFields: {},
      streamUsageOption: false,
      connectTimeoutMs: 1_000,
      firstByteTimeoutMs: 2_000,
      idleTimeoutMs: 3_000,
      ...upstream,
    },
    ...rest,
  };
}

/** Opens the request; throws what the endpoint throws. `opening`: until what it builds on is found. */
export function open(requested: RelayRequest): {
  exchange: FakeExchange;
  endpoint: Endpoint;
  opening?: void | Promise<void>;
} {
  const [path, query] = requested.path.split('?') as [string, string | undefined];
  const { endpoint, wildcard } = endpointFor(path);
  const body = requested.body;
  const exchange = fakeExchange({
    id: requested.id ?? '01890000-0000-7000-8000-000000000001',
    endpoint,
    request: {
      path,
      query: new URLSearchParams(query),
      headers: requested.headers ?? { 'content-type': 'application/json' },
      params: wildcard === undefined ? {} : { '*': decodeURIComponent(wildcard) },
      body:
        typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body)),
    },
  });
  return { exchange, endpoint, opening: endpoint.open!(exchange) };
}

export interface Relayed {
  exchange: FakeExchange;
  endpoint: Endpoint;
  answer: Answer;
  sent: UpstreamRequest;
  /** What had been reported when the answer was handed on; it computes itself until the end. */
  report: UsageReport | undefined;
}

/** Opens, handles, and answers for the upstream. */
export async function relay(requested: RelayRequest, upstream: Answer, opened = open(requested)): Promise<Relayed> {
  const { exchange, endpoint, opening } = opened;
  // A large request is opened in turns.
  if (exchange.find(call) === undefined) await opening;
  const { protocol, model } = exchange.get(call);
  exchange.set(target, targetFor(protocol, model, requested.target));
  if (requested.observe !== undefined) exchange.set(spendGuard, { observe: requested.observe });
  if (requested.sold !== undefined) exchange.set(sold, requested.sold);
  const answer = await part.handle!(exchange, async () => upstream);
  return { exchange, endpoint, answer, sent: exchange.get(upstreamRequest), report: exchange.find(usageReport) };
}

export async function readBody(body: Answer['body']): Promise<Buffer> {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A body in these chunks; `end` throws instead of ending. `pulled` counts, `returned` tells whether it was given up. */
export class Source implements AsyncIterableIterator<Uint8Array> {
  returned = false;
  pulled = 0;
  readonly #chunks: Uint8Array[];
  readonly #end: Error | 'hang' | undefined;

  constructor(chunks: readonly (Uint8Array | string)[], end?: Error | 'hang') {
    this.#chunks = chunks.map((chunk) => Buffer.from(chunk));
    this.#end = end;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    this.pulled++;
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) return { done: false, value: chunk };
    if (this.#end === 'hang') return new Promise(() => {});
    if (this.#end !== undefined) throw this.#end;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.returned = true;
    return { done: true, value: undefined };
  }
}

/** The bytes cut at these offsets. */
export function cutAt(bytes: Uint8Array, offsets: readonly number[]): Uint8Array[] {
  const ends = [...new Set(offsets)].filter((at) => at > 0 && at < bytes.length).sort((one, two) => one - two);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

export function streamAnswer(chunks: readonly (Uint8Array | string)[], end?: Error | 'hang'): Answer {
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: new Source(chunks, end) };
}

export function wholeAnswer(body: Uint8Array | string, status = 200, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: Buffer.from(body) };
}
