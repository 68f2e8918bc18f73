/** What each outcome costs, through a whole gateway: the answer, the ledger, the usage row and the attempts, row by row. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { catalog } from '../../plugins/common/domain/models.ts';
import { costBound, money } from '../../plugins/common/domain/money.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import {
  type AccountRecords,
  type Customer,
  extensionsOf,
  modelAt,
  type Reply,
  speaks,
  startTestbed,
  type Testbed,
  until,
} from './testbed.ts';

let testbed: Testbed;
before(async () => {
  const closed = await closedPort();
  testbed = await startTestbed({
    providers: () => ({ away: { keys: 'key', speaks: speaks(`http://127.0.0.1:${closed}`) } }),
    models: {
      away: modelAt('away'),
      limited: modelAt('sandbox'),
    },
    // Each fault is met once, so that the outcome of this attempt alone is seen.
    more: { billing: { hold: { output_tokens: 50 } }, route: { retry_ambiguous: 'never' } },
  });
});
after(() => testbed.stop());

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const usageOf = (input: number, output: number) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
const wholeAnswer = JSON.stringify({
  id: 'c1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: usageOf(7, 3),
});
/** 7 input tokens at 1,000 nano-USD and 3 output tokens at 2,000. */
const wholeCost = 13_000n;

test('overdraft by race: of 2,000 calls, 400 at once, on a balance for 50, exactly 50 are admitted and settle', async () => {
  const question = { model: 'replay', prompt: 'Hello', more: { max_tokens: 50 } };
  testbed.replay.play({ body: wholeAnswer });
  const probe = await testbed.customer();
  await testbed.call(probe, 'chat', question);
  const hold = (await testbed.records(probe)).calls[0]!.held;
  const credit = 50n * hold + hold - 1n;
  const customer = await testbed.customer({ nanoUsd: credit });

  const { promise: allRefused, resolve: release } = Promise.withResolvers<void>();
  testbed.replay.play({ body: wholeAnswer, after: allRefused });
  const seen = testbed.replay.requests.length;
  let begun = 0;
  let refused = 0;
  const answers: Reply[] = [];
  // With more at once, connections on a slow machine would be idle for longer than a server allows before a request.
  const caller = async () => {
    while (begun++ < 2_000) {
      const reply = await testbed.call(customer, 'chat', question);
      answers.push(reply);
      if (reply.status === 402 && ++refused >= 1_950) release();
    }
  };
  await Promise.all(Array.from({ length: 400 }, caller));
  const admitted = answers.filter(({ status }) => status === 200);
  const poor = answers.filter(({ status }) => status === 402);
  assert.deepEqual([admitted.length, poor.length], [50, 1_950]);
  assert.equal(testbed.replay.requests.length - seen, 50);
  const { error } = JSON.parse(poor[0]!.text);
  assert.deepEqual([error.type, error.code], ['insufficient_quota', 'insufficient_balance']);
  assert.equal(poor[0]!.headers.get('x-should-retry'), 'false');

  const records = await testbed.records(customer, 50);
  assert.deepEqual(new Set(records.ends), new Set(['charged answered']));
  assert.equal(records.charges.length, 50);
  assert.equal(records.attempts.length, 50);
  assert.equal(await testbed.balance(customer), credit - 50n * wholeCost);
  assert.equal(records.ledger.at(-1)!.balance_after, credit - 50n * wholeCost);
  assert.ok(records.ledger.every((row) => row.balance_after >= 0n));
});

test('incoming money admits calls of a spent account at once', async () => {
  testbed.replay.play({ body: wholeAnswer });
  const question = { model: 'replay', prompt: 'Hello', more: { max_tokens: 50 } };
  const customer = await testbed.customer({ nanoUsd: 1n });
  for (let round = 0; round < 3; round++) assert.equal((await testbed.call(customer, 'chat', question)).status, 402);
  await testbed.credit(customer, 10_000_000n);
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  await testbed.records(customer);
  assert.equal(await testbed.balance(customer), 10_000_001n - wholeCost);
});

test('a call without money is a 402 in the form of each protocol, and leaves nothing behind', async () => {
  const types = {
    chat: 'insufficient_quota',
    responses: 'insufficient_quota',
    messages: 'billing_error',
    gemini: 'FAILED_PRECONDITION',
  };
  const customer = await testbed.customer({ nanoUsd: 0n });
  for (const name of dialectNames) {
    for (const stream of [false, true]) {
      const reply = await testbed.call(customer, name, { model: 'sandbox', prompt: 'Hello', stream });
      assert.deepEqual([reply.status, dialects[name].errorType(JSON.parse(reply.text))], [402, types[name]], name);
    }
  }
  assert.deepEqual((await testbed.records(customer, 0)).ledger, []);
});

interface Expected {
  readonly model?: string;
  readonly prompt?: string;
  /** Only a stream or only a whole answer comes to this. */
  readonly stream?: boolean;
  readonly status: number;
  readonly end: string;
  /** `result status` of the one attempt; none: nothing was sent. */
  readonly attempt?: string;
  readonly estimated?: boolean;
  readonly retried?: 'allowed';
}

const outcomes: Record<string, Expected> = {
  'never sent: nothing listens': { model: 'away', status: 502, end: 'free not_sent' },
  'refused with 400': { prompt: 'status=400', status: 400, end: 'free refused', attempt: 'refused 400' },
  'refused with 429': {
    model: 'limited',
    prompt: 'status=429',
    status: 429,
    end: 'free refused',
    attempt: 'refused 429',
  },
  'refused with 503': { prompt: 'status=503', status: 503, end: 'free refused', attempt: 'refused 503' },
  'refused with 529': { prompt: 'status=529', status: 503, end: 'free refused', attempt: 'refused 529' },
  'failed with 500': {
    prompt: 'status=500',
    status: 502,
    end: 'free unknown',
    attempt: 'unknown 500',
    retried: 'allowed',
  },
  'failed with 502': {
    prompt: 'status=502',
    status: 502,
    end: 'free unknown',
    attempt: 'unknown 502',
    retried: 'allowed',
  },
  complete: { prompt: 'tokens=20', status: 200, end: 'charged answered', attempt: 'answered 200', estimated: false },
  'complete without usage': {
    prompt: 'no_usage tokens=20',
    status: 200,
    end: 'charged answered',
    attempt: 'answered 200',
    estimated: true,
  },
  'cut by a reset': {
    prompt: 'chunks=8 chunk_delay=5ms cut_after=4',
    stream: true,
    status: 200,
    end: 'charged cut',
    attempt: 'answered 200',
    estimated: true,
  },
  'ended without its terminal event': {
    prompt: 'chunks=8 no_terminal',
    stream: true,
    status: 200,
    end: 'charged cut',
    attempt: 'answered 200',
    estimated: true,
  },
  'an error in mid-stream': {
    prompt: 'chunks=8 mid_error',
    stream: true,
    status: 200,
    end: 'charged cut',
    attempt: 'answered 200',
    estimated: true,
  },
  'a whole answer that breaks in its middle': {
    prompt: 'tokens=20 cut_after=1',
    stream: false,
    status: 502,
    end: 'free unknown',
    attempt: 'unknown null',
    retried: 'allowed',
  },
};

for (const [what, expected] of Object.entries(outcomes)) {
  test(`${what}: ${expected.end}, in all protocols`, async () => {
    const forms = expected.stream === undefined ? [false, true] : [expected.stream];
    // A 429 puts the key into cooldown: each form would meet the rest of the one before.
    const cases = dialectNames.flatMap((name) => forms.map((stream) => ({ name, stream })));
    if (expected.model === 'limited') cases.splice(1);
    await Promise.all(cases.map((one) => checkOutcome(expected, one.name, one.stream)));
  });
}

async function checkOutcome(expected: Expected, name: DialectName, stream: boolean): Promise<void> {
  const form = `${name} ${stream ? 'stream' : 'whole'}`;
  const customer = await testbed.customer();
  const before = await testbed.balance(customer);
  const prompt = `Hello [[sandbox: ${expected.prompt ?? ''}]]`;
  const reply = await testbed.call(customer, name, { model: expected.model ?? 'sandbox', prompt, stream });
  assert.equal(reply.status, expected.status, `${form}: ${reply.text}`);
  const records = await testbed.records(customer);
  assert.deepEqual(records.ends, [expected.end], form);
  const attempts = records.attempts.map(({ result, status }) => `${result} ${status}`);
  assert.deepEqual(attempts, expected.attempt === undefined ? [] : [expected.attempt], form);
  if (expected.retried !== undefined) assert.equal(reply.headers.get('x-should-retry'), 'true', form);
  if (reply.status !== 200) assert.ok(dialects[name].errorType(JSON.parse(reply.text)), `${form}: ${reply.text}`);
  if (reply.status === 200 && stream) checkEnding(expected, name, reply, form);
  await checkMoney(expected, customer, before, records, form);
}

/** Only the terminal event is success, and only a stream that ended well has it. */
function checkEnding({ end }: Expected, name: DialectName, { text, broken }: Reply, form: string): void {
  const { terminal, streamError } = dialects[name];
  assert.equal(broken, false, form);
  if (end === 'charged answered') {
    assert.match(text, terminal, form);
    assert.doesNotMatch(text, streamError, form);
  } else {
    assert.match(text, streamError, form);
    assert.doesNotMatch(text, terminal, form);
  }
}

async function checkMoney(
  { estimated, end }: Expected,
  customer: Customer,
  before: bigint,
  { charges, ledger }: AccountRecords,
  form: string,
): Promise<void> {
  const paid = before - (await testbed.balance(customer));
  assert.equal(before - ledger.at(-1)!.balance_after, paid, form);
  if (end.startsWith('free')) {
    assert.deepEqual([paid, charges.length], [0n, 0], form);
    return;
  }
  const [row] = charges;
  assert.equal(charges.length, 1, form);
  // In generate-content every chunk reports what was used so far: a cut leaves nothing to estimate.
  const reported = end === 'charged cut' && form.startsWith('gemini');
  assert.equal(row!.estimated, estimated === true && !reported, `${form}: ${JSON.stringify(row!.classes)}`);
  assert.equal(row!.terminal, end === 'charged answered', form);
  const { input = 0, cache_read: cached = 0, output = 0, reasoning = 0 } = row!.classes;
  assert.ok(input > 0 && output > 0, form);
  assert.equal(paid, BigInt(input * 1_000 + cached * 100 + (output + reasoning) * 2_000), form);
  if (estimated === false) assert.equal(output, 20, form);
}

test('a vendor that resets before its head: void, unknown, reported once, no second attempt', async () => {
  testbed.replay.play({ dieAtOnce: true });
  for (const stream of [false, true]) {
    const before = testbed.replay.requests.length;
    const customer = await testbed.customer();
    const reply = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello', stream });
    assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [502, 'true']);
    const records = await testbed.records(customer);
    assert.deepEqual(records.ends, ['free unknown']);
    assert.deepEqual(
      records.attempts.map(({ result, number }) => [result, number]),
      [['unknown', 1]],
    );
    assert.equal(testbed.replay.requests.length - before, 1);
  }
});

for (const name of dialectNames) {
  test(`a stream that outgrows its hold extends it and is settled exactly (${name})`, async () => {
    const customer = await testbed.customer();
    const before = await testbed.balance(customer);
    const reply = await testbed.call(customer, name, {
      model: 'sandbox',
      prompt: '[[sandbox: tokens=400 chunks=100 chunk_delay=1ms]]',
      stream: true,
    });
    assert.match(reply.text, dialects[name].terminal);
    const records = await testbed.records(customer);
    assert.ok(extensionsOf(testbed.gateway, records.calls[0]!) >= 5);
    assert.deepEqual(records.ends, ['charged answered']);
    const [{ classes, cost, estimated }] = records.charges as [AccountRecords['charges'][number]];
    assert.deepEqual([classes.output, estimated], [400, false]);
    assert.equal(before - (await testbed.balance(customer)), cost);
    assert.equal(cost, BigInt((classes.input! + 2 * 400) * 1_000));
  });

  test(`long stream past zero: an empty pool ends the stream with the protocol's error, and it is settled (${name})`, async () => {
    const question = { model: 'sandbox', prompt: '[[sandbox: tokens=3000 chunks=1500 chunk_delay=1ms]]', stream: true };
    const probe = await testbed.customer({ nanoUsd: 0n });
    assert.equal((await testbed.call(probe, name, question)).status, 402);
    // Pays for the prompt's upper bound and 200 tokens of output.
    const price = testbed.gateway.gateway.find(catalog)!.find('sandbox')!.prices![0]!.priced(0, {}).price;
    const bytes = JSON.stringify(dialects[name].body(question)).length;
    const credit = costBound(Math.ceil(bytes / 2), 200, price);
    const customer = await testbed.customer({ nanoUsd: credit });
    const open = testbed.sandbox.bill().open;
    const reply = await testbed.call(customer, name, question);
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, dialects[name].streamError);
    assert.match(reply.text, /balance/);
    assert.doesNotMatch(reply.text, dialects[name].terminal);
    await until('the connection to the vendor is closed', () => testbed.sandbox.bill().open === open);
    const records = await testbed.records(customer);
    assert.deepEqual(records.ends, ['charged cut']);
    assert.ok(extensionsOf(testbed.gateway, records.calls[0]!) > 0);
    const left = await testbed.balance(customer);
    assert.equal(left, money(credit - records.charges[0]!.cost));
    assert.ok(left >= -20_000n, `${left} is further below zero than one chunk costs`);
  });
}

test('the ledger passes its audit at the end', async () => {
  await testbed.audit();
  assert.equal(testbed.gateway.gateway.inFlight, 0);
});
