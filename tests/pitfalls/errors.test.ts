/** Errors of upstreams, as clients of every protocol read them; and requests that must keep their form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toGatewayError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { clients } from '../matrix/clients/index.ts';
import { protocolNames, type SeenError } from '../matrix/scenario.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { open, readBody, relay, wholeAnswer } from '../plugins/protocol-convert/harness.ts';
import { hello, nameOf, type Pair, pairs, sent, streamOf, whole } from './relayed.ts';

const request = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;

interface ReceivedError extends SeenError {
  readonly status: number;
}

/** What the client learns when the upstream answers this. */
async function receivedError(pair: Pair, status: number, body: string): Promise<ReceivedError> {
  const wording = clients[pair.client].word(request, { model: 'model', isStream: false });
  const requested = { ...wording, target: { protocol: pair.vendor } };
  const error = await relay(requested, wholeAnswer(body, status)).then(
    () => assert.fail('an error is an error'),
    (reason: unknown) => reason,
  );
  const { endpoint, exchange } = open(requested);
  const answer = endpoint.renderError!(toGatewayError(error), exchange);
  const text = (await readBody(answer.body)).toString();
  return { ...clients[pair.client].readError(text), status: answer.status };
}

test('pitfall 064: a whole answer with calls has them as items of their own', async () => {
  const call = { id: 'call_1', name: 'get_time', input: { city: 'Paris' } };
  for (const vendor of ['chat', 'messages', 'gemini'] as const) {
    const body = vendors[vendor].whole({ ...hello, calls: [call], meaning: 'tool-calls' }, 'model');
    const seen = await whole({ client: 'responses', vendor }, body);
    assert.deepEqual(
      seen.calls.map(({ name, input }) => ({ name, input })),
      [{ name: call.name, input: call.input }],
      vendor,
    );
    assert.deepEqual(
      (seen.echo as { type: string }[]).map(({ type }) => type),
      ['message', 'function_call'],
      vendor,
    );
  }
});

test('pitfall 137: edits of the context mean nothing elsewhere, and are named as left out', async () => {
  const edits = { edits: [{ type: 'clear_thinking_20251015' }] };
  for (const vendor of protocolNames.filter((name) => name !== 'messages')) {
    const { dropped } = await sent({ client: 'messages', vendor }, { context_management: edits });
    assert.match(dropped ?? '', /context_management/, vendor);
  }
});

test('pitfall 191: the same conversation is encoded byte for byte the same, its earlier part as before', async () => {
  const tools = ['zeta', 'alpha', 'mid'].map((name) => ({
    name,
    description: name,
    schema: { type: 'object', properties: { b: {}, a: {} } },
  }));
  const turns = [
    { by: 'user', parts: [{ kind: 'text', text: 'One?' }] },
    { by: 'assistant', text: 'Two.' },
    { by: 'user', parts: [{ kind: 'text', text: 'Three?' }] },
  ] as const;
  for (const pair of pairs) {
    const word = async (upTo: number) =>
      (await sent(pair, {}, { request: { system: 'Be terse.', tools, turns: turns.slice(0, upTo) } })).body;
    const [first, again, longer] = [await word(1), await word(1), await word(3)];
    assert.equal(JSON.stringify(first), JSON.stringify(again), nameOf(pair));
    for (const member of ['tools', 'system', 'instructions', 'systemInstruction'])
      assert.equal(JSON.stringify(longer[member]), JSON.stringify(first[member]), nameOf(pair));
    const list = (body: Record<string, unknown>) =>
      (body['messages'] ?? body['input'] ?? body['contents']) as unknown[];
    const before = list(first);
    assert.equal(JSON.stringify(list(longer).slice(0, before.length)), JSON.stringify(before), nameOf(pair));
  }
});

test('pitfall 224: an error that is a text, a page or JSON in JSON is an error of the client’s protocol', async () => {
  const bodies = [
    'upstream connect error',
    '<html>Bad Request</html>',
    '{"error":"model is loading"}',
    '{"detail":"no such thing"}',
    JSON.stringify({ error: { message: '{"error":{"message":"inner"}}', type: 'invalid_request_error' } }),
  ];
  for (const pair of pairs) {
    for (const body of bodies) {
      const { message, type, status } = await receivedError(pair, 400, body);
      assert.ok(message !== '' && type !== '' && status >= 400, nameOf(pair));
      assert.ok(!message.includes('<html>'), nameOf(pair));
    }
  }
});

test('pitfall 226: a prompt that is too long is reported in the words by which each protocol’s clients know it', async () => {
  for (const pair of pairs) {
    const { body } = vendors[pair.vendor].fault('too-long');
    const { status, type, code, message } = await receivedError(pair, 400, String(body));
    assert.equal(status, 400, nameOf(pair));
    if (pair.client === 'chat' || pair.client === 'responses')
      assert.equal(code, 'context_length_exceeded', nameOf(pair));
    else if (pair.client === 'messages') assert.match(message, /^prompt is too long/, nameOf(pair));
    else assert.equal(type, 'INVALID_ARGUMENT', nameOf(pair));
  }
});

test('pitfall 227: a refused key of the gateway is never the client’s 401', async () => {
  for (const pair of pairs) {
    for (const status of [401, 402, 403]) {
      const answer = await receivedError(pair, status, '{"error":{"message":"Incorrect API key provided: sk-x"}}');
      assert.equal(answer.status, 502, nameOf(pair));
      assert.ok(!answer.message.includes('sk-x'), nameOf(pair));
    }
  }
});

test('pitfall 228: a relayed refusal keeps its words to the byte, because clients read them', async () => {
  const body = JSON.stringify({
    type: 'error',
    error: { type: 'invalid_request_error', message: "messages.1.role: Input should be 'user' or 'assistant'" },
  });
  const wording = clients.messages.word(request, { model: 'model', isStream: false });
  await assert.rejects(relay(wording, wholeAnswer(body, 400)), (error) => {
    assert.ok(error instanceof UpstreamRefusal);
    assert.equal(Buffer.from(error.answer!.body as Uint8Array).toString(), body);
    return true;
  });
});

test('pitfall 111: a responses body at the chat address is answered as chat', async () => {
  const { answer } = await relay(
    {
      path: '/v1/chat/completions',
      body: { model: 'model', input: 'Hello?', stream: true },
      target: { protocol: 'chat' },
    },
    { status: 200, headers: { 'content-type': 'text/event-stream' }, body: Buffer.from(streamOf('chat')) },
  );
  assert.equal(clients.chat.readStream((await readBody(answer.body)).toString()).text, hello.text);
});
