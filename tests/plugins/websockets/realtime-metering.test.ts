/** What realtime events are charged by: for any counters that a vendor may send, every token is counted once, in one class. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cost } from '../../../plugins/common/domain/money.ts';
import { totalTokens } from '../../../plugins/common/domain/usage.ts';
import { LiveDialect, liveProtocols } from '../../../plugins/websockets/live/live.ts';
import { RealtimeDialect } from '../../../plugins/websockets/realtime/realtime.ts';
import { responseUsage, transcriptionUsage } from '../../../plugins/websockets/realtime/usage.ts';
import type { Dialect } from '../../../plugins/websockets/relay/dialect.ts';
import { fc } from '../../helpers/properties.ts';

const count = fc.nat(100_000);
const price = {
  ...{ input: 4_000n, cache_read: 400n, input_audio: 32_000n, cache_read_audio: 500n, input_image: 5_000n },
  ...{ cache_read_image: 600n, output: 16_000n, output_audio: 64_000n },
};
const perMillion = Object.fromEntries(Object.entries(price).map(([name, nano]) => [name, nano * 1_000_000n]));

/** Counters that add up, as the vendor documents them. */
const sound = fc.record({
  text: count,
  audio: count,
  image: count,
  cachedShare: fc.tuple(fc.nat(100), fc.nat(100), fc.nat(100)),
  outText: count,
  outAudio: count,
});

test('the price of a response is the sum of its parts, to the nano-dollar', () => {
  fc.assert(
    fc.property(sound, ({ text, audio, image, cachedShare, outText, outAudio }) => {
      const cached = [text, audio, image].map((all, index) => Math.floor((all * cachedShare[index]!) / 100));
      const [cachedText, cachedAudio, cachedImage] = cached as [number, number, number];
      const usage = responseUsage({
        total_tokens: text + audio + image + outText + outAudio,
        input_tokens: text + audio + image,
        output_tokens: outText + outAudio,
        input_token_details: {
          text_tokens: text,
          audio_tokens: audio,
          image_tokens: image,
          cached_tokens: cachedText + cachedAudio + cachedImage,
          cached_tokens_details: { text_tokens: cachedText, audio_tokens: cachedAudio, image_tokens: cachedImage },
        },
        output_token_details: { text_tokens: outText, audio_tokens: outAudio },
      })!;
      const expected =
        BigInt(text - cachedText) * price.input +
        BigInt(cachedText) * price.cache_read +
        BigInt(audio - cachedAudio) * price.input_audio +
        BigInt(cachedAudio) * price.cache_read_audio +
        BigInt(image - cachedImage) * price.input_image +
        BigInt(cachedImage) * price.cache_read_image +
        BigInt(outText) * price.output +
        BigInt(outAudio) * price.output_audio;
      assert.equal(cost(usage, perMillion), expected);
    }),
  );
});

/** Anything that JSON can have in the place of a counter. */
const wild = fc.oneof(count, fc.constantFrom(null, undefined, -1, 1.5, 1e300, '7', 'many', true), fc.string());

test('contradictory counters never count a token twice, nor lose one of the sums', () => {
  const details = fc.record({
    text_tokens: wild,
    audio_tokens: wild,
    image_tokens: wild,
    cached_tokens: wild,
    cached_tokens_details: fc.oneof(wild, fc.record({ text_tokens: wild, audio_tokens: wild, image_tokens: wild })),
  });
  fc.assert(
    fc.property(count, count, fc.oneof(wild, details), fc.oneof(wild, details), (input, output, into, out) => {
      const usage = responseUsage({
        input_tokens: input,
        output_tokens: output,
        input_token_details: into,
        output_token_details: out,
      })!;
      assert.equal(totalTokens(usage), input + output);
      assert.ok(Object.values(usage).every((value) => Number.isSafeInteger(value) && value >= 0));
    }),
  );
  fc.assert(
    fc.property(fc.anything(), (value) => {
      const usage = { ...responseUsage(value), ...transcriptionUsage(value) };
      assert.ok(Object.values(usage).every((one) => Number.isSafeInteger(one) && one >= 0));
    }),
  );
});

test('transcriptions are charged by tokens, or by begun seconds', () => {
  assert.deepEqual(transcriptionUsage({ type: 'duration', seconds: 2.01 }), { audio: 3 });
  const tokens = { type: 'tokens', input_tokens: 12, input_token_details: { audio_tokens: 10 }, output_tokens: 3 };
  assert.deepEqual(transcriptionUsage(tokens), { input: 2, input_audio: 10, output: 3 });
  assert.equal(transcriptionUsage({ type: 'duration', seconds: -1 }), undefined);
});

const message = (text: string) => ({ data: Buffer.from(text), isBinary: false });

test('money is held for any event that may start the model, in any spelling', () => {
  const dialect = new RealtimeDialect('m');
  dialect.opened('m');
  const free = [
    '{"type":"session.update","session":{}}',
    '{"session":{},"type":"session.update"}',
    '{"type":"response.cancel"}',
  ];
  for (const text of free) assert.equal(dialect.client(message(text)).needsHold, false, text);
  const working = [
    '{"type":"response.create"}',
    '{"type":"session.update","type":"response.create"}',
    '{"type":"session.upd\\u0061te","type":"response.create"}',
    '{"type":"a.new.event"}',
    `{"type":"session.update","filler":"${'x'.repeat(70_000)}","type":"response.create"}`,
  ];
  for (const text of working) assert.equal(dialect.client(message(text)).needsHold, true, text.slice(0, 80));
  assert.equal(dialect.client({ data: Buffer.from([1]), isBinary: true }).needsHold, true);
});

test('no spelling of an event names another model', () => {
  const dialect = new RealtimeDialect('alias');
  dialect.opened('real');
  const key = fc.constantFrom('model', '\\u006dodel', 'm\\u006fdel', 'mode\\u006c');
  const part = fc.constantFrom('session', 'response', 's\\u0065ssion');
  fc.assert(
    fc.property(
      key,
      part,
      fc.constantFrom('other', 'REAL', ''),
      fc.constantFrom('', ' ', '\n\t'),
      (name, object, model, space) => {
        const text = `{${space}"type":"session.update","${object}":${space}{"a":[{"b":1}],${space}"${name}":"${model}"}}`;
        assert.equal(dialect.client(message(text)).refusal?.code, 'model_cannot_change', text);
      },
    ),
  );
  const replaced = dialect.client(
    message('{"type":"session.update", "session":{ "model" : "alias","x":[1.0]} }'),
  ).replaced;
  assert.equal(String(replaced), '{"type":"session.update", "session":{ "model" : "real","x":[1.0]} }');
});

const upstreamMessage = (event: object) => ({ data: Buffer.from(JSON.stringify(event)), isBinary: false });

/** Whether an event is charged, and what for. */
function meteredBy(dialect: Dialect, events: readonly object[]) {
  return events.flatMap((event) => dialect.upstream(upstreamMessage(event))?.metered ?? []);
}

test('events that a vendor repeats, at once or later, are charged once for each id', () => {
  const kinds = ['response.created', 'response.done', 'conversation.item.input_audio_transcription.completed'] as const;
  const event = fc.record({ kind: fc.constantFrom(...kinds), id: fc.nat(3), tokens: fc.integer({ min: 1, max: 99 }) });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const sent = events.map(({ kind: type, id, tokens }) => {
        const usage = { input_tokens: tokens, output_tokens: 1 };
        if (type === 'response.created') return { type, response: { id: `r${id}` } };
        if (type === 'response.done') return { type, response: { id: `r${id}`, status: 'completed', usage } };
        return { type, item_id: `i${id}`, content_index: 0, usage };
      });
      const charged = new Map<string, number>();
      for (const { kind, id, tokens } of events)
        if (kind !== 'response.created' && !charged.has(`${kind}${id}`)) charged.set(`${kind}${id}`, tokens);
      const metered = meteredBy(new RealtimeDialect('m'), sent);
      assert.deepEqual(
        metered.map(({ usage }) => usage?.input),
        [...charged.values()],
      );
    }),
  );
});

test('a repeated event of a response changes nothing for the running one', () => {
  const dialect = new RealtimeDialect('m');
  const created = (id: string) => dialect.upstream(upstreamMessage({ type: 'response.created', response: { id } }));
  const done = (id: string) =>
    dialect.upstream(upstreamMessage({ type: 'response.done', response: { id, status: 'failed' } }));
  created('a');
  created('a');
  done('a');
  assert.equal(dialect.isResponding, false);
  created('b');
  assert.deepEqual(done('a'), { errorAt: ['response', 'status_details'] }, 'its error is still searched for secrets');
  assert.equal(dialect.isResponding, true);
  done('b');
  assert.equal(dialect.isResponding, false);
});

test('a live session is charged once for a turn whose end is sent again', () => {
  const dialect = new LiveDialect(liveProtocols[0]!);
  const begin = { serverContent: { modelTurn: { parts: [{ text: 'a' }] } } };
  const end = (tokens: number) => ({
    serverContent: { turnComplete: true },
    usageMetadata: { promptTokenCount: tokens, responseTokenCount: 2 },
  });
  const events = [begin, end(5), end(5), begin, end(5), end(5), end(6)];
  assert.deepEqual(
    meteredBy(dialect, events).map(({ usage }) => usage?.input),
    [5, 5, 6],
  );
});

test('a voice or prompt stored at the vendor is refused, unless every account may use it there', () => {
  const upstream = { uncheckedIds: { all: false, shared: new Set(['voice_of_all']) } };
  const dialect = new RealtimeDialect('m');
  dialect.opened('m', upstream as unknown as Parameters<NonNullable<Dialect['opened']>>[1]);
  const requestOf = (event: object) => dialect.client(upstreamMessage(event)).refusal?.field;
  const voice = (id: string) => ({ session: { audio: { output: { voice: { id } } } } });
  assert.equal(requestOf({ type: 'session.update', ...voice('voice_of_another') }), 'session.audio.output.voice.id');
  assert.equal(requestOf({ type: 'session.update', ...voice('voice_of_all') }), undefined);
  assert.equal(requestOf({ type: 'response.create', response: { prompt: { id: 'pmpt_1' } } }), 'response.prompt.id');
  assert.equal(requestOf({ type: 'session.update', session: { voice: 'alloy' } }), undefined);
});

test('searches and maps of a live turn are charged with it', () => {
  const dialect = new LiveDialect(liveProtocols[0]!);
  const grounding = { webSearchQueries: ['a', 'b'], groundingChunks: [{ maps: {} }] };
  const events = [
    { serverContent: { modelTurn: { parts: [] }, groundingMetadata: grounding } },
    { serverContent: { turnComplete: true }, usageMetadata: { promptTokenCount: 5, responseTokenCount: 2 } },
  ];
  const [metered] = meteredBy(dialect, events);
  assert.deepEqual([metered?.usage?.web_search, metered?.usage?.call, metered?.usage?.input], [2, 1, 5]);
});

test('a session cannot use an unpriced tool of the vendor, in an update or a response; MCP runs are counted', () => {
  const priced = new Set<string>();
  const dialect = new RealtimeDialect('m');
  dialect.opened('real', undefined, (name) => priced.has(name));
  const message = (json: object) => ({ data: Buffer.from(JSON.stringify(json)), isBinary: false });
  const tools = [
    { type: 'function', name: 'f' },
    { type: 'mcp', server_label: 's', server_url: 'https://x.example' },
  ];
  for (const [json, field] of [
    [{ type: 'session.update', session: { type: 'realtime', tools } }, 'session.tools[1].type'],
    [{ type: 'response.create', response: { tools } }, 'response.tools[1].type'],
  ] as const) {
    priced.clear();
    const { refusal } = dialect.client(message(json));
    assert.deepEqual([refusal?.field, refusal?.code], [field, 'tool_not_priced']);
    assert.ok(refusal!.message.includes(`"${field}"`));
    priced.add('call');
    assert.equal(dialect.client(message(json)).refusal, undefined);
  }
  const output = [{ type: 'mcp_call' }, { type: 'message' }, { type: 'mcp_call' }];
  const usage = { input_tokens: 4, output_tokens: 2 };
  const done = message({ type: 'response.done', response: { id: 'r', status: 'completed', output, usage } });
  assert.deepEqual(dialect.upstream(done)?.metered?.usage, { input: 4, output: 2, call: 2 });
});

test('the setup of a live session cannot name another model or an unpriced tool', () => {
  const dialect = new LiveDialect(liveProtocols[0]!);
  const check = (setup: object, ...priced: readonly string[]) =>
    dialect.checkFirst(
      { data: Buffer.from(JSON.stringify({ setup: { model: 'models/m', ...setup } })), isBinary: false },
      'm',
      (name) => priced.includes(name),
    )?.field;
  assert.equal(check({ tools: [{ googleSearch: {} }] }), 'setup.tools[0].googleSearch');
  assert.equal(check({ tools: [{ googleSearch: {}, functionDeclarations: [] }] }, 'web_search'), undefined);
  assert.equal(check({ tools: [{ tomorrowsTool: {} }] }), 'setup.tools[0].tomorrowsTool');
  assert.equal(check({ extra: { fallbackModels: ['dear'] } }), 'setup.extra.fallbackModels[0]');
  assert.equal(check({ generationConfig: { temperature: 1 }, sessionResumption: {} }), undefined);
});
