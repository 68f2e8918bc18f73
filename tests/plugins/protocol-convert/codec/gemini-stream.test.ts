import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { GoogleGenAI } from '@google/genai';
import { streamText } from 'ai';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import { decodeSlot } from '../../../../plugins/protocol-convert/protocols/gemini/signatures.ts';
import { fc } from '../../../helpers/properties.ts';
import { recording, recordings } from '../../../helpers/recordings.ts';
import {
  chunk,
  chunksOf,
  eventsOf,
  last,
  openSeal,
  parsedFrames,
  requestThoughts,
  streamOf,
} from './gemini-harness.ts';

const ofType = <T extends Event['type']>(events: readonly Event[], type: T) =>
  events.filter((event) => event.type === type) as Extract<Event, { type: T }>[];
const textIn = (events: readonly Event[]) =>
  ofType(events, 'text-delta')
    .map((event) => event.text)
    .join('');
const stopIn = (events: readonly Event[]) => ofType(events, 'stop').map((event) => event.reason);
test('pitfall 039: arguments that come as JSON paths are put together, and never touch a prototype', () => {
  const piece = (jsonPath: string, value: object, more: object = {}) => ({ jsonPath, ...value, ...more });
  const { events } = eventsOf([
    chunk({ functionCall: { name: 'f', id: 'c', willContinue: true } }),
    chunk({ functionCall: { partialArgs: [piece('$.city', { stringValue: 'Flo' })], willContinue: true } }),
    chunk({
      functionCall: {
        partialArgs: [
          piece('$.city', { stringValue: 'rence' }),
          piece('$.list[0].n', { numberValue: 0 }),
          piece('$.list[1].ok', { boolValue: false }),
          piece("$['a.b']", { nullValue: 'NULL_VALUE' }),
          piece('$.__proto__.polluted', { stringValue: 'yes' }),
          piece('$.list[99999999]', { numberValue: 1 }),
          piece('nonsense', { numberValue: 1 }),
        ],
        willContinue: true,
      },
    }),
    chunk({ functionCall: {} }),
    last('STOP'),
  ]);
  assert.deepEqual(
    ofType(events, 'tool-delta').map((event) => JSON.parse(event.text)),
    [{ city: 'Florence', list: [{ n: 0 }, { ok: false }], 'a.b': null }],
  );
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.deepEqual(stopIn(events), ['tool-calls']);
});

const answered = recordings('gemini').filter((one) => one.status < 400 && !one.path.includes('countTokens'));

/** What an answer amounts to, whatever its chunks were. Executed code has become text on the way. */
function gist(events: readonly Event[]) {
  return {
    text: textIn(events),
    thoughts: ofType(events, 'reasoning-delta')
      .map((event) => event.text)
      .join(''),
    calls: ofType(events, 'tool-start').map(({ name }) => name),
    args: ofType(events, 'tool-delta').map(({ text }) => JSON.parse(text)),
    media: ofType(events, 'media').map(({ media }) => media),
    cited: ofType(events, 'citation').map(({ citation }) => citation.url),
    stops: stopIn(events).length,
  };
}

for (const { name, response, isStream } of answered) {
  test(`${name} is decoded, encoded and decoded again without a loss`, () => {
    const { events, failure } = eventsOf(chunksOf(response, isStream));
    if (failure !== undefined) return assert.match(name, /unexpected-tool-call|finish-other/);
    const stream = streamOf(events, { request: requestThoughts });
    assert.deepEqual(gist(eventsOf(parsedFrames(stream)).events), gist(events));
    return undefined;
  });
}

test('the official SDK reads the translated stream of every recording', async () => {
  for (const { name, response, isStream } of answered) {
    const { events, failure } = eventsOf(chunksOf(response, isStream));
    if (failure !== undefined) continue;
    const body = streamOf(events, { request: requestThoughts, usage: { input: 3, output: 4 } });
    const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const sdk = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: 'http://127.0.0.1:1', fetch } });
    let text = '';
    let finish: string | undefined;
    let total: number | undefined;
    for await (const part of await sdk.models.generateContentStream({ model: 'm', contents: 'x' })) {
      const ofFirst = part.candidates?.find((candidate) => candidate.index === 0);
      for (const one of ofFirst?.content?.parts ?? []) if (one.thought !== true) text += one.text ?? '';
      finish = part.candidates?.[0]?.finishReason ?? finish;
      total = part.usageMetadata?.totalTokenCount ?? total;
    }
    const first = events.filter((event) => !('choice' in event) || event.choice === 0);
    assert.equal(text, textIn(first), name);
    assert.ok(finish !== undefined, name);
    assert.equal(total, 7, name);
  }
});

test('the AI SDK reads the translated stream of every recording', async () => {
  for (const { name, response, isStream } of answered) {
    const { events, failure } = eventsOf(chunksOf(response, isStream));
    if (failure !== undefined || name.includes('n-choices')) continue;
    const body = streamOf(events, { request: requestThoughts, usage: { input: 3, output: 4 } });
    const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const model = createGoogleGenerativeAI({ apiKey: 'k', baseURL: 'http://127.0.0.1:1', fetch })('m');
    let text = '';
    let total: number | undefined;
    for await (const part of streamText({ model, prompt: 'x', onError: () => {} }).fullStream) {
      assert.notEqual(part.type, 'error', `${name}: ${'error' in part ? part.error : ''}`);
      if (part.type === 'text-delta') text += part.text;
      if (part.type === 'finish') total = part.totalUsage.totalTokens;
    }
    assert.equal(text, textIn(events), name);
    assert.equal(total, 7, name);
  }
});

test('whatever an upstream sends, the decoder does not throw and tells legal events', () => {
  const member = fc.constantFrom(
    'text',
    'thought',
    'thoughtSignature',
    'functionCall',
    'inlineData',
    'executableCode',
    'fileData',
  );
  const part = fc.dictionary(member, fc.oneof(fc.jsonValue(), fc.boolean(), fc.string()));
  const content = fc.record({ content: fc.record({ parts: fc.array(part) }), finishReason: fc.string() });
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.jsonValue(), fc.record({ candidates: fc.array(content) }))), (chunks) => {
      const objects = chunks.filter((one) => typeof one === 'object' && one !== null && !Array.isArray(one));
      const { events } = eventsOf(objects);
      const open = new Set<number>();
      for (const event of events) {
        if (event.type.endsWith('-start') && 'block' in event) open.add(event.block);
        else if (event.type.endsWith('-end') && 'block' in event) assert.ok(open.delete(event.block));
        else if (event.type.endsWith('-delta') && 'block' in event) assert.ok(open.has(event.block));
      }
      streamOf(events);
    }),
  );
});

test('a recorded answer with a signature is encoded for its client under seal', () => {
  const { response } = recording('gemini', 'google-gemini-3-pro-preview-tools-stream-9198');
  const { events } = eventsOf(chunksOf(response, true));
  const [vendors] = ofType(events, 'tool-end');
  const part = parsedFrames(streamOf(events))[0].candidates[0].content.parts[0];
  assert.deepEqual(decodeSlot(part.thoughtSignature, openSeal), [
    { kind: 'own', content: { maker: 'maker', value: vendors!.opaqueState } },
  ]);
});
