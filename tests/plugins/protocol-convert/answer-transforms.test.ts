/** Answer transforms on recorded answers of four protocols, relayed: unchanged bytes, a change at any event, refusals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { Collector } from '../../../plugins/common/canonical/collect.ts';
import { ReplyEvents } from '../../../plugins/common/canonical/events.ts';
import type { Event, Reply } from '../../../plugins/common/canonical/reply.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { target } from '../../../plugins/common/domain/upstreams.ts';
import { FrameReader } from '../../../plugins/common/kit/sse.ts';
import {
  type AnswerTransform,
  type CallTransform,
  callTransforms,
} from '../../../plugins/common/wire/call-transforms.ts';
import { readFrame } from '../../../plugins/common/wire/frame.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { protocols } from '../../../plugins/protocol-convert/protocols/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { type Family, families, recordings } from '../../helpers/recordings.ts';
import { cutAt, open, readBody, streamAnswer, targetFor, wholeAnswer } from './harness.ts';

let current: AnswerTransform | undefined;
const host = fakeHost();
host.extend(callTransforms, { name: 'under-test', answer: () => current } satisfies CallTransform);
const part = await setUp(protocolConvert, host);

const request: Record<Family, (stream: boolean) => { path: string; body: object }> = {
  chat: (stream) => ({
    path: '/v1/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: 'x' }], stream, stream_options: { include_usage: true } },
  }),
  responses: (stream) => ({ path: '/v1/responses', body: { model: 'm', input: 'x', stream } }),
  messages: (stream) => ({
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], stream },
  }),
  gemini: (stream) => ({
    path: `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ parts: [{ text: 'x' }] }] },
  }),
};

/** Relayed where the vendor speaks the client's protocol, else translated. */
async function relayed(
  family: Family,
  stream: boolean,
  body: Uint8Array,
  transform: AnswerTransform | undefined,
  vendor: Family = family,
) {
  const { exchange } = open(request[family](stream));
  exchange.set(target, targetFor(vendor, 'm'));
  current = transform;
  const answer = await part.handle!(exchange, async () => (stream ? streamAnswer(chunks(body)) : wholeAnswer(body)));
  return { bytes: await readBody(answer.body), exchange, usage: exchange.find(usageReport)! };
}

const chunks = (body: Uint8Array) =>
  cutAt(
    body,
    Array.from({ length: 1 + body.length / 300 }, (_, index) => 300 * index),
  );

/** Chat clients get signed reasoning twice, once to read and once to send back. */
function withoutDetails(family: Family, bytes: Buffer): Buffer {
  return family === 'chat'
    ? Buffer.from(bytes.toString().replaceAll('"reasoning_details":[{"type":"reasoning.text"', '"x":[{"y":1'))
    : bytes;
}

/** The parts of an answer, with adjacent texts as one. */
function read(family: Family, bytes: Uint8Array, stream: boolean): { reply: Reply; problems: readonly string[] } {
  const { codec } = protocols.find(({ name }) => name === family)!;
  const collector = new Collector();
  const events = new ReplyEvents((event) => collector.event(event), { names: new Map(), idSeed: 'x' });
  if (!stream) codec.decodeReply(JSON.parse(Buffer.from(bytes).toString()), events);
  else {
    const decoder = codec.createDecoder(events);
    const reader = new FrameReader((raw) => {
      const frame = readFrame(raw);
      if (frame !== undefined) decoder.payload(frame.json, frame.event);
    });
    reader.feed(bytes);
    decoder.end();
  }
  return { reply: collector.reply(), problems: [] };
}

function essence(reply: Reply) {
  return reply.choices.map(({ parts, stop }) => ({
    stop,
    text: parts.map((one) => (one.kind === 'text' || one.kind === 'refusal' ? one.text : '')).join(''),
    reasoning: parts.map((one) => (one.kind === 'reasoning' ? one.text : '')).join(''),
    calls: parts.flatMap((one) =>
      one.kind === 'tool-call'
        ? [[one.name, one.input.startsWith('{') ? JSON.stringify(JSON.parse(one.input)) : one.input]]
        : [],
    ),
  }));
}

const all = families.flatMap((family) =>
  recordings(family).filter(
    ({ status, response, path }) => status === 200 && response.length < 40_000 && !path.includes('ount'),
  ),
);
const same: AnswerTransform = { event: (event) => [event] };
/** Holds each text until its block has ended, and returns the same events then. */
function holding(): AnswerTransform {
  let held: Event[] = [];
  return {
    event(event) {
      if (event.type === 'text-delta') {
        held.push(event);
        return [];
      }
      const out = [...held, event];
      held = [];
      return out;
    },
  };
}
/** The same, of texts that come joined as far as there is room. */
const roomy = (transform: AnswerTransform, room = 400): AnswerTransform => ({ ...transform, room: () => room });
/** The same, with a promise for every second event, and for the end. */
function waiting({ event, end, ...rest }: AnswerTransform): AnswerTransform {
  let count = 0;
  const later = <T>(work: () => T | Promise<T>) => new Promise<void>((done) => setImmediate(done)).then(work);
  return {
    ...rest,
    event: (given) => (count++ % 2 === 0 ? later(() => event(given)) : event(given)),
    end: () => later(() => end?.() ?? []),
  };
}
const copiesFrom = (first: number): AnswerTransform => {
  let at = 0;
  return { event: (event) => [at++ < first ? event : { ...event }] };
};

for (const family of families)
  test(`${family}: what changes nothing keeps every byte, also where events are held`, async () => {
    let count = 0;
    for (const { name, isStream, response } of all.filter((one) => one.family === family)) {
      const plain = await relayed(family, isStream, response, undefined).catch(() => undefined);
      if (plain === undefined) continue;
      count++;
      const isBroken = plain.exchange.failure !== undefined;
      const held = isBroken
        ? []
        : [holding(), roomy(holding()), roomy(holding(), 30), waiting(roomy(holding())), waiting(same)];
      for (const transform of [same, ...held, { ...same, reply: (reply: Reply) => reply }]) {
        const { bytes, usage } = await relayed(family, isStream, response, transform);
        assert.equal(bytes.toString(), plain.bytes.toString(), name);
        assert.deepEqual(usage.usage, plain.usage.usage, name);
      }
    }
    assert.ok(count > 10, `${count} recordings`);
  });

for (const family of families)
  test(`${family}: a change at any event gives an answer that says the same`, async () => {
    let count = 0;
    for (const { name, isStream, response } of all.filter((one) => one.family === family)) {
      const plain = await relayed(family, isStream, response, undefined).catch(() => undefined);
      if (plain === undefined || plain.exchange.failure !== undefined) continue;
      let events = 0;
      const counting: AnswerTransform = {
        event(event) {
          events++;
          return [event];
        },
      };
      await relayed(family, isStream, response, counting);
      const expected = essence(read(family, plain.bytes, isStream).reply);
      if (expected.every(({ text, calls }) => text === '' && calls.length === 0)) continue;
      const step = Math.max(1, Math.floor(events / 12));
      for (let first = 0; first < events; first += step) {
        const copies = copiesFrom(first);
        const transform = [waiting(copies), roomy(copies), copies][count % 3]!;
        const { bytes, usage } = await relayed(family, isStream, response, transform);
        assert.deepEqual(
          essence(read(family, withoutDetails(family, bytes), isStream).reply),
          expected,
          `${name} from ${first}`,
        );
        assert.deepEqual(usage.usage, plain.usage.usage, name);
        checkStream(family, isStream, bytes.toString(), `${name} from ${first}`);
        count++;
      }
    }
    assert.ok(count > 50, `${count} changes`);
  });

for (const family of ['chat', 'messages'] as const)
  test(`${family}: texts that a transform would hold come joined up to its room, and all of them`, async () => {
    const texts = new Map<number, string[]>();
    const { response } = await withText(family, true);
    for (const room of [0, 100]) {
      const seen: string[] = [];
      const { event } = holding();
      const taking: AnswerTransform = {
        event(given) {
          if (given.type === 'text-delta') seen.push(given.text);
          return event(given);
        },
      };
      await relayed(family, true, response, roomy(taking, room));
      texts.set(room, seen);
    }
    const [single, joined] = [texts.get(0)!, texts.get(100)!];
    assert.equal(joined.join(''), single.join(''));
    assert.ok(joined.length < single.length, `${joined.length} of ${single.length}`);
    const longest = Math.max(100, ...single.map(({ length }) => length));
    for (const text of joined) assert.ok(text.length <= longest, text);
  });

async function withText(family: Family, isStream: boolean) {
  for (const one of all.filter((each) => each.family === family && each.isStream === isStream)) {
    const plain = await relayed(family, isStream, one.response, undefined).catch(() => undefined);
    if (plain === undefined || plain.exchange.failure !== undefined) continue;
    if (essence(read(family, plain.bytes, isStream).reply).some(({ text }) => text.length > 300)) return one;
  }
  throw new Error('no such recording');
}

/** What accumulators of the official clients require of a stream's order. */
function checkStream(family: Family, isStream: boolean, text: string, name: string): void {
  if (!isStream) return;
  const frames = text.split('\n\n').flatMap((frame) => readFrame(Buffer.from(frame))?.json ?? []);
  if (family === 'messages') checkMessages(frames as Frame[], name);
  if (family === 'responses') checkResponses(frames as Frame[], name);
}

type Frame = Record<string, unknown> & { type: string };

function checkMessages(frames: readonly Frame[], name: string): void {
  let open: unknown;
  let next = 0;
  for (const { type, index } of frames) {
    if (type === 'content_block_start') {
      assert.equal(open, undefined, `${name}: two open blocks`);
      assert.equal(index, next++, name);
      open = index;
    } else if (type === 'content_block_delta' || type === 'content_block_stop') {
      assert.equal(index, open, `${name}: ${type}`);
      if (type === 'content_block_stop') open = undefined;
    }
  }
  assert.equal(open, undefined, `${name}: a block stays open`);
  assert.equal(frames.filter(({ type }) => type === 'message_start').length, 1, name);
  assert.equal(frames.at(-1)!.type, 'message_stop', name);
}

function checkResponses(frames: readonly Frame[], name: string): void {
  const ids = new Map<unknown, unknown>();
  const done = new Map<unknown, unknown>();
  let sequence = -1;
  for (const frame of frames) {
    const { type, output_index: index, sequence_number: number } = frame;
    if (typeof number === 'number') {
      assert.ok(number > sequence, `${name}: numbers go on`);
      sequence = number;
    }
    const item = frame['item'] as { id: unknown } | undefined;
    if (type === 'response.output_item.added') {
      assert.ok(!ids.has(index), `${name}: item ${index} begins twice`);
      ids.set(index, item!.id);
    } else if (typeof index === 'number') assert.ok(ids.has(index) && !done.has(index), `${name}: ${type} of ${index}`);
    if (type === 'response.output_item.done') done.set(index, item);
    if (frame['item_id'] !== undefined) assert.equal(frame['item_id'], ids.get(index), `${name}: ${type}`);
  }
  const last = frames.at(-1)!['response'] as { id: unknown; output: unknown[] };
  const first = frames[0]!['response'] as { id: unknown };
  assert.equal(done.size, ids.size, `${name}: an item stays open`);
  assert.equal(last.id, first.id, name);
  assert.equal(last.output.length, done.size, name);
}

const shout: AnswerTransform = {
  event: (event) => [event.type === 'text-delta' ? { ...event, text: 'Z' } : event],
};
const throwing = (error: Error): AnswerTransform => ({
  event(event) {
    if (event.type === 'text-end') throw error;
    return [event];
  },
});
const rule = () => new GatewayError('forbidden', 'No more of this.', { code: 'rule' });

for (const family of families)
  for (const vendor of families)
    test(`${family} on ${vendor}: texts that are changed, and errors in the middle, whole and streamed`, async () => {
      for (const isStream of [true, false]) {
        const { response } = await withText(vendor, isStream);
        for (const transform of [shout, waiting(shout)]) {
          const { bytes } = await relayed(family, isStream, response, transform, vendor);
          const texts = essence(read(family, bytes, isStream).reply).map(({ text }) => text);
          for (const text of texts) assert.match(text, /^Z+$/);
        }
        const internal = new TypeError('reading "x" of undefined');
        for (const [transform, shown] of [
          [throwing(rule()), 'No more of this.'],
          [waiting(throwing(rule())), 'No more of this.'],
          [throwing(internal), 'The answer could not be processed.'],
          [waiting(throwing(internal)), 'The answer could not be processed.'],
        ] as const) {
          const ended = relayed(family, isStream, response, transform, vendor);
          if (!isStream) {
            await assert.rejects(ended, { message: shown });
            continue;
          }
          const { bytes: sent, exchange, usage } = await ended;
          assert.ok(sent.toString().includes(shown));
          assert.ok(!sent.toString().includes('undefined'));
          assert.equal(exchange.failure?.message, shown);
          assert.notEqual(exchange.failure?.kind, 'client_left');
          assert.ok((usage.usage.output ?? 0) > 0, 'what the vendor generated is charged');
        }
      }
    });

test('while a transform waits, no more of the answer is read, and the order stays', async () => {
  const { response } = await withText('chat', true);
  for (const vendor of ['chat', 'messages'] as const) {
    const { response: body } = vendor === 'chat' ? { response } : await withText(vendor, true);
    let pulled = 0;
    const during: number[] = [];
    const { exchange } = open(request.chat(true));
    exchange.set(target, targetFor(vendor, 'm'));
    current = {
      async event(event) {
        const before = pulled;
        await new Promise<void>((done) => setImmediate(() => setImmediate(done)));
        during.push(pulled - before);
        return [event];
      },
    };
    async function* counted() {
      for (const chunk of chunks(body)) {
        pulled++;
        yield chunk;
      }
    }
    const answer = await part.handle!(exchange, async () => ({ ...streamAnswer([]), body: counted() }));
    const bytes = await readBody(answer.body);
    assert.ok(during.length > 5);
    // Until the first event that a client can use, chunks are read for the head.
    assert.deepEqual([...new Set(during.slice(4))], [0], vendor);
    const plain = await relayed('chat', true, body, undefined, vendor);
    const said = (of: Uint8Array) => essence(read('chat', of, true).reply);
    assert.deepEqual(said(bytes), said(plain.bytes));
  }
});

test('a block of its own may be added, and blocks may be left out, in a stream that was relayed so far', async () => {
  for (const family of families) {
    const { response } = await withText(family, true);
    const adding: AnswerTransform = {
      event(event) {
        if (event.type !== 'stop') return [event];
        const at = { block: -1, choice: event.choice };
        const text = { type: 'text-delta', ...at, text: 'Checked.', logprobs: undefined } as const;
        return [{ type: 'text-start', ...at }, text, { type: 'text-end', ...at, opaqueState: undefined }, event];
      },
    };
    const plain = await relayed(family, true, response, undefined);
    const before = essence(read(family, plain.bytes, true).reply);
    const { bytes } = await relayed(family, true, response, adding);
    checkStream(family, true, bytes.toString(), family);
    assert.deepEqual(
      essence(read(family, bytes, true).reply).map(({ text }) => text),
      before.map(({ text }) => `${text}Checked.`),
    );
    const quiet: AnswerTransform = { event: (event) => (/^(?:text-|citation)/.test(event.type) ? [] : [event]) };
    const without = await relayed(family, true, response, quiet);
    checkStream(family, true, without.bytes.toString(), family);
    assert.equal(essence(read(family, without.bytes, true).reply)[0]?.text, '');
  }
});

test('citations that were sent before a change of their block come once, those of the rest follow', async () => {
  const block = { type: 'content_block_delta', index: 0 };
  const said = (text: string) => ({ ...block, delta: { type: 'text_delta', text } });
  const cited = (quote: string) => {
    const place = { document_index: 0, document_title: 'd', start_char_index: 0, end_char_index: 5 };
    const citation = { type: 'char_location', cited_text: quote, ...place };
    return { ...block, delta: { type: 'citations_delta', citation } };
  };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null };
  const usage = { input_tokens: 3, output_tokens: 1 };
  const events = [
    { type: 'message_start', message: { ...message, stop_sequence: null, usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: [] } },
    ...[said('one'), cited('first'), said('two'), cited('second'), cited('second'), said('three'), said('four')],
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];
  const body = Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
  for (const changed of ['one', 'two', 'three', 'four']) {
    const transform: AnswerTransform = {
      event: (event) =>
        event.type === 'text-delta' && event.text === changed ? [{ ...event, text: 'changed' }] : [event],
    };
    const { bytes } = await relayed('messages', true, body, transform);
    const quotes = [...bytes.toString().matchAll(/"cited_text":"(\w+)"/g)].map(([, quote]) => quote);
    assert.deepEqual(quotes.sort(), ['first', 'second', 'second'], changed);
    checkStream('messages', true, bytes.toString(), 'messages');
  }
});

test('events in an order that no encoder can write end the answer by an internal error', async () => {
  const { response } = await withText('messages', true);
  const wrong: AnswerTransform = { event: (event) => (event.type === 'text-start' ? [] : [event]) };
  const result = await relayed('messages', true, response, wrong).catch((error: Error) => error);
  assert.match(result instanceof Error ? result.message : result.bytes.toString(), /could not be processed/);
});

test('frames that a transform holds do not pile up: the answer is encoded again from there on', async () => {
  const { response } = await withText('chat', true);
  const delta = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'y'.repeat(60_000) } }] })}\n\n`;
  const long = Buffer.concat([Buffer.from(delta.repeat(30)), response]);
  const { bytes } = await relayed('chat', true, long, holding());
  const [answer] = essence(read('chat', bytes, true).reply);
  assert.ok(answer!.text.startsWith('y'.repeat(1_800_000)));
});
