/** Every recorded answer, decoded, encoded in its own protocol and decoded again; other protocols and official clients: tests/translate/cross.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonObject, tryParse } from '../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Part } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import { FrameReader, parseFrame } from '../../../../plugins/common/kit/sse.ts';
import { protocols } from '../../../../plugins/protocol-convert/protocols/index.ts';
import { type Family, type Recording, recordings } from '../../../helpers/recordings.ts';
import { errorsIn200 } from '../../../helpers/relay-rules.ts';
import { collected } from '../canonical/collect-events.ts';

const context: ReplyContext = {
  exchangeId: 'exchange',
  call: { model: 'asked', stream: true } as Call,
  request: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
  query: new URLSearchParams('alt=sse'),
  createdAt: 1_800_000_000,
  now: () => 1_800_000_009,
  seal: (value) => `gw1.${Buffer.from(value).toString('base64url')}`,
  usage: () => ({ usage: { input: 3, output: 4 }, estimated: false }),
};

for (const { name: family, codec } of protocols) {
  function eventsOf(report: (events: ReplyEvents) => void): Event[] {
    const sent: Event[] = [];
    const events = new ReplyEvents((event) => sent.push(event), { names: new Map(), idSeed: 'seed' });
    report(events);
    return events.failure === undefined ? sent : [];
  }
  const whole = (json: JsonObject) => eventsOf((events) => codec.decodeReply(json, events));
  const streamed = (body: Buffer) =>
    eventsOf((events) => {
      const decoder = codec.createDecoder(events);
      for (const [json, event] of payloadsOf(body)) decoder.payload(json, event);
      decoder.end();
    });

  for (const { name, isStream, response } of recordings(family as Family).filter(isAnswer))
    test(`${family} ${name} says the same after it was decoded and encoded again, whole and streamed`, () => {
      const events = isStream ? streamed(response) : whole(JSON.parse(response.toString()));
      if (events.length === 0) return assert.match(name, /unexpected-tool-call|finish-other/);
      const encoder = codec.createEncoder(context);
      const stream = events.map((event) => encoder.event(event)).join('') + encoder.finish();
      const again = streamed(Buffer.from(stream));
      // Chat streams have sounds without their kind.
      const of = family === 'chat' ? withoutMedia : saidIn;
      assert.deepEqual(of(again), of(events), 'streamed');
      assert.deepEqual(saidIn(whole(codec.encodeReply(collected(events), context))), saidIn(events), 'whole');
      return undefined;
    });
}

function isAnswer({ status, path, name }: Recording): boolean {
  return status === 200 && !/countTokens|count_tokens|:embed/.test(path) && !errorsIn200.has(name);
}

function payloadsOf(body: Buffer): [JsonObject, string | undefined][] {
  if (/^\s*\[/.test(body.toString()))
    return (JSON.parse(body.toString()) as JsonObject[]).map((json) => [json, undefined]);
  const payloads: [JsonObject, string | undefined][] = [];
  const take = (raw: Buffer) => {
    const { data = '', event } = parseFrame(raw) ?? {};
    const json = data.startsWith('{') ? JSON.parse(data) : undefined;
    if (isObject(json)) payloads.push([json, event]);
  };
  const reader = new FrameReader(take);
  reader.feed(body);
  const rest = reader.end();
  if (rest !== undefined) take(rest);
  return payloads;
}

/** What an answer says, by choices: refusals and code that the vendor ran may be text. */
function saidIn(events: readonly Event[]) {
  return collected(events).choices.map(({ parts, stop }) => ({
    stop,
    text: parts.map((part) => (part.kind === 'text' || part.kind === 'refusal' ? part.text : '')).join(''),
    reasoning: parts.map((part) => (part.kind === 'reasoning' ? part.text : '')).join(''),
    calls: parts.flatMap((part) =>
      part.kind === 'tool-call' ? [[part.name, tryParse(part.input) ?? part.input]] : [],
    ),
    cited: parts.flatMap((part) => (part.kind === 'text' ? (part.citations ?? []).map(({ url }) => url) : [])),
    media: parts.flatMap((part) => ('source' in part ? [sourceOf(part)] : [])),
  }));
}

function withoutMedia(events: readonly Event[]): unknown {
  return saidIn(events).map(({ media: _media, ...rest }) => rest);
}

function sourceOf({ kind, source }: Extract<Part, { source: unknown }>): unknown {
  return [kind, source];
}
