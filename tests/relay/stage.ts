/** A gateway in front of a replaying vendor: real sockets on both sides, and a probe inside. */
import { request as send } from 'node:http';
import { join } from 'node:path';
import { startGateway } from '../helpers/gateway.ts';
import { families, recordings } from '../helpers/recordings.ts';
import { type Script, startVendor, type Vendor } from '../helpers/vendor.ts';
import { nextObserved, type Observed } from './probe.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
  readonly observed: Observed;
}

export interface Stage {
  readonly vendor: Vendor;
  readonly origin: string;
  /** Plays the script, asks the gateway, waits for the exchange's end. */
  send(path: string, body: string | Buffer, script: Script, headers?: Record<string, string>): Promise<Reply>;
  stop(): Promise<void>;
}

/** Every model of the recordings, and `alias`, which the vendor knows as `real/model`. */
export async function startStage(
  provider: Record<string, unknown> = {},
  convert: Record<string, unknown> = {},
): Promise<Stage> {
  const vendor = await startVendor();
  const models = new Set(families.flatMap((family) => recordings(family).map(({ model }) => model)));
  const gateway = await startGateway(
    JSON.stringify({
      gateway: 'stage',
      listen: 0,
      server: { idle_frame: '60s' },
      plugins: [join(import.meta.dirname, 'probe.ts'), 'providers', 'models', 'route', 'protocol-convert'],
      'protocol-convert': convert,
      providers: {
        vendor: {
          keys: 'vendor-key',
          speaks: {
            chat: `${vendor.origin}/v1`,
            responses: `${vendor.origin}/v1`,
            messages: vendor.origin,
            gemini: `${vendor.origin}/v1beta`,
          },
          // Recorded requests name files that were uploaded elsewhere.
          unknown_ids: 'forward',
          ...provider,
        },
      },
      models: Object.fromEntries(
        [...models, 'alias'].map((model) => [
          model,
          { owned_by: 'vendor', targets: [model === 'alias' ? 'vendor/real/model' : 'vendor'], price: 'free' },
        ]),
      ),
    }),
  );
  return {
    vendor,
    origin: gateway.origin,
    async send(path, body, script, headers = {}) {
      vendor.play(script);
      const observed = nextObserved();
      const reply = await post(`${gateway.origin}${path}`, body, headers);
      return { ...reply, observed: await observed };
    },
    async stop() {
      await gateway.stop();
      await vendor.stop();
    },
  };
}

/** Resolves with everything that came; a connection that breaks rejects. */
function post(url: string, body: string | Buffer, headers: Record<string, string>): Promise<Omit<Reply, 'observed'>> {
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      { method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(chunks) }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
