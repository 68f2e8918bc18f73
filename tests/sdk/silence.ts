/** A gateway before a vendor of each protocol that falls silent in the middle of its answers, for longer than the gateway does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { startGateway } from '../helpers/gateway.ts';
import { type ProtocolName, protocolNames } from '../matrix/scenario.ts';
import { modelOf } from '../matrix/stage.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { hello } from '../pitfalls/relayed.ts';

/** The gateway sends its first sign of life after 15 seconds, which is its default. */
const silentMs = 17_000;

export const spoken = hello.text!;
export const models = protocolNames.map(modelOf);

/** Frames with the ids that some vendors number them by; Google's clients read no other field than `data`. */
function framesOf(vendor: ProtocolName): readonly string[] {
  const frames = vendors[vendor].stream(hello, modelOf(vendor));
  return vendor === 'gemini' ? frames : frames.map((frame, index) => `id: ${index + 1}\n${frame}`);
}

export async function startSilence(): Promise<{ readonly origin: string; stop(): Promise<void> }> {
  const vendor = createServer(async (incoming, outgoing) => {
    incoming.resume();
    const frames = framesOf(incoming.url!.split(/[/-]/)[2] as ProtocolName);
    const half = Math.ceil(frames.length / 2);
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames.slice(0, half).join(''));
    await pause(silentMs);
    outgoing.end(frames.slice(half).join(''));
  });
  vendor.listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  const providers = protocolNames.map((name) => [
    name,
    { keys: 'vendor-key', speaks: { [name]: `${origin}/of-${name}/v1` } },
  ]);
  const gateway = await startGateway(
    JSON.stringify({
      gateway: 'silence',
      listen: 0,
      plugins: ['providers', 'models', 'route', 'protocol-convert'],
      providers: Object.fromEntries(providers),
      models: Object.fromEntries(
        protocolNames.map((name) => [modelOf(name), { owned_by: 'test', targets: [name], price: 'free' }]),
      ),
    }),
  );
  return {
    origin: gateway.origin,
    async stop() {
      await gateway.stop();
      vendor.closeAllConnections();
      vendor.close();
    },
  };
}

/** Runs a program of clients before it, and returns its exit code. */
export async function readsSilence(program: string, words: readonly string[]): Promise<number> {
  const stage = await startSilence();
  try {
    const env = {
      PATH: process.env['PATH'],
      PYTHONDONTWRITEBYTECODE: '1',
      SILENT_ORIGIN: stage.origin,
      SILENT_MODELS: JSON.stringify(models),
      SILENT_TEXT: spoken,
    };
    const [code] = (await once(spawn(program, words, { stdio: 'inherit', timeout: 120_000, env }), 'exit')) as [
      number | null,
    ];
    return code ?? 1;
  } finally {
    await stage.stop();
  }
}
