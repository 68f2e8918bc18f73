/** A fallback that answers where the vendors have failed: what the client got is charged and recorded without a provider, all else costs nothing. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway, startVendor, type TestGateway, type Vendor } from '../../plugins/common/author/testing.ts';
import { ledgerQueries } from '../../plugins/common/domain/admin/ledger.ts';
import { requestQueries } from '../../plugins/common/domain/admin/requests.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { until } from '../helpers/until.ts';

const directory = temporaryDirectory('served-');
let vendor: Vendor;
let gateway: TestGateway;
let account: string;
let key: string;

const source = `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { GatewayError } from '${pathToFileURL('core/contract/errors.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
import { call, spendGuard } from '${pathToFileURL('plugins/common/domain/calls.ts')}';
import { money } from '${pathToFileURL('plugins/common/domain/money.ts')}';
import { servedBy, serveWithoutAttempt } from '${pathToFileURL('plugins/common/domain/ledger.ts')}';
async function* broken(text) {
  yield Buffer.from(text);
  throw new Error('broken');
}
const json = { 'content-type': 'application/json' };
const ends = {
  whole: () => ({ status: 200, headers: json, body: '{"fallback":true}' }),
  error: () => ({ status: 503, headers: json, body: '{"error":{"message":"no"}}' }),
  thrown: () => { throw new GatewayError('forbidden', 'No fallback for this.'); },
  broken: () => ({ status: 200, headers: json, body: broken('{"fall') }),
  never: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
};
export default definePlugin({
  name: 'fallback',
  config: z.strictObject({}),
  requires: [call],
  optional: [spendGuard],
  sets: [servedBy],
  setup: () => ({
    handle: (exchange, next) => next().catch(() => {
      serveWithoutAttempt(exchange, { name: 'fallback', usage: {}, price: { fixed: money(7_000_000n) } });
      return ends[exchange.request.headers['x-end']](exchange);
    }),
  }),
});`;

before(async () => {
  await writeFile(join(directory, 'fallback.ts'), source);
  vendor = await startVendor();
  vendor.play({ status: 400, body: '{"error":{"message":"no"}}' });
  const plugins = ['storage', 'request-log', 'auth', 'providers', 'models', 'billing', 'usage'];
  gateway = await startGateway(
    {
      plugins: [...plugins, './fallback.ts', 'route', 'protocol-convert'],
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: { input: 1, output: 1 } } },
    },
    { from: directory },
  );
  account = ((await gateway.run('accounts create', { name: 'ada', credit: '10' })) as { id: string }).id;
  key = ((await gateway.run('keys create', { account: 'ada', name: 'test' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const post = (end: string, signal?: AbortSignal) =>
  fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, 'x-end': end },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }),
    signal: signal ?? null,
  });
const balance = () => gateway.find(ledger)!.balance(account);

/** Its row is written a moment after the answer. */
async function latestRow(status: number) {
  return until(`a request has ended with ${status}`, async () => {
    const filter = { accountId: account, from: 0, until: Date.now() + 60_000 };
    const { rows } = await gateway.find(requestQueries)!.list(filter, { limit: 1 });
    return rows[0]?.status === status && rows[0];
  });
}

test('an answer that the gateway makes itself is charged, and its rows name no provider', async () => {
  const before = await balance();
  const answer = await post('whole');
  assert.deepEqual([answer.status, await answer.json()], [200, { fallback: true }]);
  const row = await latestRow(200);
  assert.deepEqual([row.provider, row.upstreamModel, row.attempts], [undefined, undefined, 1]);
  const charge = await gateway.find(ledgerQueries)!.charge(row.id, undefined);
  assert.deepEqual([charge?.servedBy, charge?.provider, charge?.ownCost], ['fallback', undefined, 0n]);
  assert.deepEqual(
    charge?.attempts.map(({ provider, result }) => [provider, result]),
    [['vendor', 'refused']],
  );
  assert.equal(before - (await balance()), 7_000_000n);
  await inUsage({ requests: 1, usd: 0.007 });
});

/** What the account's own key is shown; sums follow a moment after the answers. */
async function inUsage({ requests, usd }: { requests: number; usd: number }) {
  // biome-ignore lint/suspicious/noExplicitAny: members are compared below
  const read = async (path: string): Promise<any> => {
    const answer = await fetch(gateway.origin + path, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(answer.status, 200);
    return answer.json();
  };
  const since = Math.floor(Date.now() / 86_400_000) * 86_400 - 86_400;
  const reports = async () => {
    const usage = await read(`/v1/organization/usage/completions?start_time=${since}&group_by=model`);
    const costs = await read(`/v1/organization/costs?start_time=${since}&group_by=line_item`);
    return {
      usage: usage.data.flatMap(({ results }: { results: object[] }) => results),
      costs: costs.data.flatMap(({ results }: { results: object[] }) => results),
    };
  };
  const seen = await until('usage is reported', async () => {
    const found = await reports();
    return found.usage.length > 0 && found;
  });
  assert.equal(seen.usage.length, 1, JSON.stringify(seen));
  const { model, num_model_requests, input_tokens, output_tokens } = seen.usage[0];
  assert.deepEqual([model, num_model_requests, input_tokens, output_tokens], ['m', requests, 0, 0]);
  assert.equal(seen.costs.length, 1);
  assert.equal(seen.costs[0].line_item, 'm');
  assert.equal(Number(seen.costs[0].amount.value), usd);
  assert.doesNotMatch(JSON.stringify(seen), /fallback|vendor/);
}

for (const [end, status] of Object.entries({ error: 503, thrown: 403 })) {
  test(`an error instead of an own answer is not charged: ${end}`, async () => {
    const before = await balance();
    const answer = await post(end);
    assert.equal(answer.status, status);
    await answer.text();
    assert.equal((await latestRow(status)).provider, 'vendor');
    assert.equal(await balance(), before);
  });
}

test('an own answer that breaks off is not charged', async () => {
  const before = await balance();
  await assert.rejects(post('broken').then((answer) => answer.text()));
  await latestRow(200);
  assert.equal(await balance(), before);
});

test('an own answer that never begins is not charged', async () => {
  const before = await balance();
  const leaving = new AbortController();
  const { length } = vendor.requests;
  const answer = post('never', leaving.signal);
  await until('the vendor has refused', () => vendor.requests.length > length);
  leaving.abort();
  await assert.rejects(answer);
  await latestRow(499);
  assert.equal(await balance(), before);
});

test("uncharged own answers are not in the account's usage", () => inUsage({ requests: 1, usd: 0.007 }));
