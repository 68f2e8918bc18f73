/** A gateway with vector stores, the sandbox as the vendor of its models, and the official client. */
import OpenAI from 'openai';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { formatUsd, parseUsd } from '../../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes are asserted on
export type Json = any;

export interface World {
  readonly gateway: TestGateway;
  account(usd?: string): Promise<{ readonly id: string; readonly key: string; readonly client: OpenAI }>;
  clientOf(key: string): OpenAI;
  /** What the ledger has charged, once `count` charges are there, oldest first, in USD. */
  charges(accountId: string, count: number): Promise<readonly string[]>;
  balance(accountId: string): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const fileOf = (name: string, text: string | Uint8Array<ArrayBuffer>, type = 'text/plain') =>
  new File([text], name, { type });

const clientAt = (origin: string, apiKey: string) => new OpenAI({ baseURL: `${origin}/v1`, apiKey, maxRetries: 0 });

/** `settings`: YAML of the plugin's section beside its model. An input token costs 0.01 USD. */
export async function openWorld({
  settings = '',
  embeddings = 'sandbox:/v1',
  options = {} as TestGatewayOptions,
  more = '',
} = {}): Promise<World> {
  const gateway = await startGateway(
    `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, files, auth, plans, rate-limit, sandbox, providers, models, idempotency, billing, route, endpoints, uploads, vector-stores]
plans: { default: free, offers: { free: { price: 0 } } }
providers: { vendor: { keys: key, speaks: { openai-embeddings: "${embeddings}" } } }
models:
  vectors: { kind: embedding, owned_by: x, context: 8k, price: { input: 10000 }, targets: [vendor] }
vector-stores: { model: vectors, dimensions: 64 ${settings} }
${more}
`,
    options,
  );
  const find = gateway.gateway.find.bind(gateway.gateway);
  let names = 0;
  const clientOf = (apiKey: string) => clientAt(gateway.origin, apiKey);
  return {
    gateway,
    clientOf,
    async account(usd = '1000') {
      const name = `account ${++names}`;
      const { id } = await find(accounts)!.create(name, 'free');
      await find(ledger)!.credit(id, parseUsd(usd), { kind: 'manual', reason: 'test', reference: name });
      const { key } = await find(accounts)!.createKey(id, { name });
      return { id, key, client: clientOf(key) };
    },
    balance: async (id) => formatUsd(await find(ledger)!.balance(id)),
    async charges(account, count) {
      const command = gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
      return until(`${count} charges`, async () => {
        const { rows } = (await command.run({ account, limit: '1000' })).json as { rows: Json[] };
        const charges = rows.filter(({ kind }) => kind === 'CHARGE');
        return charges.length >= count && charges.toReversed().map(({ change }) => String(change));
      });
    },
    [Symbol.asyncDispose]: () => gateway.stop(),
  };
}
