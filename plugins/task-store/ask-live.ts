/** Asks a vendor for an image as a stream: previews go on as they come, the end is what any answer's is. */
import { UpstreamError } from '../../core/errors.ts';
import { type JsonObject, objectOf, tryParse, tryParseBytes } from '../../core/json.ts';
import { classifyFrame } from '../../core/refusals.ts';
import { FrameReader, parseFrame } from '../../core/sse.ts';
import type { Target } from '../../core/vocabulary.ts';
import type { Adapter, Order, Step, Streaming } from './contract.ts';
import type { Live } from './live.ts';
import type { Tools } from './tools.ts';
import { type OpenAnswer, readBody, type VendorTime } from './vendor.ts';

export interface Asked {
  readonly adapter: Adapter & { readonly streams: Streaming };
  readonly order: Order;
  readonly target: Target;
  readonly time: VendorTime;
}

/** Throws as `askAll`. What broke behind the first preview may be made, and charged, all the same. */
export async function askLive(
  { vendors, clock }: Tools,
  { adapter, order, target, time }: Asked,
  live: Live,
): Promise<{ readonly step: Step; readonly status: number }> {
  const answer = await vendors.open(adapter.streams.create(order, target), target, time);
  const { status, headers } = answer;
  // Comments alone are no beginning.
  const early: Buffer[] = [];
  try {
    if (status >= 300 || !/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) {
      const whole = { status, headers, atMs: clock.now(), json: tryParseBytes(await readBody(answer.body)) };
      return { step: adapter.readCreated(whole, order), status };
    }
    for await (const { raw, json, event } of framesOf(answer)) {
      const word = json === undefined ? undefined : adapter.streams.read(json, event, order);
      if (json === undefined && !live.begun) early.push(raw);
      else if (word === undefined || word === 'preview') await live.push(Buffer.concat([...early.splice(0), raw]));
      else if (word === 'error') throw errorOf(json!, live, clock.now(), target);
      else {
        if (word.state === 'done') live.last = Buffer.concat([...early, raw]);
        return { step: word, status };
      }
    }
    throw new UpstreamError('body', 'the stream ended without its end');
  } finally {
    answer.close();
  }
}

/** Before anything came, the vendor itself says that nothing was begun. */
function errorOf(json: JsonObject, live: Live, now: number, { key }: Target): Error {
  if (live.begun) return new UpstreamError('body', 'the stream told of an error');
  return classifyFrame(json, now, key.reveal());
}

interface Frame {
  readonly raw: Buffer;
  readonly event: string | undefined;
  /** undefined: a comment, or words of no interest. */
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
  // Some vendors forget the last blank line; half a frame has no JSON.
  if (rest !== undefined && frameOf(rest).json !== undefined) yield frameOf(Buffer.concat([rest, Buffer.from('\n\n')]));
}

function frameOf(raw: Buffer): Frame {
  const read = parseFrame(raw);
  return { raw, event: read?.event, json: read === undefined ? undefined : objectOf(tryParse(read.data)) };
}
