/** Parsing of one frame of an upstream's stream. Pure. */

import { isObject, type JsonObject, tryParse } from '../../../core/json/json.ts';
import { parseFrame } from '../kit/sse.ts';

/** A parsed frame. */
export interface ReadFrame {
  readonly json: JsonObject;
  /** Its SSE event name, if any. */
  readonly event: string | undefined;
  /** Set where the frame is the one before, but for one text of the model: by how many bytes of UTF-8 that text is longer. */
  readonly growth?: number;
  /** Set with `growth`, and the same object for all frames that are alike. */
  readonly repeated?: RepeatedFrame;
}

/** A frame of which one text alone changes. */
export interface RepeatedFrame extends Pick<ReadFrame, 'json' | 'event'> {
  /** That of the frame that was read last. */
  readonly text: string;
  /** Writes another text into `json`. */
  say(text: string): void;
}

/** undefined: it holds no JSON object. */
export function readFrame(raw: Buffer): ReadFrame | undefined {
  const frame = parseFrame(raw);
  // Elements of a streamed JSON array come without a frame around them.
  const json = tryParse(frame === undefined ? raw.toString('utf8') : frame.data);
  return isObject(json) ? { json, event: frame?.event } : undefined;
}

/** Comments and blank lines, also several in one frame. */
export function isComment(raw: Buffer): boolean {
  const first = raw[0];
  return (first === 0x3a || first === 0x0a || first === 0x0d) && parseFrame(raw) === undefined;
}

/** Whether the last bytes of a stream, which lack the blank line, are a complete frame. `data` is its content. */
export function isWholeFrame(rest: Buffer, data: string | undefined): boolean {
  if (data === undefined) return /^\s*(?::|$)/.test(rest.toString('latin1'));
  return data === '[DONE]' || tryParse(data) !== undefined;
}

/** The frames with a JSON object in a text of whole frames. */
export function framesOf(text: string): ReadFrame[] {
  return text.split('\n\n').flatMap((frame) => (frame === '' ? [] : (readFrame(Buffer.from(frame)) ?? [])));
}
