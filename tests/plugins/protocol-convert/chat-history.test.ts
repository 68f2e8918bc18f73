/** What a chat client gives back of an answer: pictures with their signatures, and thoughts where they stood. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { open, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
type Json = Record<string, unknown>;

/** The message of a whole chat answer, or what the official client makes of the chunks of a stream. */
async function messageOf(body: Json, protocol: string, upstream: string, isStream: boolean): Promise<Json> {
  const answer = isStream ? streamAnswer([upstream]) : wholeAnswer(upstream);
  const request = { path: '/v1/chat/completions', body: { ...body, stream: isStream }, target: { protocol } };
  const text = (await readBody((await relay(request, answer)).answer.body)).toString();
  if (!isStream) return (JSON.parse(text) as { choices: [{ message: Json }] }).choices[0].message;
  const message: Json = { role: 'assistant', content: '' };
  const lists: Record<string, Json[]> = {};
  for (const line of text.split('\n').filter((one) => one.startsWith('data: {'))) {
    const delta = (JSON.parse(line.slice(6)) as { choices: { delta: Json }[] }).choices[0]?.delta ?? {};
    message['content'] += String(delta['content'] ?? '');
    for (const name of ['images', 'reasoning_details'] as const)
      if (Array.isArray(delta[name])) lists[name] = [...(lists[name] ?? []), ...(delta[name] as Json[])];
    for (const call of (delta['tool_calls'] ?? []) as { index: number; function?: { arguments: string } }[]) {
      lists['tool_calls'] ??= [];
      const calls = lists['tool_calls'];
      const known = calls[call.index] as { function: { arguments: string } } | undefined;
      if (known === undefined) calls[call.index] = call as unknown as Json;
      else known.function.arguments += call.function?.arguments ?? '';
    }
  }
  return { ...message, ...lists };
}

/** The body that goes to the upstream for these messages. */
async function sentBody(messages: unknown[], protocol: string, more: Json = {}): Promise<string> {
  const request = { path: '/v1/chat/completions', body: { model: 'm', messages, ...more }, target: { protocol } };
  const upstream = wholeAnswer(
    JSON.stringify({
      candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
      ...{
        id: 'x',
        type: 'message',
        role: 'assistant',
        content: [{ type: 'text', text: 'ok' }],
        stop_reason: 'end_turn',
      },
      ...{ object: 'response', status: 'completed' },
      output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }],
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
    }),
  );
  const { sent } = await relay(request, upstream);
  return Buffer.from(sent.body as Uint8Array).toString();
}

const user = { role: 'user', content: 'Draw a fox.' };
const pictureParts = [
  { text: 'Here:' },
  { inlineData: { mimeType: 'image/png', data: png }, thoughtSignature: 'U0lH' },
];
const picture = { candidates: [{ content: { role: 'model', parts: pictureParts }, finishReason: 'STOP' }] };

test('a picture that a client gives back reaches every target, its signature the vendor that made it', async () => {
  for (const isStream of [false, true]) {
    const upstream = isStream ? `data: ${JSON.stringify(picture)}\n\n` : JSON.stringify(picture);
    const message = await messageOf({ model: 'm', messages: [user] }, 'gemini', upstream, isStream);
    assert.ok(JSON.stringify(message['images']).includes(png));
    const messages = [user, message, { role: 'user', content: 'Now in blue.' }];
    const own = JSON.parse(await sentBody(messages, 'gemini')) as { contents: { role: string; parts: Json[] }[] };
    assert.deepEqual(
      own.contents[1]!.parts.find((part) => part['inlineData'] !== undefined),
      { inlineData: { mimeType: 'image/png', data: png }, thoughtSignature: 'U0lH' },
    );
    for (const protocol of ['messages', 'responses'] as const) {
      const body = await sentBody(messages, protocol);
      assert.ok(body.includes(png), protocol);
      assert.ok(!body.includes('U0lH') && !body.includes('gw1.'), protocol);
    }
    // A chat body reaches a chat vendor by translation where the vendor only streams.
    const request = { path: '/v1/chat/completions', body: { model: 'm', messages } };
    const target = { protocol: 'chat', traits: { streams: 'only' as const } };
    const frames = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;
    const { sent } = await relay({ ...request, target }, streamAnswer([frames]));
    assert.ok(Buffer.from(sent.body as Uint8Array).includes(png));
  }
});

test('pictures may be bare addresses, count as pictures in the estimate, and are refused by their field otherwise', async () => {
  const url = `data:image/png;base64,${png}`;
  for (const images of [[url], [{ image_url: url }], [{ type: 'image_url', image_url: { url } }]]) {
    const message = { role: 'assistant', content: null, images };
    assert.ok((await sentBody([user, message, user], 'gemini')).includes(png));
  }
  for (const [images, field] of [
    ['x', 'messages[1].images'],
    [[{}], 'messages[1].images[0].image_url.url'],
    [[7], 'messages[1].images[0]'],
  ] as const) {
    const message = { role: 'assistant', content: 'a', images };
    await assert.rejects(
      () => sentBody([user, message, user], 'gemini'),
      (error: unknown) => error instanceof GatewayError && error.field === field,
      field,
    );
  }
  const large = `data:image/png;base64,${png}${'A'.repeat(400_000)}`;
  const message = { role: 'assistant', content: '', images: [{ type: 'image_url', image_url: { url: large } }] };
  const { exchange } = open({ path: '/v1/chat/completions', body: { model: 'm', messages: [user, message, user] } });
  assert.ok(exchange.get((await import('../../../plugins/common/domain/calls.ts')).call).inputTokens < 20_000);
});

const thinking = (text: string) => ({ type: 'thinking', thinking: text, signature: `SIG-${text}` });
const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: { at: id } });
const say = (text: string) => ({ type: 'text', text });
type Block = ReturnType<typeof thinking> | ReturnType<typeof call> | ReturnType<typeof say>;

function streamed(blocks: readonly Block[]): string {
  const events: Json[] = [{ type: 'message_start', message: { id: 'msg_1', content: [], usage: { input_tokens: 1 } } }];
  for (const [index, block] of blocks.entries()) {
    const delta = (members: Json) => events.push({ type: 'content_block_delta', index, delta: members });
    const empty = { thinking: '', signature: '', text: '', input: {} };
    const blank = Object.fromEntries(
      Object.entries(block).map(([name, value]) => [name, empty[name as 'text'] ?? value]),
    );
    events.push({ type: 'content_block_start', index, content_block: blank });
    if (block.type === 'thinking') {
      delta({ type: 'thinking_delta', thinking: (block as { thinking: string }).thinking });
      delta({ type: 'signature_delta', signature: (block as { signature: string }).signature });
    } else if (block.type === 'text') delta({ type: 'text_delta', text: (block as { text: string }).text });
    else delta({ type: 'input_json_delta', partial_json: JSON.stringify((block as { input: unknown }).input) });
    events.push({ type: 'content_block_stop', index });
  }
  events.push({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } });
  events.push({ type: 'message_stop' });
  return events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];

/** The assistant's blocks after a way through a chat client, which may change the message. */
async function returned(blocks: readonly Block[], isStream: boolean, change = (message: Json): Json => message) {
  const whole = { id: 'msg_1', type: 'message', role: 'assistant', content: blocks, stop_reason: 'tool_use' };
  const upstream = isStream
    ? streamed(blocks)
    : JSON.stringify({ ...whole, usage: { input_tokens: 1, output_tokens: 9 } });
  const message = change(await messageOf({ model: 'm', messages: [user], tools }, 'messages', upstream, isStream));
  const ids = blocks.flatMap((block) => (block.type === 'tool_use' ? [(block as { id: string }).id] : []));
  const results = ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'seen' }));
  const body = JSON.parse(await sentBody([user, message, ...results], 'messages', { tools })) as {
    messages: { role: string; content: Json[] }[];
  };
  const content = body.messages.find(({ role }) => role === 'assistant')!.content;
  return content.map(({ type, thinking: thought, signature, text, id, name, input }) =>
    type === 'thinking'
      ? { type, thinking: thought, signature }
      : type === 'text'
        ? { type, text }
        : { type, id, name, input },
  );
}

test('thoughts between text and calls come back where they stood', async () => {
  const histories: readonly (readonly Block[])[] = [
    [thinking('T1'), say('Let me look.'), thinking('T2'), call('a'), thinking('T3'), call('b')],
    [thinking('T1'), call('a'), thinking('T2'), call('b')],
    [call('a'), thinking('T1'), call('b')],
    [thinking('T1'), say('One. '), thinking('T2'), say('Two.'), thinking('T3'), call('a')],
    [thinking('T1'), say('Ünï 😀 code'), thinking('T2'), call('a'), call('b'), thinking('T3'), call('c')],
    [thinking('T1'), say('Plain.'), call('a')],
  ];
  for (const blocks of histories) {
    for (const isStream of [false, true]) {
      assert.deepEqual(await returned(blocks, isStream), blocks, JSON.stringify([isStream, blocks]));
      // A client that keeps only the members it knows still gives the index back.
      const isReported = blocks.every(({ type }, at) => type !== 'text' || at < 2);
      const firstCall = blocks.findIndex(({ type }) => type === 'tool_use');
      const textFirst = blocks.every(({ type }, at) => type !== 'text' || at < firstCall);
      if (!isReported || !textFirst || firstCall === 0) continue;
      const withoutIds = (message: Json): Json => ({
        ...message,
        reasoning_details: (message['reasoning_details'] as Json[]).map(({ id: _, ...entry }) => entry),
      });
      assert.deepEqual(await returned(blocks, isStream, withoutIds), blocks, 'without ids');
    }
  }
});

test('thoughts without a place stand in front, and odd places are taken as far as they go', async () => {
  const blocks = [thinking('T1'), say('Text.'), thinking('T2'), call('a')];
  const changed = (change: (entry: Json) => Json) => (message: Json) => ({
    ...message,
    reasoning_details: (message['reasoning_details'] as Json[]).map(change),
  });
  const front = [thinking('T1'), thinking('T2'), say('Text.'), call('a')];
  assert.deepEqual(
    await returned(
      blocks,
      false,
      changed(({ id: _, index: _index, ...entry }) => entry),
    ),
    front,
  );
  for (const index of [-5, 1.5, 'x', Number.MAX_SAFE_INTEGER]) {
    const back = await returned(
      blocks,
      false,
      changed(({ id: _, ...entry }) => ({ ...entry, index })),
    );
    assert.equal(back.length, 4);
  }
  for (const id of ['at_999999999_9999_9999', 'at_0_0_0', 'at_1', 'at_-1_0_0', 'rs_1']) {
    const back = await returned(
      blocks,
      false,
      changed((entry) => ({ ...entry, id })),
    );
    assert.equal(back.filter(({ type }) => type === 'thinking').length, 2, id);
    const text = back.flatMap((block) => ('text' in block ? [block['text']] : [])).join('');
    assert.equal(text, 'Text.', id);
  }
});
