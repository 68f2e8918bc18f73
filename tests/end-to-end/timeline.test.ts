/** One request that was failed over, converted and given back: its timeline by id, on the command line and in the console. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { formatUsd } from '../../plugins/common/domain/money.ts';
import { Browser } from '../plugins/console/browser.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

const operator = { email: 'oscar@example.test', password: 'a long enough password', name: 'Oscar' };
const secretOfVendor = 'sk-ant-api03-abcdefgh12345678';
let testbed: Testbed;
let boss: Browser;
let customer: Customer;
let id: string;
let cost: bigint;

before(async () => {
  testbed = await startTestbed({
    offers: { limited: { price: 0, limits: { rpm: 10, tpm: 100_000, concurrency: 3 } } },
    providers: ({ sandbox, replay }) => ({
      busy: { keys: 'busy-key', speaks: { messages: replay } },
      chatty: { keys: 'vendor-key-of-the-sandbox', speaks: { chat: `${sandbox}/v1` } },
    }),
    models: {
      reported: {
        owned_by: 'test',
        targets: ['busy', 'chatty/sandbox'],
        context: '100k',
        price: { input: 1, cache_read: 0.1, output: 2 },
        cost: { input: 0.5, cache_read: 0.05, output: 1 },
      },
    },
  });
  boss = new Browser(testbed.origin, undefined);
  const token = decodeURIComponent(/\/console\/first\?token=([\w%-]+)/.exec(testbed.gateway.lines.join('\n'))![1]!);
  await boss.send('/first-operator', { body: { token, ...operator } });
  await boss.send('/auth/sign-in/email', { body: { email: operator.email, password: operator.password } });

  customer = await testbed.customer({ plan: 'limited' });
  testbed.replay.play({
    status: 529,
    headers: { 'content-type': 'application/json', 'request-id': 'req_vendor_1' },
    body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded for ${secretOfVendor}"}}`,
  });
  const reply = await testbed.call(customer, 'messages', {
    model: 'reported',
    prompt: 'Hello [[sandbox: tokens=20]]',
    stream: true,
    more: { top_k: 5 },
  });
  assert.equal(reply.status, 200, reply.text);
  assert.doesNotMatch(reply.text + JSON.stringify([...reply.headers]), /Overloaded|req_vendor_1/);
  id = reply.id;
  const { charges } = await testbed.records(customer);
  cost = charges[0]!.cost;
  await until('its row is written', async () => (await boss.send(`/admin/requests/${id}`)).status === 200);
  const account = (await testbed.rows<{ id: string; name: string }>('accounts')).find(
    (row) => row.id === customer.accountId,
  )!;
  await run('accounts refund', { name: account.name, usd: formatUsd(cost as never), request: id, reason: 'a test' });
});
after(() => testbed.stop());

const run = (name: string, values: Record<string, string>) =>
  testbed.gateway.gateway.commands.find((command) => command.name === name)!.run(values);

/** Times and numbers that differ from run to run. */
const plain = (text: string) => text.replaceAll(/after \d+ ms$/gm, 'after … ms');

test('the command lists the timeline from the plan to the refund, in order', async () => {
  const { text } = await run('requests show', { id: `req_${id}` });
  const [first, second, ...lines] = plain(text).split('\n');
  assert.match(first!, new RegExp(`^${id}  \\d{4}-\\d\\d-\\d\\dT`));
  assert.match(
    second!,
    /^messages reported in messages streamed: 200, sent to its end; first byte after \d+ ms, \d+ ms in all$/,
  );
  const chapters = lines.map((each) => each.replace(/^ *(?:\d+ ms|ledger) {2}/, '').replace(/ {2,}/, ': '));
  const usd = formatUsd(cost as never);
  const expected = [
    /^plans: on the plan "limited"$/,
    /^rate-limit: left of the plan: 9 of 10 requests per minute, \d+ of 100000 tokens per minute, 2 of 3 at a time$/,
    /^billing: [\d.]+ USD set aside for about \d+ tokens of prompt and up to \d+ of answer$/,
    /^route: targets in this order: busy\/reported \(messages\), chatty\/sandbox \(chat\); as listed$/,
    /^route: attempt 1 goes to busy\/reported by busy#1; it failed: the upstream answered 529$/,
    /^route: attempt 1 was refused with 529 after … ms$/,
    /^protocol-convert: relayed as messages$/,
    /^route: attempt 1 failed at its vendor with the words “Overloaded for \*\*\*”, which calls it req_vendor_1$/,
    /^route: attempt 2 goes to chatty\/sandbox by chatty#1$/,
    /^route: attempt 2 was answered with 200 after … ms$/,
    /^protocol-convert: translated from messages to chat; left out: top_k$/,
    new RegExp(`^billing: ${usd} USD charged$`),
    new RegExp(`^billing: ${usd} USD = .*input × .*output × .*; own cost `),
    new RegExp(`^billing: ${usd} USD given back$`),
  ];
  assert.equal(chapters.length, expected.length, chapters.join('\n'));
  for (const [index, pattern] of expected.entries()) assert.match(chapters[index]!, pattern, chapters.join('\n'));
  for (const secret of [customer.key, 'busy-key', 'vendor-key']) assert.ok(!text.includes(secret));
});

test('the console shows an operator the same timeline with the refund', async () => {
  const { json } = await boss.send(`/admin/requests/${id}`);
  const { request, story: timeline, charge, attempts, dropped } = json;
  assert.deepEqual([request.status, request.provider, request.attempts], [200, 'chatty', 2]);
  assert.deepEqual(
    attempts.map(({ provider, result, status }: Record<string, unknown>) => [provider, result, status]),
    [
      ['busy', 'refused', 529],
      ['chatty', 'answered', 200],
    ],
  );
  assert.deepEqual(
    attempts.map(({ vendorMessage, vendorRequestId }: Record<string, unknown>) => [vendorMessage, vendorRequestId]),
    [
      ['Overloaded for ***', 'req_vendor_1'],
      [null, null],
    ],
  );
  assert.deepEqual(dropped, ['top_k']);
  assert.equal(charge.refunded, charge.cost);
  const shown = await run('requests show', { id });
  for (const { text } of timeline as { text: string }[]) assert.ok(shown.text.includes(text), text);
  const who = (timeline as { by: string }[]).map(({ by }) => by);
  for (const by of ['plans', 'rate-limit', 'billing', 'route', 'protocol-convert']) assert.ok(who.includes(by), by);
});

test("a vendor's error in the middle of a stream is in the timeline in its own words, relayed and translated", async () => {
  const frames = [
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 3 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'error', error: { type: 'overloaded_error', message: `Out of room, ${secretOfVendor}` } },
  ];
  for (const protocol of ['messages', 'responses'] as const) {
    testbed.replay.play({
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join(''),
    });
    const reply = await testbed.call(customer, protocol, { model: 'reported', prompt: 'Hello', stream: true });
    assert.equal(reply.status, 200, reply.text);
    await until('its row is written', async () => (await boss.send(`/admin/requests/${reply.id}`)).status === 200);
    const { json } = await boss.send(`/admin/requests/${reply.id}`);
    const said = (json.story as { kind: string; values: unknown[] }[]).filter(({ kind }) => kind === 'route.vendor');
    assert.deepEqual(
      said.map(({ values }) => values),
      [[1, 'Out of room, ***', null]],
      protocol,
    );
    assert.equal(json.attempts[0].vendorMessage, 'Out of room, ***', protocol);
  }
});

test('an unknown request id is reported by name', async () => {
  const unknown = '01a00000-0000-7000-8000-000000000000';
  await assert.rejects(run('requests show', { id: unknown }), {
    message: new RegExp(`There is no request ${unknown}`),
  });
});
