/** Models that serve a call when another one cannot: by which failures, for whom, at which price, and what the client receives. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Script, startVendor, type Vendor } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { attemptsByNumber, type CallRow, modelAt, speaks, startTestbed, type Testbed, usdInNano } from './testbed.ts';

let testbed: Testbed;
let first: Vendor;
const large = 'sandbox-large';
const only = (name: DialectName) => `only-${name}`;

before(async () => {
  first = await startVendor();
  const spoken = speaks(first.origin);
  const dear = { input: 3, cache_read: 3, output: 6 };
  const own = (...targets: object[] | string[]) => ({ ...modelAt(...targets), context: 8192 });
  const all = { context_length: large, unavailable: [large], content_filter: large };
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      first: { keys: 'first-key', speaks: spoken },
      twin: { keys: 'twin-key', speaks: spoken },
      vectors: { keys: 'vectors-key', speaks: { 'openai-embeddings': `${first.origin}/v1` } },
      small: { keys: 'small-key', speaks: speaks(sandbox) },
      ...Object.fromEntries(
        dialectNames.map((name) => [only(name), { keys: 'key', speaks: { [name]: spoken[name] } }]),
      ),
    }),
    models: {
      [large]: { ...modelAt({ provider: 'sandbox', model: 'sandbox' }), context: 1_000_000, price: dear },
      plain: modelAt('first'),
      pair: { ...modelAt('first', 'sandbox'), context: 8192 },
      sized: modelAt('first', { provider: 'small', context: 4096 }),
      stands: { ...own('first'), instead: all },
      both: { ...own('first', 'twin'), instead: { unavailable: large } },
      equal: { ...modelAt('first'), context: 1_000_000, instead: { context_length: large } },
      vector: { ...modelAt('vectors'), kind: 'embedding', instead: { context_length: 'vector-large' } },
      'vector-large': {
        ...modelAt({ provider: 'vectors', model: 'large' }),
        kind: 'embedding',
        context: 1_000_000,
        price: dear,
      },
      ...Object.fromEntries(
        dialectNames.map((name) => [only(name), { ...own(only(name)), instead: { context_length: large } }]),
      ),
    },
    more: { route: { breaker: { failures: 32 } } },
  });
});
after(async () => {
  await testbed.stop();
  await first.stop();
});

const json = { 'content-type': 'application/json' };
const sse = { 'content-type': 'text/event-stream' };
const prompt = 'Hello [[sandbox: tokens=20]]';

interface Requested {
  readonly status: number;
  readonly text: string;
  readonly model: string | null;
  readonly row: CallRow;
  /** `number provider result bearer` of each attempt. */
  readonly attempts: readonly string[];
  readonly paid: bigint;
}

async function send(
  model: string,
  dialect: DialectName,
  script: Script,
  { stream = false, more, ...options }: { stream?: boolean; more?: object; nanoUsd?: bigint; models?: string[] } = {},
): Promise<Requested> {
  first.play(script);
  const customer = await testbed.customer(options);
  const had = await testbed.balance(customer);
  const reply = await testbed.call(customer, dialect, { model, prompt, stream, ...(more && { more }) });
  await testbed.records(customer);
  const rows = await testbed.calls(customer);
  const attempts = attemptsByNumber(rows).map((one) => `${one.number} ${one.provider} ${one.result} ${one.bearer}`);
  const { status, text, headers } = reply;
  if (stream && status === 200) assert.match(text, dialects[dialect].terminal);
  const paid = had - (await testbed.balance(customer));
  return { status, text, model: headers.get('x-gateway-model'), row: rows[0]!, attempts, paid };
}

const refusal = (status: number, error: unknown): Script => ({ status, headers: json, body: JSON.stringify(error) });
const message = (text: string, more: object = {}) => ({ error: { message: text, ...more } });

const tooLong: Record<string, Script> = {
  'OpenAI’s code': refusal(
    400,
    message('Too much.', { code: 'context_length_exceeded', type: 'invalid_request_error' }),
  ),
  'OpenAI’s window': refusal(400, message('Your input exceeds the context window of this model.')),
  'Anthropic’s prompt': refusal(400, {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 214000 tokens > 200000 maximum' },
  }),
  'Anthropic’s limit': refusal(
    400,
    message('input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000'),
  ),
  'Google’s count': refusal(400, {
    error: {
      code: 400,
      status: 'INVALID_ARGUMENT',
      message: 'The input token count (12000) exceeds the maximum number of tokens allowed (8192).',
    },
  }),
  'Mistral’s prompt': refusal(400, {
    object: 'error',
    type: 'invalid_request_error',
    message: 'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
  }),
  'vLLM’s length': refusal(400, {
    object: 'error',
    message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    code: 400,
  }),
  'llama.cpp’s size': refusal(400, {
    error: {
      code: 400,
      type: 'exceed_context_size_error',
      message: 'the request exceeds the available context size (4096 tokens)',
      n_ctx: 4096,
    },
  }),
  'xAI’s length': refusal(400, {
    code: 'Client specified an invalid argument',
    error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
  }),
  'Bedrock’s input': refusal(400, { message: 'Input is too long for requested model.' }),
  'Zhipu’s length': refusal(400, message('Prompt exceeds max length', { code: '1261' })),
  'Qwen’s range': refusal(
    400,
    message('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]'),
  ),
  'a 413': refusal(413, message('Request too large', { type: 'request_too_large' })),
  'a 422': refusal(422, message('Too many tokens: total number of tokens in the prompt cannot exceed 4096')),
  'the first frame of a stream': {
    headers: sse,
    body: 'data: {"error":{"message":"This model\'s maximum context length is 4096 tokens.","code":400}}\n\n',
  },
};

for (const [what, script] of Object.entries(tooLong))
  test(`a prompt that is too long by ${what}: the next target is tried, and another model where the settings name one`, async () => {
    for (const stream of script.headers === sse ? [true] : [false, true]) {
      const other = await send('pair', 'chat', script, { stream });
      assert.deepEqual([other.status, other.model], [200, null], other.text);
      assert.deepEqual(other.attempts, ['1 first refused null', '2 sandbox answered client']);
      const alone = await send('plain', 'chat', script, { stream });
      assert.ok(alone.status >= 400 && alone.status < 500 && alone.paid === 0n, alone.text);
      const served = await send('stands', 'chat', script, { stream });
      assert.deepEqual([served.status, served.model], [200, large], served.text);
      assert.deepEqual(served.attempts, other.attempts);
      assert.deepEqual([served.row.model, served.paid], [large, served.row.cost]);
      assert.equal(served.row.cost, BigInt(served.row.classes.input!) * 3_000n + 20n * 6_000n);
      assert.equal(served.row.absorbed, 0n);
    }
  });

test('each client protocol, relayed and translated, whole and streamed, is served by the other model', async () => {
  const script = tooLong['OpenAI’s window']!;
  for (const dialect of dialectNames)
    for (const stream of [false, true])
      for (const model of ['stands', ...dialectNames.map(only)]) {
        const served = await send(model, dialect, script, { stream });
        assert.deepEqual([served.status, served.model, served.row.model], [200, large, large], `${dialect} ${model}`);
      }
});

test("the opening of a stream is held back, so that a refusal of the prompt's length in it can be answered elsewhere", async () => {
  const created = { id: 'r1', object: 'response', status: 'in_progress', output: [] };
  const failed = { ...created, status: 'failed', error: { code: 'context_length_exceeded', message: 'Too long.' } };
  const events = [
    { type: 'response.created', response: created, sequence_number: 0 },
    { type: 'response.failed', response: failed, sequence_number: 1 },
  ];
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const served = await send('stands', 'responses', { headers: sse, body }, { stream: true });
  assert.deepEqual([served.status, served.model, served.row.absorbed], [200, large, 0n], served.text);
});

test('targets and models known to be too small are skipped', async () => {
  const script = tooLong['Anthropic’s prompt']!;
  const sized = await send('sized', 'messages', script);
  assert.deepEqual([sized.status, sized.attempts], [400, ['1 first refused null']]);
  const equal = await send('equal', 'messages', script);
  assert.deepEqual([equal.status, equal.model], [400, null]);
  const requested = await send('stands', 'chat', script, { more: { max_tokens: 50 } });
  assert.equal(requested.model, large);
});

test('another model serves when all targets refuse, break off or are overloaded', async () => {
  for (const status of [503, 500]) {
    const served = await send('both', 'chat', refusal(status, message('no')));
    assert.deepEqual([served.status, served.model, served.row.model], [200, large, large], served.text);
    const [result, bearer] = status === 500 ? ['unknown', 'operator'] : ['refused', 'null'];
    assert.deepEqual(served.attempts.at(-1), '3 sandbox answered client');
    assert.deepEqual(served.attempts[0], `1 first ${result} ${bearer}`);
    // Written off at the price of the model that was asked, not of the one that served.
    const [broken] = attemptsByNumber([served.row]);
    const input = BigInt(broken!.usage?.input ?? 0);
    assert.equal(broken!.absorbed, status === 500 ? input * 1_000n : 0n);
  }
  const effects = await send('both', 'chat', refusal(500, message('no')), { more: { store: true } });
  assert.deepEqual([effects.status, effects.model], [502, null]);
  const wrong = await send('both', 'chat', refusal(400, message('temperature is too high')));
  assert.deepEqual([wrong.status, wrong.model], [400, null]);
});

const kept: Record<string, { dialect: DialectName; script: Script; usage?: true }> = {
  'Azure’s 400': {
    dialect: 'chat',
    script: refusal(
      400,
      message('no', { code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } }),
    ),
  },
  'OpenAI’s policy': {
    dialect: 'responses',
    script: refusal(400, message('no', { code: 'content_policy_violation' })),
  },
  'Qwen’s inspection': { dialect: 'chat', script: refusal(400, message('no', { code: 'data_inspection_failed' })) },
  'Anthropic’s filter': {
    dialect: 'messages',
    script: refusal(400, message('Output blocked by content filtering policy', { type: 'invalid_request_error' })),
  },
  'Google’s block': {
    dialect: 'gemini',
    script: {
      headers: json,
      body: '{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7}}',
    },
    usage: true,
  },
  'an empty answer that the filter ended': {
    dialect: 'chat',
    script: {
      headers: json,
      body: JSON.stringify({
        id: 'c1',
        choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'content_filter' }],
      }),
    },
  },
  'Anthropic’s refusal before a word': {
    dialect: 'messages',
    script: {
      headers: json,
      body: JSON.stringify({
        ...{ id: 'm1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: 'refusal' },
        usage: { input_tokens: 7, output_tokens: 0 },
      }),
    },
    usage: true,
  },
};

for (const [what, { dialect, script, usage }] of Object.entries(kept))
  test(`content that is refused by ${what} goes to another model only where the settings say so`, async () => {
    const served = await send('stands', dialect, script);
    assert.deepEqual([served.status, served.model, served.row.model], [200, large, large], served.text);
    assert.deepEqual(served.paid, served.row.cost);
    assert.equal(served.row.absorbed, usage === true ? 7_000n : 0n);
    const alone = await send('both', dialect, script);
    assert.equal(alone.model, null);
    assert.equal(alone.status, script.status ?? 200);
    assert.equal(alone.attempts.length, 1);
  });

test('a stream that content rules end before its first text goes to another model', async () => {
  const body = [
    '{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
    '{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}',
    '[DONE]',
  ].map((data) => `data: ${data}\n\n`);
  const script = { headers: sse, body: body.join('') };
  const served = await send('stands', 'chat', script, { stream: true });
  assert.deepEqual([served.status, served.model], [200, large]);
  const passed = await send('both', 'chat', script, { stream: true });
  assert.deepEqual([passed.model, /content_filter/.test(passed.text)], [null, true]);
  const rendered = script.body.replace('"content":""', '"content":"Well"');
  assert.equal((await send('stands', 'chat', { headers: sse, body: rendered }, { stream: true })).model, null);
});

test('a key or balance that does not cover the other model never gets it', async () => {
  const script = tooLong['OpenAI’s code']!;
  const forbidden = await send('stands', 'chat', script, { models: ['stands'] });
  assert.deepEqual([forbidden.status, forbidden.model, forbidden.paid], [400, null, 0n]);
  const allowed = await send('stands', 'chat', script, { models: ['stands', large] });
  assert.equal(allowed.model, large);
  // Enough for the model's own hold and not for the dearer one.
  const more = { max_tokens: 1_000_000 };
  const { held } = (await send('stands', 'chat', script, { more })).row;
  const own = (await send('plain', 'chat', script, { more })).row.held;
  assert.ok(held > own * 2n, 'the dearest is held');
  const poor = await send('stands', 'chat', script, { nanoUsd: own + 1_000n, more });
  assert.deepEqual([poor.status, poor.model, poor.row.held], [400, null, own]);
  assert.ok(own < usdInNano);
});

test('embeddings fall back to another embedding model', async () => {
  const customer = await testbed.customer();
  first.play(tooLong['vLLM’s length']!, {
    headers: json,
    body: '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}',
  });
  const reply = await fetch(`${testbed.origin}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.key}`, ...json },
    body: JSON.stringify({ model: 'vector', input: 'words' }),
  });
  assert.deepEqual([reply.status, reply.headers.get('x-gateway-model')], [200, 'vector-large'], await reply.text());
  const { charges } = await testbed.records(customer);
  assert.deepEqual([charges[0]!.model, charges[0]!.cost], ['vector-large', 15_000n]);
});

test('the row and the timeline name the requested model and the one that served', async () => {
  await send('stands', 'chat', tooLong['OpenAI’s code']!);
  const rows = await testbed.rows<{ requested_model: string; model: string; story: unknown }>('calls');
  const row = rows.findLast(({ model }) => model === large)!;
  assert.equal(row.requested_model, 'stands');
  assert.match(JSON.stringify(row.story), /route\.instead.*stands.*sandbox-large/);
  await testbed.audit();
});
