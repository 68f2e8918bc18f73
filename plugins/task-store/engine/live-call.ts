/** Requests an image as a stream: relays previews as they come, and reads the end like any answer. */

import type { Clock } from '../../../core/contract/host-tools.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { type JsonObject, objectOf, tryParse, tryParseBytes } from '../../../core/json/json.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { FrameReader, parseFrame } from '../../common/kit/sse.ts';
import { classifyFrame } from '../../common/kit/upstream-errors.ts';
import type { MediaAdapter, Order, Step, Streaming } from '../../common/media/adapters.ts';
import type { Tools } from './dependencies.ts';
import type { Live } from './live.ts';
import { type OpenAnswer, readBody, type VendorTime } from './vendor.ts';

export interface LiveCallInput {
  readonly adapter: MediaAdapter & { readonly streams: Streaming };
  readonly order: Order;
  readonly target: Target;
  readonly time: VendorTime;
}

/** Throws like `callAll`. After the first preview, a broken stream may still have produced and charged an image. */
export async function callLive(
  { vendors, clock }: Tools,
  input: LiveCallInput,
  live: Live,
): Promise<{ readonly step: Step; readonly status: number }> {
  const { adapter, order, target, time } = input;
  const answer = await vendors.open(adapter.streams.create(order, target), target, time);
  const { status, headers } = answer;
  try {
    if (status >= 300 || !/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) {
      const whole = { status, headers, atMs: clock.now(), json: tryParseBytes(await readBody(answer.body)) };
      return { step: adapter.readCreated(whole, order), status };
    }
    return { step: await relay(answer, input, live, clock), status };
  } finally {
    answer.close();
  }
}

/** Sends the frames on until one ends the step. */
async function relay(
  answer: OpenAnswer,
  { adapter, order, target }: LiveCallInput,
  live: Live,
  clock: Clock,
): Promise<Step> {
  // Comments alone do not start the answer.
  const early: Buffer[] = [];
  for await (const { raw, json, event } of framesOf(answer)) {
    if (json === undefined && !live.begun) {
      early.push(raw);
      continue;
    }
    const word = json === undefined ? undefined : adapter.streams.read(json, event, order);
    if (word === 'error') throw errorOf(json!, live, clock.now(), target);
    if (word === undefined || word === 'preview') {
      await live.push(Buffer.concat([...early.splice(0), raw]));
      continue;
    }
    if (word.state === 'done') live.last = Buffer.concat([...early, raw]);
    return word;
  }
  throw new UpstreamError('body', 'the stream ended without its last event');
}

/** Before the first preview, an error event of the vendor means that nothing started. */
function errorOf(json: JsonObject, live: Live, now: number, { key }: Target): Error {
  if (live.begun) return new UpstreamError('body', 'the stream reported an error');
  return classifyFrame(json, now, key.reveal());
}

interface Frame {
  readonly raw: Buffer;
  readonly event: string | undefined;
  /** undefined: a comment, or data that is no JSON object. */
  readonly json: JsonObject | undefined;
}

async function* framesOf({ body }: OpenAnswer): AsyncGenerator<Frame, void> {
  const found: Buffer[] = [];
  const reader = new FrameReader((raw) => void found.push(raw));
  for await (const chunk of body) {
    reader.feed(chunk);
    for (const raw of found.splice(0)) yield frameOf(raw);
  }
  const rest = reader.end();
  // Some vendors omit the last blank line; half a frame has no JSON.
  if (rest !== undefined && frameOf(rest).json !== undefined) yield frameOf(Buffer.concat([rest, Buffer.from('\n\n')]));
}

function frameOf(raw: Buffer): Frame {
  const read = parseFrame(raw);
  return { raw, event: read?.event, json: read === undefined ? undefined : objectOf(tryParse(read.data)) };
}
