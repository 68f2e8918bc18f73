/** The whole gateway in front of vendors that fail, are slow and are many: circuits, places, sessions, and what is reported of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type RequestView, requestQueries } from '../../plugins/common/domain/admin/requests.ts';
import { type TargetView, type UpstreamView, upstreamAdmin } from '../../plugins/common/domain/admin/upstreams.ts';
import { type Script, startVendor, type Vendor } from '../helpers/vendor.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
let customer: Customer;
let sick: Vendor;
let narrow: Vendor;
let many: Vendor;
const manyKeys = ['many-1', 'many-2', 'many-3', 'many-4'];

before(async () => {
  [sick, narrow, many] = await Promise.all([startVendor(), startVendor(), startVendor()]);
  testbed = await startTestbed({
    providers: () => ({
      sick: { keys: 'sick-key', speaks: speaks(sick.origin) },
      narrow: {
        keys: 'narrow-key',
        speaks: speaks(narrow.origin),
        concurrency: 2,
        queue: { length: 2, wait: '5s' },
      },
      many: { keys: manyKeys, speaks: speaks(many.origin) },
    }),
    models: {
      pair: modelAt('sick/their-pair', 'sandbox'),
      alone: modelAt('sick/their-alone'),
      other: modelAt('sick/their-other'),
      narrow: modelAt('narrow'),
      wide: modelAt('narrow', 'sandbox'),
      many: modelAt('many'),
    },
    more: { route: { breaker: { open: '8s', max_open: '8s' } } },
  });
  customer = await testbed.customer();
});
after(async () => {
  await testbed.stop();
  await Promise.all([sick.stop(), narrow.stop(), many.stop()]);
});

const body = JSON.stringify({
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
});
const well: Script = { body };
const unavailable: Script = { status: 503, body: '{"error":{"message":"down","type":"server_error"}}' };
const send = (model: string, init?: RequestInit) => testbed.call(customer, 'chat', { model, prompt: 'Hello' }, init);

const viewOf = (provider: string): UpstreamView =>
  testbed.gateway.gateway
    .find(upstreamAdmin)!
    .list()
    .find((view) => view.provider === provider)!;
const targetOf = (provider: string, model: string): TargetView =>
  viewOf(provider).targets!.find((target) => target.model === model)!;

async function rowOf(id: string): Promise<RequestView> {
  let row: RequestView | undefined;
  await until('its row is there', async () => {
    row = await testbed.gateway.gateway.find(requestQueries)!.find(id, undefined);
    return row !== undefined;
  });
  return row!;
}

test('a failing vendor is skipped, tested by one request, and used again, and no client notices', async () => {
  sick.play(unavailable);
  for (let round = 0; round < 5; round++) assert.equal((await send('pair')).status, 200);
  assert.equal(targetOf('sick', 'their-pair').circuit, 'open');
  const before = sick.requests.length;
  for (const dialect of dialectNames) {
    const reply = await testbed.call(customer, dialect, { model: 'pair', prompt: 'Hello', stream: true });
    assert.equal(reply.status, 200);
    assert.match(reply.text, dialects[dialect].terminal);
  }
  assert.equal(sick.requests.length, before);
  const { story: timeline } = await rowOf((await send('pair')).id);
  const lines = timeline.filter(({ by }) => by === 'route').map(({ text }) => text);
  assert.match(lines[0]!, /^targets in this order: sick\/their-pair \(chat\), sandbox\/pair \(chat\); as listed$/);
  assert.match(lines[1]!, /^sick\/their-pair was passed over: it has failed, and it is left alone for \d\.\d s more$/);
  assert.match(lines[2]!, /^attempt 1 goes to sandbox/);

  let answer!: () => void;
  const untilThen = new Promise<void>((resolve) => {
    answer = resolve;
  });
  sick.play({ ...well, after: untilThen });
  await until('it may be tried', () => targetOf('sick', 'their-pair').circuit === 'half_open', 12_000);
  const all = Array.from({ length: 8 }, () => send('pair'));
  await until('one of them tries it', () => sick.requests.length === before + 1);
  await until('the others are served elsewhere', () =>
    viewOf('sandbox').targets!.every(({ inFlight }) => inFlight === 0),
  );
  await pause(50);
  assert.equal(sick.requests.length, before + 1, 'one at a time');
  answer();
  for (const reply of await Promise.all(all)) assert.equal(reply.status, 200);
  assert.equal(targetOf('sick', 'their-pair').circuit, 'closed');
  sick.play(well);
  await send('pair');
  assert.equal(sick.requests.length, before + 2);
});

test('a model without another target is tried despite its failures, and is healthy with the first answer', async () => {
  sick.play(unavailable);
  for (let round = 0; round < 6; round++) assert.equal((await send('alone')).status, 503);
  assert.equal(targetOf('sick', 'their-alone').circuit, 'open');
  sick.play(well);
  assert.equal((await send('alone')).status, 200);
  assert.equal(targetOf('sick', 'their-alone').circuit, 'closed');
});

test('a 429 of one model puts the key into cooldown for this model alone, and is no failure', async () => {
  sick.play({ status: 429, headers: { 'retry-after': '20' }, body: '{"error":{"message":"slow down"}}' });
  assert.equal((await send('alone')).status, 429);
  sick.play(well);
  const reply = await send('alone');
  assert.deepEqual([reply.status, Number(reply.headers.get('retry-after')) > 15], [503, true]);
  assert.equal((await send('other')).status, 200);
  assert.equal(targetOf('sick', 'their-alone').failed, 0);
});

test('a stream that breaks off counts against its target, each time', async () => {
  sick.play({
    headers: { 'content-type': 'text/event-stream' },
    body: 'data: {"id":"c","choices":[]}\n\n',
    dieAfter: 30,
  });
  const { failed, recent } = targetOf('sick', 'their-other');
  await testbed.call(customer, 'chat', { model: 'other', prompt: 'Hello', stream: true });
  await until('it was counted', () => targetOf('sick', 'their-other').failed === failed + 2);
  assert.equal(targetOf('sick', 'their-other').recent, recent + 2);
});

test('no more requests run than a vendor allows; the others wait and are served in order', async () => {
  let answer!: () => void;
  const after = new Promise<void>((resolve) => {
    answer = resolve;
  });
  narrow.play({ ...well, after });
  const all = Array.from({ length: 4 }, () => send('narrow'));
  await until('two wait', () => viewOf('narrow').room!.waiting === 2 && narrow.requests.length === 2);
  assert.deepEqual([narrow.requests.length, viewOf('narrow').room!.inFlight], [2, 2]);

  for (const dialect of dialectNames) {
    const reply = await testbed.call(customer, dialect, { model: 'narrow', prompt: 'Hello' });
    assert.equal(reply.status, 503, dialect);
    assert.ok(Number(reply.headers.get('retry-after')) >= 1);
    assert.ok(dialects[dialect].errorType(JSON.parse(reply.text)), reply.text);
  }
  const { status } = await send('wide');
  assert.equal(status, 200, 'who has another target goes there');
  answer();
  for (const reply of await Promise.all(all)) assert.equal(reply.status, 200);
  await until('all places are free', () => viewOf('narrow').room!.inFlight === 0);
  assert.equal(narrow.requests.length, 4);
});

test('a client that disconnects in the queue never reaches the vendor, and pays nothing', async () => {
  let answer!: () => void;
  const after = new Promise<void>((resolve) => {
    answer = resolve;
  });
  narrow.play({ ...well, after });
  const before = narrow.requests.length;
  const served = [send('narrow'), send('narrow')];
  await until('both are under way', () => narrow.requests.length === before + 2);
  const leaver = await testbed.customer();
  const controller = new AbortController();
  const left = testbed.call(leaver, 'messages', { model: 'narrow', prompt: 'Hello' }, { signal: controller.signal });
  await until('it waits', () => viewOf('narrow').room!.waiting === 1);
  controller.abort();
  await assert.rejects(left);
  await until('it has left', () => viewOf('narrow').room!.waiting === 0);
  assert.deepEqual((await testbed.records(leaver)).ends, ['free not_sent']);
  answer();
  for (const reply of await Promise.all(served)) assert.equal(reply.status, 200);
  assert.equal(narrow.requests.length, before + 2);
});

test('all slots are freed, however clients disconnect and answers end', async () => {
  const sse = { 'content-type': 'text/event-stream' };
  const chunk = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n';
  const stream = { headers: sse, body: `${chunk.repeat(4)}data: [DONE]\n\n` };
  const cuts = [1, 2, 3, 4].map((count) => count * chunk.length);
  const scripts: Script[] = Array.from({ length: 60 }, (_, index) => {
    if (index % 7 === 3) return { dieAtOnce: true };
    if (index % 7 === 5) return { ...stream, dieAfter: 2 * chunk.length };
    return { ...stream, cuts, pauseMs: 5 };
  });
  narrow.play(...scripts);
  const rounds = Array.from({ length: 10 }, (_, round) => round);
  for (const round of rounds) {
    const calls = Array.from({ length: 6 }, async (_, index) => {
      const controller = new AbortController();
      const dialect = dialectNames[index % 4]!;
      if (index % 3 === 0) setTimeout(() => controller.abort(), (round * 7 + index * 3) % 40);
      const question = { model: index % 2 === 0 ? 'narrow' : 'wide', prompt: 'Hello', stream: true };
      await testbed.call(customer, dialect, question, { signal: controller.signal }).catch(() => {});
    });
    while ((await Promise.race([Promise.all(calls), pause(2, 'running')])) === 'running')
      assert.ok(viewOf('narrow').room!.inFlight <= 2);
  }
  await until('all places are free', () => viewOf('narrow').room!.inFlight === 0);
  assert.equal(viewOf('narrow').room!.waiting, 0);
  for (const provider of ['narrow', 'sandbox'])
    for (const { inFlight, model } of viewOf(provider).targets!) assert.equal(inFlight, 0, model);
});

test('the requests of a session use one key: by cache key, metadata, header or opening', async () => {
  many.play(well);
  const long = 'All of this is said at the beginning of a conversation. '.repeat(100);
  const opening = (number: number) => ({ messages: [{ role: 'user', content: `${number} ${long}` }] });
  const kinds: Record<string, (number: number, round: number) => Promise<unknown>> = {
    chat: (number) =>
      testbed.call(customer, 'chat', { model: 'many', prompt: 'x', more: { prompt_cache_key: `${number}` } }),
    header: (number) => send('many', { headers: { 'x-session-id': `header ${number}` } }),
    opening: (number, round) => {
      const later = [
        { role: 'assistant', content: 'Well' },
        { role: 'user', content: `and then ${round}` },
      ];
      const messages = [
        { role: 'system', content: 'Be brief.' },
        ...opening(number).messages,
        ...later.slice(0, 2 * round),
      ];
      return testbed.call(customer, 'chat', { model: 'many', prompt: 'x', more: { messages } });
    },
    messages: (number) => {
      const more = { metadata: { user_id: `user_a_session_${number}` } };
      return testbed.call(customer, 'messages', { model: 'many', prompt: 'x', more });
    },
  };
  for (const [kind, send] of Object.entries(kinds)) {
    const seen = new Set<string>();
    for (let number = 0; number < 8; number++) {
      const before = many.requests.length;
      for (let round = 0; round < 3; round++) await send(number, round);
      const keys = many.requests.slice(before).map(({ headers }) => headers.authorization ?? headers['x-api-key']);
      assert.deepEqual([keys.length, new Set(keys).size], [3, 1], kind);
      seen.add(String(keys[0]));
    }
    assert.ok(seen.size > 1, `${kind}: sessions are spread`);
  }
});

test('the ledger passes its audit at the end', () => testbed.audit());
