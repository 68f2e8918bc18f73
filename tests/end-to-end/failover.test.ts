/** Two vendors for one model: when the second is asked, when it is not, what the client receives and what it pays. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Script, startVendor, type Vendor } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, type Reply, speaks, startTestbed, type Testbed } from './testbed.ts';

let testbed: Testbed;
let elsewhere: Vendor;
/** What one vendor says rests its key, so each case has a provider and models of its own. */
const caseCount = 100;
let casesUsed = 0;

before(async () => {
  elsewhere = await startVendor();
  const away = await startVendor();
  await away.stop();
  const numbers = Array.from({ length: caseCount }, (_, index) => index + 1);
  testbed = await startTestbed({
    providers: ({ replay }) => ({
      away: { keys: 'key', speaks: speaks(away.origin) },
      twin: { keys: ['twin-key-1', 'twin-key-2'], speaks: speaks(replay) },
      ...Object.fromEntries(numbers.map((number) => [`first${number}`, { keys: 'first-key', speaks: speaks(replay) }])),
    }),
    models: {
      away: modelAt('away', 'sandbox'),
      twin: modelAt('twin'),
      ...Object.fromEntries(numbers.map((number) => [`pair${number}`, modelAt(`first${number}`, 'sandbox')])),
      ...Object.fromEntries(numbers.map((number) => [`alone${number}`, modelAt(`first${number}`)])),
    },
  });
});
after(async () => {
  await testbed.stop();
  await elsewhere.stop();
});

/** A number no one has used: of `pair` (with the sandbox behind it) and `alone`, models whose first vendor replays. */
const nextCase = () => ++casesUsed;

interface Requested {
  readonly reply: Reply;
  readonly customer: Customer;
  /** Requests that the replaying vendor got for it. */
  readonly replayed: number;
}

async function send(
  model: string,
  dialect: DialectName,
  script: Script,
  stream = false,
  members?: object,
): Promise<Requested> {
  testbed.replay.play(script);
  const before = testbed.replay.requests.length;
  const customer = await testbed.customer();
  const more = dialect === 'chat' || dialect === 'responses' ? members : undefined;
  const prompt = 'Hello [[sandbox: tokens=20]]';
  const reply = await testbed.call(customer, dialect, { model, prompt, stream, ...(more && { more }) });
  return { reply, customer, replayed: testbed.replay.requests.length - before };
}

const json = { 'content-type': 'application/json' };
const words = (status: number) =>
  status === 401 || status === 403 ? 'Incorrect API key provided: first-key' : 'Go away';
const refusal = (status: number, headers: Record<string, string> = {}): Script => ({
  status,
  headers: { ...json, ...headers },
  body: `{"error":{"message":"${words(status)} at vendor.example.com","type":"whatever"}}`,
});

const seconds: Record<string, { script: Script; rests: boolean; attempt: string }> = {
  'a 429 that names a time': {
    script: refusal(429, { 'retry-after': '20' }),
    rests: true,
    attempt: 'refused 429',
  },
  'a 503 that names a time': { script: refusal(503, { 'retry-after': '20' }), rests: true, attempt: 'refused 503' },
  'a 503 that names none': { script: refusal(503), rests: false, attempt: 'refused 503' },
  'a 529 that names a time': { script: refusal(529, { 'retry-after': '20' }), rests: true, attempt: 'refused 529' },
  'a 401': { script: refusal(401), rests: true, attempt: 'refused 401' },
  'a 403': { script: refusal(403), rests: true, attempt: 'refused 403' },
  'a redirect': { script: { status: 302, headers: { location: '/v1/there' } }, rests: false, attempt: 'refused 302' },
};

for (const [what, { script, rests, attempt }] of Object.entries(seconds)) {
  test(`${what} goes to the second vendor, for one charge; the first ${rests ? 'rests' : 'is asked again'}`, async () => {
    for (const [index, dialect] of dialectNames.entries()) {
      const stream = index % 2 === 0;
      const model = `pair${nextCase()}`;
      const { reply, customer, replayed } = await send(model, dialect, script, stream);
      assert.deepEqual([reply.status, replayed], [200, 1], `${dialect}: ${reply.text}`);
      if (stream) assert.match(reply.text, dialects[dialect].terminal);
      const records = await testbed.records(customer);
      assert.deepEqual(records.ends, ['charged answered']);
      assert.deepEqual(
        records.attempts.map(({ result, status, number }) => `${number} ${result} ${status}`),
        [`1 ${attempt}`, '2 answered 200'],
      );
      assert.deepEqual([records.charges.length, records.charges[0]!.provider], [1, 'sandbox']);
      assert.equal(records.charges[0]!.classes.output, 20);
      const again = await send(model, dialect, script, stream);
      assert.deepEqual([again.reply.status, again.replayed], [200, rests ? 0 : 1], dialect);
    }
  });
}

test('an unreachable vendor is skipped, and nothing is booked as sent to it', async () => {
  for (const dialect of dialectNames) {
    const { reply, customer } = await send('away', dialect, {});
    assert.equal(reply.status, 200);
    const records = await testbed.records(customer);
    assert.deepEqual(records.ends, ['charged answered']);
    assert.deepEqual(
      records.attempts.map(({ provider, number }) => [provider, number]),
      [['sandbox', 2]],
    );
  }
});

test("an error in a stream's first frame goes to the second vendor", async () => {
  const frame = 'data: {"error":{"message":"Overloaded","type":"overloaded_error","code":null}}\n\n';
  const script = { headers: { 'content-type': 'text/event-stream' }, body: frame };
  const { reply, customer } = await send(`pair${nextCase()}`, 'chat', script, true);
  assert.equal(reply.status, 200);
  assert.match(reply.text, dialects.chat.terminal);
  assert.doesNotMatch(reply.text, /Overloaded/);
  const records = await testbed.records(customer);
  assert.deepEqual([records.ends, records.charges.length, records.attempts.length], [['charged answered'], 1, 2]);
});

const chunk = (json: object, event?: string) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(json)}\n\n`;
const response = { id: 'resp_1', object: 'response', output: [], usage: null };
const message = { id: 'msg_1', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } };
/** Streams that are refused for overload behind frames that say nothing yet. */
const refusedWithin: Record<DialectName, string> = {
  chat:
    chunk({ id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }) +
    chunk({ error: { message: 'Go away', code: 429 } }),
  responses:
    chunk({ type: 'response.created', response: { ...response, status: 'in_progress' } }, 'response.created') +
    chunk({ type: 'response.in_progress', response: { ...response, status: 'in_progress' } }, 'response.in_progress') +
    chunk(
      {
        type: 'response.failed',
        response: { ...response, status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Go away' } },
      },
      'response.failed',
    ),
  messages:
    chunk({ type: 'message_start', message }, 'message_start') +
    chunk({ type: 'error', error: { type: 'rate_limit_error', message: 'Go away' } }, 'error'),
  gemini:
    chunk({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '' }] } }] }) +
    chunk({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Go away' } }),
};

test('a refusal at the beginning of a stream goes to the second vendor and puts the key into cooldown, and no client pays for it', async () => {
  for (const dialect of dialectNames) {
    const number = nextCase();
    const headers = { 'content-type': 'text/event-stream' };
    const script = { headers, body: refusedWithin[dialect], cuts: [60, 90, 200] };
    const { reply, customer } = await send(`pair${number}`, dialect, script, true);
    assert.equal(reply.status, 200, dialect);
    assert.match(reply.text, dialects[dialect].terminal);
    assert.doesNotMatch(reply.text, /Go away|msg_1|resp_1/);
    const { ends, charges, attempts } = await testbed.records(customer);
    assert.deepEqual(
      [ends, charges.length, charges[0]!.provider, attempts.map(({ result, status }) => `${result} ${status}`)],
      [['charged answered'], 1, 'sandbox', ['refused 429', 'answered 200']],
      dialect,
    );
    // What the opening has counted may be on the vendor's bill.
    const absorbed = dialect === 'messages' ? [true, 9] : [false, undefined];
    assert.deepEqual([charges[0]!.absorbed > 0n, attempts[0]!.usage?.input], absorbed, dialect);
    assert.equal((await send(`pair${number}`, dialect, script, true)).replayed, 0, 'the key rests');

    const alone = await send(`alone${nextCase()}`, dialect, script, true);
    assert.equal(alone.reply.status, 429, dialect);
    assert.deepEqual((await testbed.records(alone.customer)).ends, ['free refused'], dialect);
    assert.equal(await testbed.balance(alone.customer), 100n * 1_000_000_000n, dialect);
  }
});

const brokenOff: readonly Script[] = [
  refusal(408),
  refusal(500),
  refusal(502),
  refusal(504),
  { dieAtOnce: true },
  { headers: json, body: '{"id":"c1","choices":', dieAfter: 10 },
];

test('a call without effects whose attempt may have run goes to the second vendor, for one charge', async () => {
  for (const script of brokenOff) {
    for (const [index, dialect] of dialectNames.entries()) {
      const stream = index % 2 === 0 && script.body === undefined;
      const { reply, customer, replayed } = await send(
        `pair${nextCase()}`,
        dialect,
        script,
        stream,
        dialect === 'responses' ? {} : { store: false },
      );
      assert.deepEqual([reply.status, replayed], [200, 1], `${dialect}: ${reply.text}`);
      const { ends, charges, attempts } = await testbed.records(customer);
      assert.deepEqual([ends, charges.length, charges[0]!.provider], [['charged answered'], 1, 'sandbox']);
      assert.deepEqual([attempts[0]!.result, attempts[1]!.result], ['unknown', 'answered']);
      assert.ok(charges[0]!.absorbed > 0n, 'what the first may have cost is written off');
    }
  }
});

test('a call with effects is not tried again: nothing is charged, and a repetition is advised', async () => {
  for (const script of brokenOff.slice(0, 5)) {
    const { reply, customer, replayed } = await send(`pair${nextCase()}`, 'chat', script, false, { store: true });
    assert.deepEqual([reply.status, reply.headers.get('x-should-retry'), replayed], [502, 'true', 1]);
    assert.deepEqual((await testbed.records(customer)).ends, ['free unknown']);
  }
});

test("when one of a vendor's two keys is refused, the other is used, then and afterwards", async () => {
  const answer = JSON.stringify({
    id: 'c1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
  });
  const customer = await testbed.customer();
  const question = { model: 'twin', prompt: 'Hello' };
  const before = testbed.replay.requests.length;
  testbed.replay.play(refusal(401), { body: answer });
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  const keys = testbed.replay.requests.slice(before).map(({ headers }) => headers.authorization);
  assert.deepEqual(keys, ['Bearer twin-key-1', 'Bearer twin-key-2', 'Bearer twin-key-2']);
  const records = await testbed.records(customer, 2);
  assert.deepEqual(
    records.attempts.map(({ credential, result }) => `${credential} ${result}`),
    ['twin#1 refused', 'twin#2 answered', 'twin#2 answered'],
  );
});

test('when all keys are in cooldown the client gets the wait, and no vendor is called', async () => {
  const model = `alone${nextCase()}`;
  await send(model, 'chat', refusal(429, { 'retry-after': '30' }));
  for (const dialect of dialectNames) {
    const { reply, customer, replayed } = await send(model, dialect, {});
    assert.deepEqual([reply.status, replayed], [503, 0], reply.text);
    const wait = Number(reply.headers.get('retry-after'));
    assert.ok(wait > 25 && wait <= 30, `retry-after ${wait}`);
    assert.ok(dialects[dialect].errorType(JSON.parse(reply.text)));
    assert.deepEqual((await testbed.records(customer)).ends, ['free not_sent']);
  }
});

test("a vendor's 401 or 403 is a 502 without a word of the vendor's", async () => {
  for (const status of [401, 402, 403]) {
    for (const dialect of dialectNames) {
      const { reply } = await send(`alone${nextCase()}`, dialect, refusal(status));
      assert.equal(reply.status, 502);
      assert.ok(dialects[dialect].errorType(JSON.parse(reply.text)));
      assert.doesNotMatch(reply.text, /key|vendor\.example|first/i);
    }
  }
});

test('a redirect is never followed', async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    const script = { status, headers: { location: `${elsewhere.origin}/v1/chat/completions` } };
    const { reply, customer, replayed } = await send(`alone${nextCase()}`, 'chat', script);
    assert.deepEqual([reply.status, replayed, reply.headers.get('location')], [502, 1, null]);
    assert.deepEqual((await testbed.records(customer)).ends, ['free refused']);
  }
  assert.equal(elsewhere.connections(), 0);
});

test('an HTML page with status 200 is a 502 without a charge', async () => {
  for (const dialect of dialectNames) {
    for (const stream of [false, true]) {
      const customer = await testbed.customer();
      const reply = await testbed.call(customer, dialect, { model: 'sandbox', prompt: '[[sandbox: html]]', stream });
      assert.equal(reply.status, 502);
      assert.doesNotMatch(reply.text, /<h1>|wrong/);
      assert.deepEqual((await testbed.records(customer)).ends, ['free refused']);
    }
  }
});

test('an error in the first frame of a 200 has an error status in all protocols', async () => {
  for (const dialect of dialectNames) {
    for (const [sent, status] of [
      [400, 400],
      [404, 404],
      [500, 502],
      [dialect === 'messages' ? 529 : 503, 503],
    ] as const) {
      const customer = await testbed.customer();
      const prompt = `[[sandbox: first_error=${sent}]]`;
      const reply = await testbed.call(customer, dialect, { model: 'sandbox', prompt, stream: true });
      assert.equal(reply.status, status, `${dialect} ${sent}: ${reply.text}`);
      assert.match(reply.headers.get('content-type')!, /application\/json/);
      assert.ok(dialects[dialect].errorType(JSON.parse(reply.text)), `${dialect} ${sent}: ${reply.text}`);
      assert.equal((await testbed.records(customer)).ends[0]!.slice(0, 4), 'free', `${dialect} ${sent}`);
    }
  }
});

const retryInfo =
  '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7.2s"}]}}';
const waits: Record<string, { script: () => Script; least: number; most: number }> = {
  'in seconds': { script: () => refusal(429, { 'retry-after': '7' }), least: 7, most: 7 },
  'in milliseconds': { script: () => refusal(429, { 'retry-after-ms': '6500' }), least: 7, most: 7 },
  'as a date': {
    script: () => refusal(429, { 'retry-after': new Date(Date.now() + 9_000).toUTCString() }),
    least: 7,
    most: 9,
  },
  'in the body': { script: () => ({ status: 429, headers: json, body: retryInfo }), least: 8, most: 8 },
  'far too long': { script: () => refusal(429, { 'retry-after': '100000' }), least: 300, most: 300 },
  'as nonsense': { script: () => refusal(429, { 'retry-after': 'soon' }), least: 30, most: 30 },
};

for (const [what, { script, least, most }] of Object.entries(waits)) {
  test(`a wait ${what} reaches the client as whole seconds within bounds`, async () => {
    const { reply } = await send(`alone${nextCase()}`, what === 'in the body' ? 'gemini' : 'chat', script());
    assert.equal(reply.status, 429);
    const wait = Number(reply.headers.get('retry-after'));
    assert.ok(wait >= least && wait <= most, `retry-after ${reply.headers.get('retry-after')}`);
    if (what === 'in the body') assert.match(reply.text, /"retryDelay":"8s"/);
  });
}

test('the ledger passes its audit at the end', () => testbed.audit());
