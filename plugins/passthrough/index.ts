/** One upstream for every path, byte for byte: the smallest gateway there is. */
import {
  type Answer,
  defineFact,
  definePlugin,
  type Endpoint,
  type Exchange,
  upstreamRequest,
} from '../../core/contract.ts';
import { reloadable } from '../../core/reloadable.ts';
import { duration, z } from '../../core/schema.ts';

/** Describe one connection, not the message (RFC 9110, 7.6.1), or are made anew by the transport. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
]);
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const opened = defineFact<true>('passthrough opened');

export default definePlugin({
  name: 'passthrough',
  config: z.strictObject({
    upstream: z
      .url({ protocol: /^https?$/ })
      .transform((value) => value.replace(/\/$/, ''))
      .describe("Base URL that takes the place of this gateway's address."),
    connect: duration().default(10_000).describe('Time for DNS, TCP and TLS together.'),
    first_byte: duration()
      .default(600_000)
      .describe('Time from the last byte of the request to the head of the answer.'),
    idle: duration().default(600_000).describe('Longest silence inside an answer.'),
  }),
  reads: [opened],
  writes: [upstreamRequest],
  setup(_host, config) {
    const open = (exchange: Exchange) => exchange.set(opened, true);
    const endpoints = methods.map(
      (method): Endpoint => ({ method, path: '/*', operation: 'passthrough', states: [opened], open }),
    );
    return reloadable({ endpoints }, config, (settings) => ({
      async handle(exchange, next) {
        const { method, path, query, headers, body } = exchange.request;
        const search = query.size === 0 ? '' : `?${query}`;
        exchange.set(upstreamRequest, {
          url: settings.upstream + path + search,
          method,
          headers: passing(headers),
          body: body.length === 0 ? undefined : body,
          credential: 'passthrough',
          stream: true,
          connectTimeoutMs: settings.connect,
          firstByteTimeoutMs: settings.first_byte,
          idleTimeoutMs: settings.idle,
        });
        const answer: Answer = await next();
        return { ...answer, headers: passing(answer.headers) };
      },
    }));
  },
});

/** The headers that go on, without those that the connection itself names as its own. */
function passing(headers: Readonly<Record<string, string>>): Record<string, string> {
  const own = new Set((headers['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !own.has(name)));
}
