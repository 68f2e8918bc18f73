/** Extracts the JSON of one stream frame, from SSE or from an element of an array. Pure. */
import { isObject, type JsonObject, tryParse } from '../../../../../core/json/json.ts';
import { parseFrame } from '../../../../common/kit/sse.ts';

/** The text of the frame's JSON; undefined if it has none. */
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
