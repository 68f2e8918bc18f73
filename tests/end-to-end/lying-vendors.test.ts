/** Vendors that report more than a call can have consumed: the estimate is charged, marked, and what they reported is kept. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { type DialectName, dialectNames } from './dialects.ts';
import { talk } from './sockets.ts';
import { type Customer, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
let liar: Server;
const sockets = new WebSocketServer({ noServer: true });

/** The sandbox's answers with these counters multiplied. */
const counters = {
  input: /"(prompt_tokens|input_tokens|promptTokenCount)": ?(\d+)/g,
  output: /"(completion_tokens|output_tokens|candidatesTokenCount|responseTokenCount)": ?(\d+)/g,
};
const lies = { input: 1_000_000, output: 1_000_000_000 };
type Side = keyof typeof counters;
const total = /"(total_tokens|totalTokenCount)": ?\d+/g;

const lied = (text: string, side: Side): string =>
  text
    .replace(counters[side], (_all, member, count) => `"${member}":${Number(count) * lies[side]}`)
    .replace(total, (_all, member) => `"${member}":${10 ** 12}`);

/** Sessions of the sandbox, of which each message lies. */
function relayLies(request: IncomingMessage, socket: Duplex, head: Buffer, origin: string): void {
  const [, side, path] = /^\/(input|output)(\/.*)$/.exec(request.url ?? '') ?? [];
  const { authorization, 'x-goog-api-key': key } = request.headers;
  const headers = Object.fromEntries(
    Object.entries({ authorization, 'x-goog-api-key': key }).filter(([, value]) => value !== undefined),
  ) as Record<string, string>;
  const vendor = new WebSocket(origin.replace('http', 'ws') + path, { headers });
  vendor.once('open', () => {
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on('message', (data, isBinary) => vendor.send(data as Buffer, { binary: isBinary }));
      vendor.on('message', (data, isBinary) =>
        client.send(Buffer.from(lied(String(data), side as Side)), { binary: isBinary }),
      );
      client.on('close', () => vendor.close());
      vendor.on('close', () => client.close());
    });
  });
}

before(async () => {
  let origin = '';
  liar = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [, side = 'output', path = ''] = /^\/(input|output)(\/.*)$/.exec(request.url ?? '') ?? [];
    const { host: _host, 'content-length': _length, connection: _connection, ...headers } = request.headers;
    const answer = await fetch(`${origin}${path}`, {
      method: request.method ?? 'POST',
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks),
    });
    const name = side as Side;
    const text = lied(await answer.text(), name);
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    // The end comes later than the counts, as it does from a vendor on a slow network.
    response.write(text);
    setTimeout(() => response.end(), 5);
  });
  liar.on('upgrade', (request, socket, head) => relayLies(request, socket, head, origin));
  liar.listen(0, '127.0.0.1');
  await once(liar, 'listening');
  const { port } = liar.address() as AddressInfo;
  const provider = (side: string) => ({
    keys: 'vendor-key-of-the-sandbox',
    speaks: {
      ...speaks(`http://127.0.0.1:${port}/${side}`),
      'openai-realtime': `http://127.0.0.1:${port}/${side}/v1`,
      'gemini-live': `http://127.0.0.1:${port}/${side}`,
    },
  });
  const session = (side: string) => ({ ...modelAt(side), kind: 'realtime', context: '32k' });
  testbed = await startTestbed({
    providers: ({ sandbox }) => {
      origin = sandbox;
      return { input: provider('input'), output: provider('output') };
    },
    models: {
      ...{ input: modelAt('input'), output: modelAt('output') },
      ...{ 'voice-input': session('input'), 'voice-output': session('output') },
    },
    more: { alerts: {} },
  });
});
after(async () => {
  await testbed.stop();
  liar.close();
});

const limit: Record<DialectName, object> = {
  chat: { max_tokens: 100 },
  responses: { max_output_tokens: 100 },
  messages: { max_tokens: 100 },
  gemini: { generationConfig: { maxOutputTokens: 100 } },
};

for (const side of ['input', 'output'] as const)
  for (const dialect of dialectNames)
    for (const stream of [false, true])
      test(`${dialect}, ${stream ? 'streamed' : 'whole'}, impossible ${side} tokens: the estimate is charged, and the reported usage is kept`, async () => {
        // Enough for the call, not for what is reported.
        const customer = await testbed.customer({ nanoUsd: 10_000_000n });
        const question = { model: side, prompt: 'five words are enough here', stream, more: limit[dialect] };
        const answer = await testbed.call(customer, dialect, question);
        assert.deepEqual([answer.status, answer.broken], [200, false]);
        const { ends, charges } = await testbed.records(customer);
        assert.deepEqual(ends, ['charged answered']);
        const [charge] = charges;
        // 100 output tokens cost 0.0002 USD, the prompt's estimate less.
        assert.ok(charge!.cost > 0n && charge!.cost < 400_000n, String(charge!.cost));
        assert.equal(charge!.estimated, true);
        const reported = charge!.attempts.at(-1)!.usage;
        assert.ok((reported?.[side] ?? 0) > 1_000_000, JSON.stringify(reported));
      });

/** What is charged of an answer is no more than was held, marked, and beside what was reported. */
async function checkBounded(customer: Customer, side: Side, ends: number): Promise<void> {
  const { charges } = await testbed.records(customer, ends);
  assert.equal(charges.length, 1);
  const [charge] = charges;
  assert.ok(charge!.cost > 0n && charge!.cost <= charge!.held, `${charge!.cost} of ${charge!.held}`);
  assert.equal(charge!.estimated, true);
  const reported = charge!.attempts.at(-1)!.usage;
  assert.ok((reported?.[side] ?? 0) > 1_000_000, JSON.stringify(reported));
}

for (const side of ['input', 'output'] as const) {
  test(`a turn of the responses protocol over WebSocket, impossible ${side} tokens: the estimate is charged`, async () => {
    const customer = await testbed.customer({ nanoUsd: 10_000_000n });
    const client = await talk(testbed.origin, customer.key);
    const turn = await client.turn({ model: side, input: 'five words are enough here', ...limit.responses });
    assert.equal(turn.at(-1).type, 'response.completed');
    await client.close();
    await checkBounded(customer, side, 1);
  });

  test(`a response of a realtime session, impossible ${side} tokens: the estimate is charged`, async () => {
    const customer = await testbed.customer({ nanoUsd: 200_000_000n });
    const client = await talk(testbed.origin, customer.key, `/v1/realtime?model=voice-${side}`);
    const content = [{ type: 'input_text', text: 'five words are enough here' }];
    client.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } });
    client.send({ type: 'response.create', response: { output_modalities: ['text'], max_output_tokens: 100 } });
    await until('the response is done', () => client.messages.some(({ type }) => type === 'response.done'));
    await client.close();
    await checkBounded(customer, side, 2);
  });

  test(`a turn of a Gemini session, impossible ${side} tokens: the estimate is charged`, async () => {
    const customer = await testbed.customer({ nanoUsd: 200_000_000n });
    const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
    const client = await talk(testbed.origin, customer.key, `${path}?key=${customer.key}`);
    client.send({ setup: { model: `models/voice-${side}`, generationConfig: { responseModalities: ['TEXT'] } } });
    await until('the session is set up', () => client.messages.some(({ setupComplete }) => setupComplete));
    const turns = [{ role: 'user', parts: [{ text: 'five words are enough here' }] }];
    client.send({ clientContent: { turns, turnComplete: true } });
    await until('the turn is over', () => client.messages.some(({ usageMetadata }) => usageMetadata));
    await client.close();
    await checkBounded(customer, side, 2);
  });
}

test('an impossible usage raises its alert and is in the timeline', async () => {
  const customer = await testbed.customer();
  const { id } = await testbed.call(customer, 'chat', { model: 'output', prompt: 'hi', more: limit.chat });
  await testbed.records(customer);
  await until('the call has its timeline', async () => {
    const rows = await testbed.rows<{ id: string; story: string | null }>('calls');
    return rows.some((row) => row.id === id && (row.story ?? '').includes('billing.impossible'));
  });
  await testbed.audit();
});
