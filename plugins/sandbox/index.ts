/** The sandbox: a simulated vendor inside the gateway, for demos, tests and load. */
import { definePlugin } from '../../core/contract/contract.ts';
import { duration, listenAddress, listenFailure, listenRemarks, z } from '../../core/contract/schema.ts';
import { type LocalUpstreams, localUpstreams } from '../common/domain/upstreams.ts';
import { type RunningVendor, startVendor } from './vendor.ts';

/** Base URLs that begin with `sandbox:` resolve to it. */
const upstreamName = 'sandbox';

const config = z.strictObject({
  listen: listenAddress('127.0.0.1:8080')
    .prefault('127.0.0.1:0')
    .describe(
      'Host and port on which the sandbox vendor listens; port 0 takes any free one. Set a port to call the sandbox without the gateway.',
    ),
  key: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The key that the sandbox wants from its callers; without one it takes any. Set it to try how refused keys are handled.',
    ),
  latency: z
    .strictObject({
      first_byte: duration()
        .default(0)
        .describe(
          'Silence before each answer, where a prompt does not say otherwise. Raise it to try slow models. Default: none.',
        ),
      chunk: duration()
        .default(0)
        .describe(
          'Silence between two pieces of a streamed answer, where a prompt does not say otherwise. Raise it to watch streams. Default: none.',
        ),
    })
    .prefault({})
    .describe('How slow it is when a prompt does not say otherwise.'),
});

export default definePlugin({
  name: 'sandbox',
  config,
  services: { provides: [localUpstreams] },
  setup(host, { listen, key, latency }) {
    let vendor: RunningVendor | undefined;
    const upstreams: LocalUpstreams = {
      names: [upstreamName],
      origin: (name) => (name === upstreamName ? vendor?.origin : undefined),
    };
    host.provide(localUpstreams, upstreams);
    return {
      checks: {
        notices: () => listenRemarks('sandbox.listen', listen).map((text) => ({ level: 'warning', text }) as const),
      },
      lifecycle: {
        async start() {
          const starting = startVendor({
            host: listen.host ?? '127.0.0.1',
            port: listen.port,
            key,
            firstByteMs: latency.first_byte,
            chunkMs: latency.chunk,
            now: () => host.clock.now(),
            idPrefix: host.random.bytes(6).toString('hex'),
          });
          vendor = await starting.catch((error: unknown) => {
            throw listenFailure(error, 'sandbox.listen', listen);
          });
          host.log.info({ origin: vendor.origin }, 'the sandbox vendor listens');
        },
        async stop() {
          await vendor?.close();
          vendor = undefined;
        },
      },
    };
  },
});
