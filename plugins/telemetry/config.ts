/** The settings of metrics and traces. */

import { duration, listenAddress, z } from '../../core/contract/schema.ts';

const address = z.union([
  z.literal('').transform(() => undefined),
  listenAddress('0.0.0.0:9464').transform(({ host = '127.0.0.1', ...place }) => ({ host, ...place })),
]);

export const telemetrySchema = z.strictObject({
  listen: address
    .prefault('')
    .describe(
      'Where Prometheus finds the metrics (/metrics): a port of this machine alone, or address:port; empty: nowhere. Set it to watch the gateway with Prometheus.',
    ),
  otlp: z
    .strictObject({
      endpoint: z
        .string()
        .refine((url) => url === '' || /^https?:\/\/\S+$/.test(url), 'must be a URL such as http://collector:4318')
        .default('')
        .describe(
          'Base address of an OpenTelemetry collector (OTLP over HTTP); empty: nothing is sent. Set it to send metrics and traces.',
        ),
      headers: z
        .record(z.string(), z.string())
        .default({})
        .describe('Headers of requests to the collector, such as an authorization. Set what your collector asks for.'),
      interval: duration().prefault('60s').describe('How often metrics are sent. Raise it to send less.'),
    })
    .prefault({})
    .describe('Metrics and traces sent to a collector.'),
  traces: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      "Share of requests that are traced where no caller has decided it; needs a collector's address. Lower it where there is much traffic.",
    ),
  convention: z
    .enum(['1.37', 'genai-0.1'])
    .default('1.37')
    .describe(
      'Names of what metrics and spans say of models: those of the semantic conventions 1.37, or of their successor for generative AI alone, 0.1. Change it when your dashboards use the newer names.',
    ),
  identities: z
    .enum(['plain', 'hashed', 'none'])
    .default('hashed')
    .describe(
      'How spans name the account, the key, its project and tags of a request: as they are, as a digest, or not at all. Use plain where the collector may know your clients.',
    ),
  propagate: z
    .boolean()
    .default(true)
    .describe(
      'Send the trace to upstreams (traceparent), for traced requests. Turn it off when vendors should not see it.',
    ),
});

export type TelemetryConfig = z.output<typeof telemetrySchema>;
