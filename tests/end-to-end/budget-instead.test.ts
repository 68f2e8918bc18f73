/** A budget that names another model: calls that do not fit in it are served and charged as that one's, where it can take them. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { ledger, pool } from '../../plugins/common/domain/ledger.ts';
import { formatUsd, money, parseUsd } from '../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

/** Names of the models that the vendor was asked for. */
const asked: string[] = [];
const vendor = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => {
    body += chunk;
  });
  request.on('end', () => {
    const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
    asked.push(model);
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const base = { id: 'c1', created: 1, model };
    const choice = { index: 0, finish_reason: 'stop' };
    if (stream !== true) {
      const whole = {
        ...base,
        object: 'chat.completion',
        choices: [{ ...choice, message: { role: 'assistant', content: 'Hi' } }],
        usage,
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
      return;
    }
    const chunk = { ...base, object: 'chat.completion.chunk', choices: [{ ...choice, delta: { content: 'Hi' } }] };
    const last = { ...base, object: 'chat.completion.chunk', choices: [], usage };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
  });
});

let running: TestGateway;
before(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  const { port } = vendor.address() as AddressInfo;
  const model = (request: number, context: number) =>
    `{ owned_by: acme, context: ${context}, price: { input: 1, output: 1, request: ${request} }, targets: [acme/NAME] }`;
  running = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, models, billing, route, protocol-convert, endpoints]
plans: { default: free, offers: { free: { price: 0 } } }
providers: { acme: { speaks: { chat: "http://127.0.0.1:${port}/v1" }, keys: k } }
models:
  dear: ${model(2, 100_000).replace('NAME', 'dear')}
  cheap: ${model(0.5, 100_000).replace('NAME', 'cheap')}
billing:
  budgets:
    - { of: models, models: [dear], amount: 3, every: month, instead: cheap }
    - { of: account, amount: 4.5, every: month }
`);
});
after(async () => {
  await running?.stop();
  vendor.close();
});

async function keyOf(name: string, models?: readonly string[]): Promise<{ key: string; id: string }> {
  const { gateway } = running;
  const { id } = await gateway.find(accounts)!.create(name, 'free');
  await gateway.find(ledger)!.credit(id, parseUsd('20'), { kind: 'top-up', reason: 'test', reference: name });
  return { ...(await gateway.find(accountAdmin)!.createKey(id, { name, models })), id };
}

const ask = (key: string, stream = false) =>
  fetch(`${running.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'dear', stream, max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }),
  });

test('a call that does not fit in a budget is served by the model that it names, whole or streamed, at its price', async () => {
  const { gateway } = running;
  const admin = gateway.find(accounts)!;
  const { key } = await keyOf('ada');
  const { id } = (await admin.find('ada'))!;
  asked.length = 0;
  const first = await ask(key);
  assert.deepEqual([first.status, first.headers.get('x-gateway-model')], [200, null], await first.text());
  for (const stream of [false, true]) {
    const answer = await ask(key, stream);
    assert.deepEqual([answer.status, answer.headers.get('x-gateway-model')], [200, 'cheap']);
    assert.match(await answer.text(), stream ? /\[DONE\]/ : /"content":"Hi"/);
  }
  assert.deepEqual(asked, ['dear', 'cheap', 'cheap']);
  const left = async () => {
    const { balance, held } = await gateway.find(pool)!.view(id);
    return formatUsd(money(balance + held));
  };
  await until('all is charged', async () => (await left()).startsWith('16.99'));
  assert.equal(await left(), '16.999994');
});

test('a model that the key may not call takes nothing over, and the budget says why it refuses', async () => {
  const { key } = await keyOf('ben', ['dear']);
  assert.equal((await ask(key)).status, 200);
  const refused = await ask(key);
  const { error } = (await refused.json()) as { error: { code: string; message: string } };
  assert.deepEqual([refused.status, error.code], [402, 'budget_reached']);
  assert.match(error.message, /The budget of dear, 3\.00 USD a month/);
});

test('the other model is held to the other budgets of the call too', async () => {
  const { key } = await keyOf('eve');
  const seen: (string | number)[] = [];
  for (let calls = 0; calls < 8; calls += 1) {
    const answer = await ask(key);
    seen.push(answer.status === 200 ? (answer.headers.get('x-gateway-model') ?? 'dear') : answer.status);
    await answer.text();
  }
  // 2 + 4 × 0.5 are within 4.5 USD, with what tokens cost; a fifth one is not.
  assert.deepEqual(seen, ['dear', 'cheap', 'cheap', 'cheap', 'cheap', 402, 402, 402]);
});
