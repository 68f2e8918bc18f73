/** Answers of chat in the form that a client asks for: whole or as a stream, by the codec of its protocol. Pure. */
import type { Exchange } from '../../core/contract/contract.ts';
import { isObject, objectOf, tryParseBytes } from '../../core/json/json.ts';
import type { ReplyContext } from '../common/canonical/codec.ts';
import { Collector } from '../common/canonical/collect.ts';
import { ReplyEvents } from '../common/canonical/events.ts';
import type { Reply, Sink } from '../common/canonical/reply.ts';
import type { Usage } from '../common/domain/usage.ts';
import { FrameReader } from '../common/kit/sse.ts';
import { hasErrorIn } from '../common/kit/upstream-errors.ts';
import { readFrame } from '../common/wire/frame.ts';
import type { Opened } from '../common/wire/protocols.ts';
import type { Entry } from './entry.ts';

/** What of a request says how its answer is sent. Requests with the same one get the same bytes. */
export function formOf({ request }: Pick<Exchange, 'request'>, opened: Opened | undefined): string {
  if (opened === undefined) return '';
  const { call, json } = opened;
  if (!call.stream) return 'whole';
  const options = objectOf(json['stream_options']);
  return JSON.stringify([
    'stream',
    options?.['include_usage'] === true,
    options?.['include_obfuscation'] ?? null,
    request.query.get('alt'),
  ]);
}

/** Whether its answers can be made into another form: those of a dialect are read by its clients alone. */
export function hasForms(opened: Opened | undefined): opened is Opened {
  return opened !== undefined && opened.reshape === undefined && opened.decodeWith === undefined;
}

/**
 * Whether it is a whole answer that is worth giving again: each choice has ended, not by a refusal or a pause, and no call is cut
 * off. Without an opened request: no error, and nothing that a vendor has refused.
 */
export function isWorthKeeping(entry: Entry, opened: Opened | undefined): boolean {
  if (opened === undefined) return isWholeBody(entry);
  if (!hasForms(opened)) return !namesError(entry);
  try {
    const { choices } = replyOf(entry, opened);
    return choices.every(
      ({ stop, cutCalls, parts }) =>
        stop !== 'refusal' && stop !== 'pause' && cutCalls.size === 0 && parts.every(({ kind }) => kind !== 'refusal'),
    );
  } catch {
    return false;
  }
}

/** The answer is in a dialect, which its clients alone can read. */
function namesError({ body, isStream }: Entry): boolean {
  const read = isStream ? framesIn(body).map(({ json }) => json) : [tryParseBytes(body)];
  return read.some((json) => isObject(json) && hasErrorIn(json));
}

const refusedPart = /"type"\s*:\s*"refusal"/;

function isWholeBody({ headers, body, isStream }: Entry): boolean {
  if (isStream || headers['content-type']?.startsWith('application/json') !== true) return body.length > 0;
  const json = tryParseBytes(body);
  return isObject(json) && !hasErrorIn(json) && !refusedPart.test(Buffer.from(body).toString('latin1'));
}

/** The answer in the form of this request; undefined: it cannot be made. */
export function inFormOf(
  exchange: Pick<Exchange, 'id' | 'request' | 'receivedAt'>,
  opened: Opened,
  entry: Entry,
  now: () => number,
): { readonly body: Uint8Array; readonly contentType: string } | undefined {
  const { codec } = opened.protocol;
  const context = contextOf(exchange, opened, entry.usage, now);
  try {
    if (!opened.call.stream) {
      const json = codec.encodeReply(replyOf(entry, opened), context);
      return { body: Buffer.from(JSON.stringify(json)), contentType: 'application/json' };
    }
    const encoder = codec.createEncoder(context);
    const frames: string[] = [];
    read(entry, opened, (event) => frames.push(encoder.event(event)));
    frames.push(encoder.finish());
    return { body: Buffer.from(frames.join('')), contentType: 'text/event-stream' };
  } catch {
    return undefined;
  }
}

function replyOf(entry: Entry, opened: Opened): Reply {
  const collector = new Collector();
  let stops = 0;
  read(entry, opened, (event) => {
    if (event.type === 'stop') stops += 1;
    collector.event(event);
  });
  if (stops === 0) throw new Error('the answer has not ended');
  return collector.reply();
}

/** Throws for what is no answer. */
function read({ body, isStream, key }: Entry, { protocol: { codec } }: Opened, sink: Sink): void {
  const { audioAsText, mediaAsText } = codec;
  const events = new ReplyEvents(sink, { names: new Map(), idSeed: key.slice(0, 12), audioAsText, mediaAsText });
  if (isStream) {
    const decoder = codec.createDecoder(events);
    for (const { json, event } of framesIn(body)) {
      if (hasErrorIn(json)) throw new Error('the answer has an error in it');
      decoder.payload(json, event);
    }
    decoder.end();
  } else {
    const json = tryParseBytes(body);
    if (!isObject(json) || hasErrorIn(json)) throw new Error('the answer is none');
    codec.decodeReply(json, events);
  }
  if (events.failure !== undefined || !(events.hasContent || events.hasStopped)) throw new Error('the answer is empty');
}

function framesIn(body: Uint8Array) {
  const raw: Buffer[] = [];
  const reader = new FrameReader((frame) => raw.push(frame));
  reader.feed(body);
  const rest = reader.end();
  if (rest !== undefined) raw.push(rest);
  return raw.flatMap((frame) => readFrame(frame) ?? []);
}

function contextOf(
  { id, request, receivedAt }: Pick<Exchange, 'id' | 'request' | 'receivedAt'>,
  { call, protocol: { codec }, clientJson, json }: Opened,
  usage: Usage,
  now: () => number,
): ReplyContext {
  return {
    exchangeId: id,
    call,
    // The client gets what it would have got from its vendor.
    continues: true,
    request: { ...(clientJson ?? json), [codec.conversation]: undefined },
    query: request.query,
    createdAt: Math.floor(receivedAt / 1000),
    now: () => Math.floor(now() / 1000),
    seal(state) {
      // Such state was made for the form that it came in.
      if (codec.createContinuation === undefined) throw new Error('a sealed text cannot be sent in another form');
      return state;
    },
    usage: () => ({ usage, estimated: false }),
  };
}
