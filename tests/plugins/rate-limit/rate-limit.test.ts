/** Requests on their way through the limiter, by the plan of their account. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type Call, call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { type Limits, type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import { timeline } from '../../../plugins/common/domain/timeline.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import rateLimit from '../../../plugins/rate-limit/index.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, setUp, wordsIn } from '../../helpers/fakes.ts';

const chatCall: Call = {
  protocol: 'chat',
  model: 'some-model',
  stream: false,
  billable: true,
  inputTokens: 1_000,
  maxOutputTokens: 500,
  choices: 1,
};

interface Requested {
  limits: Limits;
  call?: Partial<Call>;
  account?: string;
  id?: string;
  key?: string;
  /** Limits of the key alone. */
  keyLimits?: Limits;
}

function request(options: Requested): FakeExchange {
  const { keyLimits, key = 'key' } = options;
  const terms: PlanTerms = { name: 'test', limits: options.limits, models: undefined, multiplier: undefined };
  const who = { accountId: options.account ?? 'account', keyId: key, plan: 'test', models: undefined };
  return fakeExchange({
    endpoint: { operation: 'chat', setsOnOpen: [call] },
    facts: [
      [caller, keyLimits === undefined ? who : { ...who, keyLimits }],
      [plan, terms],
      [call, { ...chatCall, ...options.call }],
    ],
  });
}

async function limiterOf(host: FakeHost = fakeHost()) {
  const part = await setUp(rateLimit, host, {});
  const send = (exchange: FakeExchange): Promise<Answer> =>
    part.handle!(exchange, async () => ({ status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }));
  const refusal = async (exchange: FakeExchange): Promise<GatewayError> => {
    let answer: Answer;
    try {
      answer = await send(exchange);
    } catch (error) {
      return error as GatewayError;
    }
    throw new Error(`was admitted with ${answer.status}`);
  };
  return { host, part, send, refusal };
}

function used(exchange: FakeExchange, usage: Usage): void {
  exchange.set(usageReport, { usage, estimated: false, terminal: true, upstreamId: undefined, finish: 'stop' });
}

const endpoint = (operation: string, more: Partial<Endpoint> = {}): Endpoint => ({
  method: 'POST',
  path: `/${operation}`,
  operation,
  ...more,
});

test('only the listed endpoints are limited', async () => {
  const { part } = await limiterOf();
  for (const name of ['chat', 'responses', 'compact', 'messages', 'generate-content', 'images', 'tasks'])
    assert.equal(part.applies!(endpoint(name, { handle: () => ({ status: 200, headers: {}, body: '' }) })), true, name);
  for (const name of ['models', 'videos', 'health']) assert.equal(part.applies!(endpoint(name)), false, name);
  const own = await setUp(rateLimit, fakeHost(), { endpoints: ['POST /v1/messages'] });
  assert.equal(own.applies!(endpoint('messages', { path: '/v1/messages' })), true);
  assert.equal(own.applies!(endpoint('messages', { path: '/v1/messages/count_tokens' })), false);
});

test('a rule that matches no endpoint is reported at the start', async () => {
  const { host, part } = await limiterOf();
  await part.lifecycle!.start!();
  assert.match(host.lines[0]!.message, /this gateway has no chat, responses/);
});

test('requests over the limit are refused with the limit, the wait and the headers, and admitted after that wait', async () => {
  const { host, send, refusal } = await limiterOf();
  const limits = { rpm: 20 };
  for (let count = 0; count < 20; count++) await send(request({ limits }));
  const error = await refusal(request({ limits }));
  assert.equal(error.status, 429);
  assert.equal(error.code, 'rpm');
  assert.equal(error.retryAfterMs, 3_000);
  assert.equal(error.message, 'Rate limit reached: plan "test" allows 20 requests per minute. Try again in 3s.');
  assert.equal(error.headers!['x-ratelimit-remaining-requests'], '0');
  assert.equal(error.headers!['x-ratelimit-reset-requests'], '1m0s');
  host.advance(2_999);
  assert.equal((await refusal(request({ limits }))).retryAfterMs, 1);
  host.advance(1);
  assert.equal((await send(request({ limits }))).status, 200);
});

test('each refusal names its dimension', async () => {
  const { send, refusal } = await limiterOf();
  const cases: [Limits, string, RegExp][] = [
    [{ rpd: 1 }, 'rpd', /1 requests per day\. Try again in 24h0m0s/],
    [{ tpm: 2_000 }, 'tpm', /2000 tokens per minute, of which this request may need 1500\. Try again in 30s/],
    [{ concurrency: 1 }, 'concurrency', /1 at a time/],
  ];
  for (const [limits, code, words] of cases) {
    await send(request({ limits, account: code }));
    const error = await refusal(request({ limits, account: code }));
    assert.equal(error.code, code);
    assert.match(error.message, words);
    assert.ok(error.retryAfterMs! > 0);
  }
});

test("answers have the client's remaining limits, in its own protocol", async () => {
  const { send } = await limiterOf();
  const limits = { rpm: 20, tpm: 40_000, concurrency: 2 };
  const headersFor = async (protocol: string) =>
    (await send(request({ limits, account: protocol, call: { protocol } }))).headers;
  assert.equal((await headersFor('chat'))['x-ratelimit-remaining-tokens'], '38500');
  assert.equal((await headersFor('responses'))['x-ratelimit-reset-requests'], '3s');
  assert.match(
    (await headersFor('messages'))['anthropic-ratelimit-tokens-reset']!,
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  );
  assert.deepEqual(await headersFor('gemini'), { 'content-type': 'application/json' });
});

for (const kind of ['complete', 'client_left', 'failed'] as const) {
  test(`the slot is free again when the exchange ended as ${kind}`, async () => {
    const { send, refusal } = await limiterOf();
    const limits = { concurrency: 2 };
    const running = [request({ limits }), request({ limits })];
    for (const exchange of running) await send(exchange);
    assert.equal((await refusal(request({ limits }))).code, 'concurrency');
    await running[0]!.end({ kind });
    await send(request({ limits }));
    assert.equal((await refusal(request({ limits }))).code, 'concurrency');
  });
}

test('the slot is free again when an inner plugin refuses', async () => {
  const { part, send } = await limiterOf();
  const exchange = request({ limits: { concurrency: 1, tpm: 2_000 } });
  await assert.rejects(
    part.handle!(exchange, () => Promise.reject(new Error('no funds'))),
    /no funds/,
  );
  await exchange.end({ kind: 'complete', status: 402 });
  assert.equal(
    (await send(request({ limits: { concurrency: 1, tpm: 2_000 } }))).headers['x-ratelimit-remaining-tokens'],
    '500',
  );
});

test('a refused request leaves no reservation', async () => {
  const { send, refusal } = await limiterOf();
  const limits = { concurrency: 1 };
  await send(request({ limits }));
  const refused = request({ limits });
  await refusal(refused);
  await refused.end();
  assert.equal((await refusal(request({ limits }))).code, 'concurrency');
});

test('tokens are reserved by estimate and replaced by the true count at the end', async () => {
  const { send } = await limiterOf();
  const limits = { tpm: 100_000 };
  const remaining = async (more: Partial<Call> = {}) => {
    const exchange = request({ limits, call: more });
    return { exchange, tokens: Number((await send(exchange)).headers['x-ratelimit-remaining-tokens']) };
  };
  const first = await remaining();
  assert.equal(first.tokens, 98_500, "input and the client's own bound");
  used(first.exchange, { input: 900, output: 50, cache_read: 50 });
  await first.exchange.end();
  const second = await remaining({ maxOutputTokens: undefined });
  assert.equal(second.tokens, 99_000 - 5_096, 'no bound reserves 4,096 of output');
  await second.exchange.end();
  const third = await remaining({ maxOutputTokens: 64_000, choices: 3 });
  assert.equal(third.tokens, 99_000 - 15_288, 'a high bound reserves 4,096 for each choice');
  used(third.exchange, { input: 1_000, output: 60_000 });
  await third.exchange.end();
  assert.equal((await remaining()).tokens, 99_000 - 61_000 - 1_500, 'more than was reserved is taken as well');
});

test('a request with an estimate above the whole bucket is admitted when the bucket is whole', async () => {
  const { host, send, refusal } = await limiterOf();
  const limits = { tpm: 4_000 };
  await send(request({ limits, call: { inputTokens: 50_000 } }));
  assert.equal((await refusal(request({ limits, call: { inputTokens: 50_000 } }))).retryAfterMs, 60_000);
  host.advance(60_000);
  await send(request({ limits, call: { inputTokens: 50_000 } }));
});

test('a token count is a request, and uses no tokens', async () => {
  const { send, refusal } = await limiterOf();
  const limits = { rpm: 1, tpm: 10 };
  const answer = await send(request({ limits, call: { billable: false } }));
  assert.equal(answer.headers['x-ratelimit-limit-tokens'], undefined);
  assert.equal((await refusal(request({ limits, call: { billable: false } }))).code, 'rpm');
});

test('an endpoint without a model is limited by requests alone', async () => {
  const { part } = await limiterOf();
  const exchange = request({ limits: { rpm: 5, tpm: 10 } });
  const poll = fakeExchange({
    endpoint: { method: 'GET', operation: 'tasks' },
    facts: [
      [caller, exchange.get(caller)],
      [plan, exchange.get(plan)],
    ],
  });
  const answer = await part.handle!(poll, async () => ({ status: 200, headers: {}, body: '' }));
  assert.equal(answer.headers['x-ratelimit-remaining-requests'], '4');
});

test('an endpoint that was opened too late fails, and does not pass unlimited', async () => {
  const { part } = await limiterOf();
  const whole = request({ limits: { tpm: 10 } });
  const late = fakeExchange({
    endpoint: { operation: 'chat', setsOnOpen: [call] },
    facts: [
      [caller, whole.get(caller)],
      [plan, whole.get(plan)],
    ],
  });
  await assert.rejects(
    async () => part.handle!(late, async () => ({ status: 200, headers: {}, body: '' })),
    /context value "call" is not set/,
  );
});

test('a plan without limits limits nothing', async () => {
  const { send } = await limiterOf();
  for (let count = 0; count < 1_000; count++) {
    const answer = await send(request({ limits: {} }));
    assert.deepEqual(answer.headers, { 'content-type': 'application/json' });
  }
});

test('idle limits are dropped in regular sweeps', async () => {
  const { host } = await limiterOf();
  assert.deepEqual(
    host.intervals.map(({ intervalMs }) => intervalMs),
    [60_000],
  );
  await host.intervals[0]!.work();
});

test("a key's own limits apply beside the plan's, each key by itself, and are named as the key's", async () => {
  const { send, refusal, host } = await limiterOf();
  const limits = { rpm: 5 };
  const keyLimits = { rpm: 2 };
  for (let count = 0; count < 2; count++) await send(request({ limits, keyLimits }));
  const error = await refusal(request({ limits, keyLimits }));
  assert.equal(error.message, 'Rate limit reached: this key allows 2 requests per minute. Try again in 30s.');
  assert.deepEqual([error.status, error.code, error.retryAfterMs], [429, 'rpm', 30_000]);
  await send(request({ limits, keyLimits, key: 'another' }));
  for (let count = 0; count < 2; count++) await send(request({ limits, key: 'a third' }));
  assert.match((await refusal(request({ limits, key: 'a third' }))).message, /plan "test" allows 5 requests/);
  host.advance(60_000);
  await send(request({ limits, keyLimits }));
});

test('plan and key are checked together: a refusal by one takes nothing from the other', async () => {
  const { send, refusal } = await limiterOf();
  const limits = { rpm: 3, concurrency: 10 };
  await send(request({ limits, keyLimits: { concurrency: 1 }, key: 'busy' }));
  for (let count = 0; count < 5; count++)
    assert.match((await refusal(request({ limits, keyLimits: { concurrency: 1 }, key: 'busy' }))).message, /this key/);
  assert.equal((await send(request({ limits }))).headers['x-ratelimit-remaining-requests'], '1', 'none was lost');
});

test('the scarcer limit of plan and key is reported, and tokens are returned to both', async () => {
  const { send } = await limiterOf();
  const requested = { limits: { tpm: 10_000, rpm: 100 }, keyLimits: { tpm: 4_000, rpm: 10, concurrency: 1 } };
  const first = request(requested);
  const { headers } = await send(first);
  assert.equal(headers['x-ratelimit-limit-requests'], '10');
  assert.equal(headers['x-ratelimit-remaining-tokens'], '2500');
  used(first, { input: 400, output: 100 });
  await first.end();
  assert.equal((await send(request(requested))).headers['x-ratelimit-remaining-tokens'], '2000');
});

test('the timeline has the rest of plan and key', async () => {
  const { send, refusal } = await limiterOf();
  const requested = { limits: { rpm: 20 }, keyLimits: { rpm: 1, concurrency: 4 } };
  const report = (exchange: FakeExchange) => wordsIn(exchange.get(timeline));
  const first = request(requested);
  first.set(timeline, []);
  await send(first);
  assert.deepEqual(report(first), [
    'left of the plan: 19 of 20 requests per minute; of the key: 0 of 1 requests per minute, 3 of 4 at a time',
  ]);
  const second = request(requested);
  second.set(timeline, []);
  await refusal(second);
  assert.match(report(second)[0]!, /^refused by the limit on requests per minute; left of the plan: 19 of 20/);
  const ofPlan = request({ limits: { rpm: 20 } });
  ofPlan.set(timeline, []);
  await send(ofPlan);
  assert.deepEqual(report(ofPlan), ['left of the plan: 18 of 20 requests per minute']);
});
