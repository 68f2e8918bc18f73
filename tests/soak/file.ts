/** The gateway file of a soak: every plugin that takes part in calls and tasks, before one sandbox. */
import { dialectNames } from '../end-to-end/dialects.ts';
import { modelOf, uses } from './calls.ts';

const basesAt = (origin: string) => ({
  chat: `${origin}/v1`,
  responses: `${origin}/v1`,
  messages: origin,
  gemini: `${origin}/v1beta`,
});

/** `shakyOrigin`: the same vendor, on its bad days. */
export function fileOf(vendorOrigin: string, shakyOrigin: string, database: string, directory: string): string {
  const [bases, shaky] = [basesAt(vendorOrigin), basesAt(shakyOrigin)];
  const providers = {
    ...Object.fromEntries(dialectNames.map((name) => [name, { keys: 'key', speaks: { [name]: bases[name] } }])),
    ...Object.fromEntries(
      dialectNames.map((name) => [`shaky-${name}`, { keys: 'key', speaks: { [name]: shaky[name] } }]),
    ),
    painter: { keys: 'key', speaks: { 'openai-images': `${vendorOrigin}/v1` } },
    filmer: { keys: 'key', speaks: { 'xai-videos': `${vendorOrigin}/imagine/v1` } },
    clipper: { keys: 'key', speaks: { 'ark-videos': `${shakyOrigin}/api/v3` } },
  };
  const text = (...targets: string[]) => ({
    ...{ owned_by: 'soak', targets, context: '100k', max_output: '4k' },
    price: { input: 1, cache_read: 0.1, cache_write_5m: 1.25, output: 2 },
  });
  const models = {
    ...Object.fromEntries(
      dialectNames.flatMap((name) =>
        uses.map((use) => [modelOf(name, use), use === 'shaky' ? text(`shaky-${name}`, name) : text(name)]),
      ),
    ),
    paint: {
      owned_by: 'soak',
      kind: 'image',
      targets: ['painter'],
      price: { input: 5, input_image: 8, output: 10, output_image: 30 },
    },
    film: { owned_by: 'soak', kind: 'video', targets: ['filmer'], price: { second: 0.05 } },
    clip: { owned_by: 'soak', kind: 'video', targets: ['clipper'], price: { output: 2 } },
  };
  return `gateway: soak
schema: soak_${process.pid}
listen: 127.0.0.1:0
data: ${directory}
log: warn
plugins: [storage, telemetry, request-log, files, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert, task-store]
storage: { database: "${database}" }
plans: { default: soak, offers: { soak: { price: 0, limits: { rpm: 10M, tpm: 1000M, concurrency: 10k } } } }
files: { fetch: { allow_private: true } }
providers: ${JSON.stringify(providers)}
models: ${JSON.stringify(models)}
`;
}
