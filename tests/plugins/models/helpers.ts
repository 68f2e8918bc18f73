/** The models plugin beside real providers, and its endpoints behind a plain HTTP server, as SDKs would meet them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Endpoint, Exchange, PluginInstance } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { type FakeHost, fakeExchange, fakeHost, orderEndpoints, setUp } from '../../helpers/fakes.ts';

const keys = 'one';
export const vendors = {
  acme: { keys, speaks: { chat: 'https://acme.example/v1', gemini: 'https://acme.example/v1beta' } },
  'stand-in': { keys, speaks: { chat: 'http://127.0.0.1:9/v1' } },
  elsewhere: { keys, speaks: { chat: 'https://elsewhere.example/v1' } },
  idle: { keys: '', speaks: { chat: 'https://idle.example/v1' } },
};

const price = { input: 1, output: 2 };
export const models = {
  'acme/large:latest': {
    owned_by: 'acme',
    display_name: 'Acme Large',
    targets: ['idle', 'acme/large-2'],
    context: '1M',
    max_output: '64k',
    created: '2026-04-23',
    price,
    aliases: ['best'],
  },
  small: { owned_by: 'acme', targets: ['acme'], created: 1_700_000_000, price: 'free' },
  orphan: { owned_by: 'idle', targets: ['idle'], price },
  unpriced: { owned_by: 'acme', targets: ['acme'] },
  painter: { owned_by: 'acme', kind: 'image', targets: ['acme'], price: { image: 0.02 }, price_source: 'example' },
};

export async function start(
  section: unknown = models,
  endpoints = orderEndpoints,
): Promise<{ host: FakeHost; part: PluginInstance }> {
  const host = fakeHost({ endpoints: () => endpoints });
  await setUp(providersPlugin, host, vendors);
  return { host, part: await setUp(modelsPlugin, host, section) };
}

/** What the core does with an endpoint that answers by itself. */
export async function send(part: PluginInstance, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const url = new URL(path, 'http://gateway.example');
  const [endpoint, wildcard] = route(part, decodeURIComponent(url.pathname));
  const request = { method: 'GET', path: url.pathname, query: url.searchParams, headers, params: { '*': wildcard } };
  const exchange: Exchange = fakeExchange({ endpoint, request, id: 'exchange-1' });
  try {
    return await endpoint.handle!(exchange, () => Promise.reject(new Error('the catalogue forwards nothing')));
  } catch (error) {
    return endpoint.renderError!(toGatewayError(error), exchange);
  }
}

function route(part: PluginInstance, path: string): [Endpoint, string | undefined] {
  for (const endpoint of part.endpoints!) {
    if (endpoint.path === path) return [endpoint, undefined];
    const prefix = endpoint.path.slice(0, -1);
    if (endpoint.path.endsWith('*') && path.startsWith(prefix)) return [endpoint, path.slice(prefix.length)];
  }
  throw new Error(`no endpoint for ${path}`);
}

/** Members of the bodies that are looked at one by one. */
export interface Body {
  readonly error: Record<string, unknown>;
  readonly request_id: string;
  readonly data: readonly Record<string, unknown>[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly models: readonly unknown[];
  readonly nextPageToken: string;
}

export function json(answer: Answer): Body {
  return JSON.parse(answer.body as string);
}

/** Everything that an SDK's own paging yields. */
export async function collect<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of pages) all.push(item);
  return all;
}

/** Serves the endpoints on a loopback port; resolves with the address and what stops it. */
export async function serve(part: PluginInstance): Promise<{ origin: string; stop: () => void }> {
  const server = createServer(async (incoming, outgoing) => {
    const answer = await send(part, incoming.url!, incoming.headers as Record<string, string>);
    outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
