/** Upstream streams of each protocol: any bytes are read by tap and codec, and reported to a client of any protocol. */

import assert from 'node:assert/strict';
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { ReplyContext } from '../../../plugins/common/canonical/codec.ts';
import { ReplyEvents } from '../../../plugins/common/canonical/events.ts';
import type { Call } from '../../../plugins/common/domain/calls.ts';
import { maxCount, usageClasses } from '../../../plugins/common/domain/usage.ts';
import { FrameReader, parseFrame } from '../../../plugins/common/kit/sse.ts';
import { readFrame } from '../../../plugins/common/wire/frame.ts';
import { unknownSize } from '../../../plugins/common/wire/possible-usage.ts';
import type { Protocol, StreamReader } from '../../../plugins/common/wire/protocols.ts';
import type { UsageMeter } from '../../../plugins/common/wire/usage-meter.ts';
import { LiveReport } from '../../../plugins/protocol-convert/metering/report.ts';
import { protocols } from '../../../plugins/protocol-convert/protocols/index.ts';
import { EventRules } from '../../helpers/event-rules.ts';
import type { Family } from '../../helpers/recordings.ts';
import { cut, type Target } from '../target.ts';
import { jsonDictionary } from './body.ts';
import { streamBodies } from './sse.ts';

const requests: Readonly<Record<string, object>> = {
  chat: {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
  },
  responses: { model: 'm', input: 'hi', stream: true, store: false },
  messages: { model: 'm', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }], stream: true },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

/** One target for each protocol of upstreams. */
export const streams: readonly Target[] = protocols.map((upstream) => {
  const corpus = streamBodies(upstream.name as Family);
  return {
    name: `stream-${upstream.name}`,
    corpus,
    dictionary: [
      ...jsonDictionary,
      ...wordsOf(corpus),
      '\n\n',
      '\r\n\r\n',
      'data: [DONE]\n\n',
      'data: {}\n\n',
      'event: error\n',
    ],
    check(bytes, chance) {
      const client = chance.pick(protocols);
      const whole = play(upstream, client, [bytes]);
      const pieces = cut(bytes, chance);
      // Frames that are the same are reported in the same way, which need not be seen each time.
      assert.ok(areSameFrames(upstream, [bytes], pieces), 'the frames depend on how the bytes were cut');
      if (chance.oneIn(4))
        assert.deepEqual(play(upstream, client, pieces), whole, 'the answer depends on how the bytes were cut');
      checkFrames(whole.out);
    },
  };
});

/** Names and types of the protocol's own events, most frequent first. */
function wordsOf(corpus: readonly Buffer[]): string[] {
  const counts = new Map<string, number>();
  for (const stream of corpus)
    for (const [word] of stream
      .toString('latin1')
      .matchAll(/"[a-zA-Z_.]{2,40}"(?::(?:"[a-zA-Z_.]{2,40}"|\d+|null|true|false))?/g))
      counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .sort((one, other) => other[1] - one[1])
    .slice(0, 300)
    .map(([word]) => word);
}

function areSameFrames(upstream: Protocol, one: readonly Buffer[], other: readonly Buffer[]): boolean {
  const [frames, others] = [framesOf(upstream, one), framesOf(upstream, other)];
  return frames.length === others.length && frames.every((frame, index) => frame.equals(others[index]!));
}

/** The frames, and what is left at the end or the words of a refusal. */
function framesOf(upstream: Protocol, chunks: readonly Buffer[]): Buffer[] {
  const frames: Buffer[] = [];
  try {
    const reader = readerFor(upstream, chunks, (raw) => frames.push(Buffer.from(raw)));
    for (const chunk of chunks) reader.feed(chunk);
    frames.push(Buffer.from(reader.end() ?? ''));
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    frames.push(Buffer.from(error.message));
  }
  return frames;
}

interface Played {
  readonly out: string;
  readonly verdicts: readonly string[];
  readonly usage: unknown;
  readonly ended: string;
}

/** As the relay does it: each frame goes to the tap, then to the decoder; its events go to the client's encoder. */
function play(upstream: Protocol, client: Protocol, chunks: readonly Buffer[]): Played {
  const call = callOf(upstream.name);
  const tap = upstream.createUsageMeter(call, { withholdUsage: false });
  const report = new LiveReport(tap, call, unknownSize);
  const encoder = client.codec.createEncoder(contextFor(client, report));
  const rules = new EventRules();
  const verdicts: string[] = [];
  let out = '';
  const events = new ReplyEvents(
    (event) => {
      rules.see(event);
      out += encoder.event(event);
    },
    { names: new Map(), idSeed: 'fuzz' },
  );
  const decoder = upstream.codec.createDecoder(events);
  let ended = false;
  const onFrame = (raw: Buffer) => {
    if (ended) return;
    const read = readFrame(raw);
    const verdict = read === undefined ? tap.frame(raw) : tap.payload(read.json, read.event);
    verdicts.push(verdict);
    if (read !== undefined && tap.error === undefined) decoder.payload(read.json, read.event);
    ended = verdict === 'last' || verdict === 'failed' || verdict === 'error' || verdict === 'overdue';
    checkUsage(tap, report);
  };
  let how = 'finished';
  try {
    const reader = readerFor(upstream, chunks, onFrame);
    for (const chunk of chunks) reader.feed(chunk);
    const rest = reader.end();
    if (rest !== undefined) onFrame(rest);
    if (!tap.complete || tap.error !== undefined) throw new UpstreamError('body', 'the stream ended without its end');
    decoder.end();
    // As a translation does it: what came before is of no use alone, and is ended by the error.
    if (events.failure !== undefined) throw new UpstreamError('body', events.failure);
    out += encoder.finish();
    rules.end();
  } catch (error) {
    const isReported =
      error instanceof GatewayError || error instanceof UpstreamError || error instanceof UpstreamRefusal;
    if (!isReported) throw error;
    how = error.message;
    out += encoder.fail(new GatewayError('upstream_failed', 'The upstream failed.'));
  }
  checkUsage(tap, report);
  return { out, verdicts, usage: report.usage, ended: how };
}

/** By the first byte that is no space, as the relay chooses. */
function readerFor({ framing }: Protocol, chunks: readonly Buffer[], onFrame: (raw: Buffer) => void): StreamReader {
  const first = Buffer.concat(chunks).subarray(0, 64).toString('latin1').trimStart()[0];
  return first !== undefined && framing?.begins(first) ? framing.createReader(onFrame) : new FrameReader(onFrame);
}

function callOf(protocol: string): Call {
  return {
    ...{ protocol, model: 'm', stream: true, billable: true },
    ...{ inputTokens: 10, maxOutputTokens: undefined, choices: 1 },
  } as Call;
}

function contextFor(client: Protocol, report: LiveReport): ReplyContext {
  return {
    exchangeId: '01890000-0000-7000-8000-000000000001',
    call: callOf(client.name),
    request: requests[client.name] as ReplyContext['request'],
    query: new URLSearchParams('alt=sse'),
    createdAt: 1_700_000_000,
    now: () => 1_700_000_000,
    seal: (opaqueState) => `gw1.maker.${Buffer.from(opaqueState).toString('base64url')}`,
    usage: () => ({ usage: report.usage, estimated: report.estimated }),
  };
}

/** Counts are whole, believable and never negative: money is made of them. */
function checkUsage(tap: UsageMeter, report: LiveReport): void {
  for (const usage of [tap.reading.usage, report.usage])
    for (const name in usage) {
      const count = usage[name as keyof typeof usage]!;
      if (!classes.has(name)) assert.fail(`the class ${name}`);
      if (!Number.isSafeInteger(count) || count < 0 || count > 2 * maxCount) assert.fail(`${name} is ${count}`);
    }
  const { answeredTokens } = report;
  if (!Number.isSafeInteger(answeredTokens) || answeredTokens < 0) assert.fail(`${answeredTokens} answered`);
}

const classes: ReadonlySet<string> = new Set(usageClasses);

/** What a client gets are whole frames of JSON. */
function checkFrames(out: string): void {
  if (out === '') return;
  assert.ok(out.endsWith('\n\n'), 'the last frame does not end');
  new FrameReader((raw) => {
    const data = parseFrame(raw)?.data;
    if (data !== undefined && data !== '[DONE]') JSON.parse(data);
  }).feed(Buffer.from(out));
}
