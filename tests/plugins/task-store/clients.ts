/** Clients of a gateway that makes images and videos, and what they wait for. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { type RunningVendor, startVendor } from '../../../plugins/sandbox/vendor.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
export const mp4 = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom'), Buffer.alloc(64)]);

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into.
type Reply = { status: number; headers: Headers; json: any };

export interface Client {
  readonly accountId: string;
  readonly key: string;
  /** A body that is no plain object goes out as it is. */
  send(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Reply>;
  balance(): Promise<bigint>;
  /** Asserts what has been paid since the balance was `before`. Processes hear of what others have ended a moment later. */
  hasPaid(before: bigint, due: bigint): Promise<void>;
}

interface MediaGateway {
  readonly vendor: RunningVendor;
  readonly gateway: TestGateway;
  readonly alice: Client;
}

/** A gateway of these providers and models before the sandbox's vendor, with a client; all of it ends with the test file. */
export async function mediaGateway(
  sections: (origin: string) => string,
  { plugins = 'files', auth = '{ public: [] }' } = {},
): Promise<MediaGateway> {
  const vendor = await startVendor({ key: 'vendor-key' });
  const gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, ${plugins}, task-store]
auth: ${auth}
plans: { default: free, offers: { free: { price: 0 } } }
${sections(vendor.origin)}`);
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });
  return { vendor, gateway, alice: await clientOf(gateway, 'alice') };
}

/** A new account of this name with ten dollars. */
export async function clientOf(
  { gateway: running, origin: base }: TestGateway,
  name: string,
  plan = 'free',
  usd = '10',
): Promise<Client> {
  const book = running.find(accounts)!;
  const { id } = await book.create(name, plan);
  await running.find(ledger)!.credit(id, parseUsd(usd), { kind: 'top-up', reason: 'test', reference: name });
  const balance = () => running.find(ledger)!.balance(id);
  const { key } = await book.createKey(id, { name: 'test' });
  return {
    accountId: id,
    key,
    async send(method, path, body, headers = {}) {
      const type: Record<string, string> = body instanceof FormData ? {} : { 'content-type': 'application/json' };
      const answer = await fetch(base + path, {
        method,
        headers: { authorization: `Bearer ${key}`, ...type, ...headers },
        ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, json: text === '' ? undefined : JSON.parse(text) };
    },
    balance,
    async hasPaid(before, due) {
      for (let tries = 0; tries < 3_000 && before - (await balance()) !== due; tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(before - (await balance()), due);
    },
  };
}

/** The answer about the task at this path when it has ended. */
export const ended = (client: Client, path: string) =>
  until(`the end of ${path}`, async () => {
    const { json } = await client.send('GET', path);
    const status = json.data?.status ?? json.status;
    return ['completed', 'failed', 'succeeded', 'cancelled'].includes(status) ? json : undefined;
  });
