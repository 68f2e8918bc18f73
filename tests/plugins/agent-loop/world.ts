/** A gateway with the sandbox as the vendor of four protocols and as a server of tools. */
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { formatUsd, parseUsd } from '../../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes are asserted on
export type Json = any;

export const families = ['chat', 'responses', 'messages', 'gemini'] as const;
type Family = (typeof families)[number];

export interface World {
  readonly gateway: TestGateway;
  account(usd?: string, models?: readonly string[]): Promise<{ readonly id: string; readonly key: string }>;
  post(path: string, key: string, body: object, headers?: Record<string, string>): Promise<Response>;
  balance(accountId: string): Promise<string>;
  /** What the ledger has charged, once `count` charges are there, oldest first. */
  charges(accountId: string, count: number): Promise<readonly { readonly request: string; readonly change: string }[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `loop`, `more`, `price`: YAML of the plugin's settings, of more of the file and of the prices of its models. */
export async function openWorld({
  loop = '{}',
  more = '',
  price = 'input: 1, output: 10',
  plugins = [] as readonly string[],
  first = [] as readonly string[],
  last = [] as readonly string[],
  providers = '',
  models = '',
} = {}): Promise<World> {
  const at = (speaks: string) => `{ keys: key, speaks: { ${speaks} } }`;
  const model = (family: Family) =>
    `  of-${family}: { owned_by: x, context: 100k, max_output: 1000, price: { ${price} }, targets: [${family}] }`;
  const gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, telemetry, request-log, ${first.map((name) => `${name}, `).join('')}auth, plans, agent-loop, rate-limit, sandbox, providers, models, idempotency, billing, mcp, ${plugins.map((name) => `${name}, `).join('')}route, protocol-convert, websockets, ${last.map((name) => `${name}, `).join('')}usage]
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  chat: ${at('chat: "sandbox:/v1"')}
  responses: ${at('responses: "sandbox:/v1"')}
  messages: ${at('messages: "sandbox:"')}
  gemini: ${at('gemini: "sandbox:/v1beta"')}
${providers}
models:
${families.map(model).join('\n')}
${models}
mcp:
  servers:
    sandbox: { url: "sandbox:/mcp", price: { call: 0.5 } }
  bundles: { some: [sandbox/time] }
agent-loop: ${loop}
${more}
`);
  const find = gateway.gateway.find.bind(gateway.gateway);
  let names = 0;
  return {
    gateway,
    async account(usd = '100', models) {
      const name = `account ${++names}`;
      const { id } = await find(accounts)!.create(name, 'free');
      await find(ledger)!.credit(id, parseUsd(usd), { kind: 'manual', reason: 'test', reference: name });
      const { key } = await find(accounts)!.createKey(id, { name, ...(models === undefined ? {} : { models }) });
      return { id, key };
    },
    post: (path, key, body, headers = {}) =>
      fetch(gateway.origin + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => gateway.stop(),
    balance: async (id) => formatUsd(await find(ledger)!.balance(id)),
    async charges(account, count) {
      const command = gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
      return until(`${count} charges`, async () => {
        const { rows } = (await command.run({ account, limit: '1000' })).json as { rows: Json[] };
        const charges = rows.filter(({ kind }) => kind === 'CHARGE');
        return charges.length >= count && charges.toReversed();
      });
    },
  };
}

/** Events of a stream. */
export async function eventsOf(response: Response): Promise<Json[]> {
  const text = await response.text();
  return text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') && line !== 'data: [DONE]' ? [JSON.parse(line.slice(6))] : []));
}
