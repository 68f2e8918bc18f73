/** The gateways under measurement: all plugins of the main gateway, also with guardrails and cache that have no rules or with patterns, the relay alone, or the smallest gateway there is. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { boot, type Gateway } from '../../../core/gateway/boot.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { modelOf, names, type ProtocolName } from '../words.ts';

export type GatewayKind = 'passthrough' | 'relay' | 'full' | 'ruleless' | 'guarded';

export interface BenchGateway {
  readonly gateway: Gateway;
  readonly port: number;
  /** A client's, on an account that no benchmark empties. */
  readonly key: string;
  stop(): Promise<void>;
}

/** A server instead of the embedded database. */
const database = process.env['BENCH_DATABASE_URL'];
const mainFile = new URL('../../../config/main.yaml', import.meta.url);

/** Boots the gateway in front of a vendor on this port. */
export async function startGateway(
  kind: GatewayKind,
  upstreamPort: number,
  tools: { clock?: Clock; log?: Log } = {},
): Promise<BenchGateway> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'));
  const isFull = kind !== 'passthrough' && kind !== 'relay';
  if (isFull && database === undefined) await fillDirectory(directory);
  const file = join(directory, 'bench.yaml');
  writeFileSync(file, fileOf(kind, directory, `http://127.0.0.1:${upstreamPort}`));
  const gateway = await boot(file, { mode: 'serve', ...tools });
  const port = await gateway.serve();
  return {
    gateway,
    port,
    key: isFull ? await openAccount(gateway) : 'none',
    async stop() {
      await gateway.stop(0);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function fileOf(kind: GatewayKind, directory: string, origin: string): string {
  const head = `gateway: bench\nlisten: 127.0.0.1:0\ndata: ${directory}\nlog: info\n`;
  if (kind === 'passthrough') return `${head}plugins: [passthrough]\npassthrough: { upstream: "${origin}" }\n`;
  const relay = `providers: ${JSON.stringify(providersAt(origin))}\nmodels: ${JSON.stringify(models())}\n`;
  if (kind === 'relay') return `${head}plugins: [providers, models, route, protocol-convert]\n${relay}`;
  const { plugins } = parse(readFileSync(mainFile, 'utf8')) as { plugins: string[] };
  if (kind === 'ruleless' || kind === 'guarded') addTo(plugins);
  const limits = '{ rpm: 100M, tpm: 1000M, concurrency: 100k }';
  const storage = database === undefined ? '' : `storage: { database: "${database}" }\n`;
  return `${head}plugins: ${JSON.stringify(plugins)}
${storage}plans: { default: bench, offers: { bench: { price: 0, limits: ${limits} } } }
${relay}websockets: { per_account: 1M, per_key: 1M }
${kind === 'guarded' ? guardrails : ''}`;
}

/** As in `config/company.yaml`. */
function addTo(plugins: string[]): void {
  const added = ['guardrails', 'prompts'].filter((name) => !plugins.includes(name));
  plugins.splice(plugins.indexOf('idempotency'), 0, ...added);
}

/** All known patterns, on both ways. */
const guardrails = `guardrails:
  checks: { pii: { type: patterns, find: [email, card, iban, phone, ip], do: mask, restore: true } }
  policies: { base: [pii] }
  apply: [{ policy: base }]
`;

function providersAt(origin: string): object {
  const bases: Record<ProtocolName, string> = {
    chat: `${origin}/v1`,
    messages: origin,
    responses: `${origin}/v1`,
    gemini: `${origin}/v1beta`,
  };
  return {
    ...Object.fromEntries(names.map((name) => [name, { keys: 'bench-key', speaks: { [name]: bases[name] } }])),
    voice: { keys: 'bench-key', speaks: { 'openai-realtime': `${origin}/v1` } },
  };
}

/** One model for each protocol of upstreams, so that a client's own is relayed and any other translated. */
function models(): object {
  const price = { input: 1, output: 2 };
  const voice = { owned_by: 'bench', kind: 'realtime', targets: ['voice'], context: '32k', max_output: '4k', price };
  const chat = Object.fromEntries(
    names.map((name) => [
      modelOf(name),
      { owned_by: 'bench', targets: [name], context: '100k', max_output: '4k', price },
    ]),
  );
  return { ...chat, voice };
}

async function openAccount(gateway: Gateway): Promise<string> {
  const book = gateway.find(accounts)!;
  const account = await book.create('bench', 'bench');
  await gateway
    .find(ledger)!
    .credit(account.id, money(1_000_000n * 1_000_000_000n), { kind: 'top-up', reason: 'bench', reference: 'bench' });
  return (await book.createKey(account.id, { name: 'bench' })).key;
}
