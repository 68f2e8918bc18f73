/** A main gateway with the plugin `endpoints`, vendors that are replayed, and an account with money. */
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { startVendor, type Vendor } from '../../helpers/vendor.ts';

export interface Testbed {
  readonly gateway: TestGateway;
  /** Two vendors, as `first` and `second`. */
  readonly first: Vendor;
  readonly second: Vendor;
  readonly key: string;
  readonly poorKey: string;
  post(path: string, body: object | FormData | Uint8Array, options?: PostOptions): Promise<Posted>;
  /** The newest charge of the account, once `count` charges are there. */
  charges(count: number): Promise<readonly Charge[]>;
  balance(): Promise<bigint>;
  stop(): Promise<void>;
}

interface PostOptions {
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes are asserted on
  readonly json: any;
}

interface Charge {
  readonly amount: string;
  readonly detail: { readonly usage: Usage; readonly estimated: boolean };
}

/** `models`: YAML below `models:`; `speaks`: protocols of both vendors. */
export async function openTestbed(models: string, speaks: readonly string[], more = ''): Promise<Testbed> {
  const [first, second] = await Promise.all([startVendor(), startVendor()]);
  const provider = (name: string, { origin }: Vendor) =>
    `  ${name}: { keys: key-of-${name}, speaks: { ${speaks.map((protocol) => `${protocol}: "${origin}/v1"`).join(', ')} } }`;
  const gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert, endpoints]
plans: { default: free, offers: { free: { price: 0 } } }
rate-limit: {}
providers:
${provider('first', first)}
${provider('second', second)}
models:
${models}
${more}
`);
  const open = async (name: string, usd: string) => {
    const account = await gateway.gateway.find(accounts)!.create(name, 'free');
    const grant = { kind: 'manual', reason: 'test', reference: name };
    if (usd !== '0') await gateway.gateway.find(ledger)!.credit(account.id, parseUsd(usd), grant);
    return { id: account.id, key: (await gateway.gateway.find(accounts)!.createKey(account.id, { name })).key };
  };
  const [rich, poor] = [await open('rich', '10000'), await open('poor', '0')];
  const post: Testbed['post'] = async (path, body, { key = rich.key, headers = {}, signal } = {}) => {
    const isJson = !(body instanceof FormData) && !(body instanceof Uint8Array);
    const answer = await fetch(`${gateway.origin}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        ...(isJson ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      body: isJson ? JSON.stringify(body) : body,
      ...(signal === undefined ? {} : { signal }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const text = bytes.toString();
    const type = answer.headers.get('content-type') ?? '';
    return {
      status: answer.status,
      headers: answer.headers,
      bytes,
      text,
      json: type.includes('json') ? JSON.parse(text) : undefined,
    };
  };
  return {
    gateway,
    first,
    second,
    key: rich.key,
    poorKey: poor.key,
    post,
    balance: () => gateway.gateway.find(ledger)!.balance(rich.id),
    async charges(count) {
      const command = gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
      return until(`${count} charges`, async () => {
        const { rows } = (await command.run({ account: rich.id, limit: '1000' })).json as {
          rows: (Charge & { kind: string })[];
        };
        const charges = rows.filter(({ kind }) => kind === 'CHARGE');
        return charges.length >= count && charges;
      });
    },
    async stop() {
      await gateway.stop();
      await Promise.all([first.stop(), second.stop()]);
    },
  };
}
