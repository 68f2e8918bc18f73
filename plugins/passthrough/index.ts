/** Forwards every path to one upstream, byte for byte: the smallest possible gateway. */

import {
  defineContextKey,
  definePlugin,
  type Endpoint,
  type Exchange,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { reloadable } from '../../core/contract/reloadable.ts';
import { duration, z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { placementIn } from '../common/domain/organizations/placement.ts';
import { plan } from '../common/domain/plans.ts';

/** Headers of one connection (RFC 9110, 7.6.1), and those that the transport sets. */
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
const opened = defineContextKey<true>('passthrough opened');

export default definePlugin({
  name: 'passthrough',
  config: z.strictObject({
    upstream: z
      .url({ protocol: /^https?$/ })
      .transform((value) => value.replace(/\/$/, ''))
      .describe("Base URL that takes the place of this gateway's address. Write the address of the server behind it."),
    connect: duration()
      .default(10_000)
      .describe('Time for DNS, TCP and TLS together. Raise it for servers that are far away.'),
    first_byte: duration()
      .default(600_000)
      .describe(
        'Time from the last byte of the request to the head of the answer. Raise it for servers that think for long.',
      ),
    idle: duration().default(600_000).describe('Longest silence inside an answer. Raise it for streams that pause.'),
  }),
  requires: [opened],
  optional: [caller, plan],
  sets: [upstreamRequest],
  setup(_host, config) {
    const open = (exchange: Exchange) => exchange.set(opened, true);
    const endpoints = methods.map(
      (method): Endpoint => ({
        method,
        path: '/*',
        operation: 'passthrough',
        keeps: 'requests to a server of the operator',
        setsOnOpen: [opened],
        open,
      }),
    );
    return reloadable({ endpoints }, config, (settings) => ({
      handle(exchange, next) {
        const { method, path, query, headers, body } = exchange.request;
        if (placementIn(exchange) !== undefined) throw nowhere();
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
        return next().then(passed);
      },
    }));
  },
});

/** Where the server behind it is, and what it keeps, is not known. */
const nowhere = () =>
  new GatewayError('forbidden', 'This address is not for keys that are bound to regions or keep nothing.', {
    code: 'region_unavailable',
    shouldRetry: false,
  });

function passed(answer: Answer): Answer {
  answer.headers = passing(answer.headers);
  return answer;
}

/** The headers to forward, without those that the Connection header names. */
function passing(headers: Readonly<Record<string, string>>): Record<string, string> {
  const connection = headers['connection'] ?? '';
  const own = connection === '' ? undefined : new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  const passed: Record<string, string> = {};
  for (const name in headers) if (!hopByHop.has(name) && own?.has(name) !== true) passed[name] = headers[name]!;
  return passed;
}
