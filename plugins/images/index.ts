/** Synchronous image generation: `POST /v1/images/generations`, relayed byte for byte and charged by what was made. */
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  upstreamRequest,
} from '../../core/contract.ts';
import { envelope } from '../../core/error-envelope.ts';
import type { GatewayError } from '../../core/errors.ts';
import { duration, z } from '../../core/schema.ts';
import { call, target, usageReport } from '../../core/vocabulary.ts';
import { readAnswer } from './answer.ts';
import { asked, openRequest } from './request.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

/** Ten images of the largest kind, as base64. */
const maxAnswerBytes = 512 * 1024 * 1024;

const config = z.strictObject({
  protocol: z
    .string()
    .min(1)
    .describe("Name by which a provider's `speaks` says where it takes these requests as they come."),
  timeout: duration()
    .refine((milliseconds) => milliseconds >= 1_000, 'must be at least 1s')
    .prefault('10m')
    .describe('Time in which the images must have been made; also of those whose client has left.'),
});

export default definePlugin({
  name: 'images',
  config,
  reads: [call, asked, target],
  writes: [upstreamRequest, usageReport],
  setup(host: Host, { protocol, timeout }: z.output<typeof config>) {
    const endpoint: Endpoint = {
      method: 'POST',
      path: '/v1/images/generations',
      operation: 'images',
      timeoutMs: timeout,
      states: [call, asked],
      open(exchange) {
        const request = openRequest(exchange.request.body, protocol);
        exchange.set(call, request.call);
        exchange.set(asked, request);
      },
      renderError: (error: GatewayError) => ({
        status: error.status,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(envelope(error)),
      }),
    };
    return {
      endpoints: [endpoint],
      applies: (candidate: Endpoint) => candidate === endpoint,
      async handle(exchange: Exchange, next: Next) {
        const request = exchange.get(asked);
        const to = exchange.get(target);
        if (to.protocol !== protocol) throw new Error(`route chose a protocol that is not spoken: ${to.protocol}`);
        // Vendors charge for images that nobody fetches.
        exchange.outlive({ longestMs: timeout, maxBytes: maxAnswerBytes });
        const { sending, dropped } = wordUpstreamRequest(request.body, to, timeout);
        exchange.set(upstreamRequest, sending);
        const { answer, report } = await readAnswer(await next(), request, host.clock.now(), to.key.reveal());
        exchange.set(usageReport, report);
        if (dropped.length > 0) answer.headers['x-gateway-dropped'] = dropped.join(', ');
        return answer;
      },
    };
  },
});
