/** One gateway, booted from YAML, in front of four vendors that speak one protocol each. */
import { join } from 'node:path';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { hangUp } from './post.ts';
import { type ProtocolName, protocolNames } from './scenario.ts';

export interface MatrixStage {
  readonly origin: string;
  readonly gateway: TestGateway;
  readonly vendors: Readonly<Record<ProtocolName, Vendor>>;
  stop(): Promise<void>;
}

/** Ids of the models, here and at the vendors: they are the same, so that a relayed request keeps every byte. */
export function modelOf(vendor: ProtocolName): string {
  return `model-of-${vendor}`;
}

export async function startMatrixStage(): Promise<MatrixStage> {
  const started = await Promise.all(protocolNames.map(async (name) => [name, await startVendor()] as const));
  const vendors = Object.fromEntries(started) as Record<ProtocolName, Vendor>;
  const bases: Record<ProtocolName, string> = {
    chat: `${vendors.chat.origin}/v1`,
    responses: `${vendors.responses.origin}/v1`,
    messages: vendors.messages.origin,
    gemini: `${vendors.gemini.origin}/v1beta`,
  };
  const gateway = await startGateway(
    JSON.stringify({
      gateway: 'matrix',
      listen: 0,
      server: { idle_frame: '60s' },
      plugins: [join(import.meta.dirname, '../relay/probe.ts'), 'providers', 'models', 'route', 'protocol-convert'],
      providers: Object.fromEntries(
        protocolNames.map((name) => [
          name,
          {
            keys: 'vendor-key',
            speaks: { [name]: bases[name] },
            // This vendor of chat completions shows its reasoning, and wants it back.
            ...(name === 'chat' ? { dialect: { chat: { reasoning_replay: true } } } : {}),
          },
        ]),
      ),
      models: Object.fromEntries(
        protocolNames.map((name) => [modelOf(name), { owned_by: 'matrix', targets: [name], price: 'free' }]),
      ),
    }),
  );
  return {
    origin: gateway.origin,
    gateway,
    vendors,
    async stop() {
      hangUp();
      await gateway.stop();
      await Promise.all(protocolNames.map((name) => vendors[name].stop()));
    },
  };
}
