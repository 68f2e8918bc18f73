/** Vendors that report more than a call can have consumed: the estimate is charged, marked, and what they reported is kept. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames } from './dialects.ts';
import { type House, modelAt, speaks, startHouse, until } from './house.ts';

let house: House;
let liar: Server;

/** The sandbox's answers with these counters multiplied. */
const counters = {
  input: /"(prompt_tokens|input_tokens|promptTokenCount)": ?(\d+)/g,
  output: /"(completion_tokens|output_tokens|candidatesTokenCount)": ?(\d+)/g,
};
const lies = { input: 1_000_000, output: 1_000_000_000 };
const total = /"(total_tokens|totalTokenCount)": ?\d+/g;

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
    const name = side as keyof typeof counters;
    const text = (await answer.text())
      .replace(counters[name], (_all, member, count) => `"${member}":${Number(count) * lies[name]}`)
      .replace(total, (_all, member) => `"${member}":${10 ** 12}`);
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    // The end comes later than the counts, as it does from a vendor on a slow network.
    response.write(text);
    setTimeout(() => response.end(), 5);
  });
  liar.listen(0, '127.0.0.1');
  await once(liar, 'listening');
  const { port } = liar.address() as AddressInfo;
  const provider = (side: string) => ({
    keys: 'vendor-key-of-the-sandbox',
    speaks: speaks(`http://127.0.0.1:${port}/${side}`),
  });
  house = await startHouse({
    providers: ({ sandbox }) => {
      origin = sandbox;
      return { input: provider('input'), output: provider('output') };
    },
    models: { input: modelAt('input'), output: modelAt('output') },
    more: { alerts: {} },
  });
});
after(async () => {
  await house.stop();
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
      test(`${dialect}, ${stream ? 'streamed' : 'whole'}, impossible ${side} tokens: the estimate is charged, what was reported is kept`, async () => {
        // Enough for the call, not for what is reported.
        const customer = await house.customer({ nanoUsd: 10_000_000n });
        const question = { model: side, prompt: 'five words are enough here', stream, more: limit[dialect] };
        const answer = await house.call(customer, dialect, question);
        assert.deepEqual([answer.status, answer.broken], [200, false]);
        const { ends, charges } = await house.books(customer);
        assert.deepEqual(ends, ['charged answered']);
        const [charge] = charges;
        // 100 output tokens cost 0.0002 USD, the prompt's estimate less.
        assert.ok(charge!.cost > 0n && charge!.cost < 400_000n, String(charge!.cost));
        assert.equal(charge!.estimated, true);
        const reported = charge!.attempts.at(-1)!.usage;
        assert.ok((reported?.[side] ?? 0) > 1_000_000, JSON.stringify(reported));
      });

test('an impossible usage raises its alert and stands in the timeline', async () => {
  const customer = await house.customer();
  const { id } = await house.call(customer, 'chat', { model: 'output', prompt: 'hi', more: limit.chat });
  await house.books(customer);
  await until('the call has its timeline', async () => {
    const rows = await house.rows<{ id: string; story: string | null }>('calls');
    return rows.some((row) => row.id === id && (row.story ?? '').includes('billing.impossible'));
  });
  await house.audit();
});
