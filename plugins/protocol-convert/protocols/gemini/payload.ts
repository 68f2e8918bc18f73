/** The JSON of one stream frame, whether it came as SSE or as an element of an array. Pure. */
import { parseFrame } from '../../../../core/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';

/** The text of the frame's JSON; undefined when it carries none. */
export function payloadText(raw: Buffer): string | undefined {
  const event = parseFrame(raw);
  if (event !== undefined) return event.data;
  const text = raw.toString('utf8').trim();
  return text.startsWith('{') ? text : undefined;
}

export function payloadOf(raw: Buffer): JsonObject | undefined {
  const text = payloadText(raw);
  const payload = text === undefined ? undefined : tryParse(text);
  return isObject(payload) ? payload : undefined;
}
