/** The gateway under measurement: the main gateway's plugins before the benchmark's vendor, with one rich account. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boot } from '../../core/boot.ts';
import { money } from '../../core/money.ts';
import { accounts, ledger } from '../../core/vocabulary.ts';

const [upstreamPort, kind] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), 'bench-'));
const lists: Record<string,string> = { a: "providers, models, route, protocol-convert", b: "storage, auth, plans, rate-limit, providers, models, route, protocol-convert", c: "storage, auth, plans, rate-limit, providers, models, billing, route, protocol-convert", d: "storage, request-log, auth, plans, rate-limit, providers, models, billing, route, protocol-convert", full: "storage, request-log, auth, plans, rate-limit, providers, models, billing, route, protocol-convert" };
const full = `
gateway: bench
listen: 127.0.0.1:0
data: ${directory}
log: info
plugins: [${lists[kind!] ?? ""}]
request-log: { lines: ${kind === "full"} }
plans: { default: bench, offers: { bench: { price: 0, limits: { rpm: 100M, tpm: 1000M, concurrency: 100k } } } }
providers: { vendor: { keys: bench-key, speaks: { chat: "http://127.0.0.1:${upstreamPort}/v1" } } }
models: { bench: { owned_by: bench, targets: [vendor], context: 100k, max_output: 4k, price: { input: 1, output: 2 } } }
`;
const passthrough = `
gateway: bench
listen: 127.0.0.1:0
data: ${directory}
log: info
plugins: [passthrough]
passthrough: { upstream: "http://127.0.0.1:${upstreamPort}" }
`;
const file = join(directory, 'bench.yaml');
writeFileSync(file, kind === "pass" ? passthrough : full);
const gateway = await boot(file, { mode: 'serve' });
const port = await gateway.serve();
process.send?.({ port, key: (kind === "pass" || kind === "a") ? "none" : await openAccount() });
process.on('disconnect', async () => {
  await gateway.stop(0);
  rmSync(directory, { recursive: true, force: true });
  process.exit(0);
});

async function openAccount(): Promise<string> {
  const book = gateway.find(accounts)!;
  const account = await book.create('bench', 'bench');
  await gateway
    .find(ledger)
    ?.credit(account.id, money(1_000_000n * 1_000_000_000n), { kind: 'top-up', reason: 'bench', reference: 'bench' });
  return (await book.createKey(account.id, { name: 'bench' })).key;
}
