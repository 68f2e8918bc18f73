/** The gateway under measurement: the main gateway's plugins before the benchmark's vendor, with one rich account. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boot } from '../../core/boot.ts';
import { money } from '../../core/money.ts';
import { accounts, ledger } from '../../core/vocabulary.ts';
import { modelOf, names, type ProtocolName } from './words.ts';

const [upstreamPort, kind] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), 'bench-'));
const origin = `http://127.0.0.1:${upstreamPort}`;
const bases: Record<ProtocolName, string> = {
  chat: `${origin}/v1`,
  messages: origin,
  responses: `${origin}/v1`,
  gemini: `${origin}/v1beta`,
};
/** One model for each protocol of upstreams, so that a client's own is relayed and any other translated. */
const providers = Object.fromEntries(
  names.map((name) => [name, { keys: 'bench-key', speaks: { [name]: bases[name] } }]),
);
const models = Object.fromEntries(
  names.map((name) => [
    modelOf(name),
    { owned_by: 'bench', targets: [name], context: '100k', max_output: '4k', price: { input: 1, output: 2 } },
  ]),
);
const full = `
gateway: bench
listen: 127.0.0.1:0
data: ${directory}
log: info
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, billing, route, protocol-convert]
plans: { default: bench, offers: { bench: { price: 0, limits: { rpm: 100M, tpm: 1000M, concurrency: 100k } } } }
providers: ${JSON.stringify(providers)}
models: ${JSON.stringify(models)}
`;
const passthrough = `
gateway: bench
listen: 127.0.0.1:0
data: ${directory}
log: info
plugins: [passthrough]
passthrough: { upstream: "${origin}" }
`;
const file = join(directory, 'bench.yaml');
writeFileSync(file, kind === 'full' ? full : passthrough);
const gateway = await boot(file, { mode: 'serve' });
const port = await gateway.serve();
process.send?.({ port, key: kind === 'full' ? await openAccount() : 'none' });
process.on('disconnect', async () => {
  await gateway.stop(0);
  rmSync(directory, { recursive: true, force: true });
  process.exit(0);
});

async function openAccount(): Promise<string> {
  const book = gateway.find(accounts)!;
  const account = await book.create('bench', 'bench');
  await gateway
    .find(ledger)!
    .credit(account.id, money(1_000_000n * 1_000_000_000n), { kind: 'top-up', reason: 'bench', reference: 'bench' });
  return (await book.createKey(account.id, { name: 'bench' })).key;
}
