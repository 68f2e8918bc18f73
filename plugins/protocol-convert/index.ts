/** The four chat protocols: their endpoints, and answers relayed byte for byte while they are metered. */
import { definePlugin, type Endpoint, upstreamRequest } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { z } from '../../core/schema.ts';
import { type Call, call, meter, type Target, target, usageReport } from '../../core/vocabulary.ts';
import { readRequestBody } from './checks.ts';
import { opened, type Prepared, type Protocol, type ProtocolEndpoint } from './protocol.ts';
import { protocols } from './protocols/index.ts';
import { relayAnswer } from './relay.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

const names = ['chat', 'responses', 'messages', 'gemini'] as const;

const config = z.strictObject({
  expose: z
    .array(z.enum(names))
    .default([...names])
    .describe('Protocols whose endpoints this gateway offers.'),
  on_loss: z
    .enum(['report', 'refuse'])
    .default('report')
    .describe(
      'What happens to request fields that the target does not take: "report" leaves them out and names them in the header x-gateway-dropped, "refuse" answers with an error.',
    ),
});

export default definePlugin({
  name: 'protocol-convert',
  config,
  reads: [call, opened, target],
  finds: [meter],
  writes: [upstreamRequest, usageReport],
  setup(host, { expose, on_loss: onLoss }) {
    const endpoints = protocols
      .filter((protocol) => expose.some((name) => name === protocol.name))
      .flatMap((protocol) => protocol.endpoints.map((endpoint) => endpointOf(protocol, endpoint)));
    const own = new Set<Endpoint>(endpoints);
    return {
      endpoints,
      applies: (endpoint) => own.has(endpoint),
      async handle(exchange, next) {
        const request = exchange.get(opened);
        const to = exchange.get(target);
        if (to.protocol !== request.protocol.name) throw notSpoken(request.call, to);
        const prepared = request.prepare(to);
        if (onLoss === 'refuse' && prepared.dropped.length > 0) throw loss(prepared);
        exchange.set(
          upstreamRequest,
          wordUpstreamRequest(request.protocol, exchange.request, prepared, to, request.call.stream),
        );
        const relayed = await relayAnswer(exchange, request, prepared, await next(), host.clock);
        // Nothing is tried again from here on: the parsed body need not be kept for as long as the answer streams.
        exchange.set(opened, { protocol: request.protocol, call: request.call, json: {}, prepare: spent });
        return relayed;
      },
    };
  },
});

function endpointOf(protocol: Protocol, endpoint: ProtocolEndpoint): Endpoint {
  return {
    method: 'POST',
    path: endpoint.path,
    operation: endpoint.operation,
    states: [call, opened],
    open(exchange) {
      const request = endpoint.open(readRequestBody(exchange.request.body), exchange);
      exchange.set(call, request.call);
      exchange.set(opened, request);
    },
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  };
}

function spent(): never {
  throw new Error('the answer has begun: this request cannot be worded again');
}

function notSpoken({ model }: Call, to: Target): GatewayError {
  const address = protocols.find((protocol) => protocol.name === to.protocol)?.address;
  return new GatewayError(
    'unsupported',
    `The model "${model}" cannot be called through this endpoint yet${address === undefined ? '.' : `: use ${address}.`}`,
    { field: 'model', code: 'protocol_unsupported' },
  );
}

function loss({ dropped }: Prepared): GatewayError {
  const field = dropped[0]!;
  return new GatewayError('unsupported', `The field "${field}" is not taken by this model.`, { field });
}
