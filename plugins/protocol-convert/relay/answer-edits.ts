/** Changes of single members in relayed answers; every other byte is the vendor's. Pure. */
import { asBuffer, isObject, type JsonObject } from '../../../core/json/json.ts';
import { applyEdits, findPlace } from '../../../core/json/splice.ts';
import type { AnsweringProtocol } from '../../common/wire/protocols.ts';
import { jsonOfRepeated, withRepeated } from '../transforms/repeated-texts.ts';

const quote = 0x22;
const brace = 0x7b;

/** One change, applied to bytes with JSON from `from` on, or to parsed JSON. Bytes that have no place for it are returned as they are. */
export interface AnswerEdit {
  /** Throws for JSON that is not in one piece. */
  bytes(bytes: Buffer, from: number): Buffer;
  json(json: JsonObject): JsonObject;
}

/** The name by which the client asked for the model. */
export function requestedModel({ modelPlaces = [] }: AnsweringProtocol, name: string): AnswerEdit {
  return {
    bytes(bytes, from) {
      for (const path of modelPlaces) {
        // The name alone is found many times faster than its place.
        if (!bytes.includes(`"${path.at(-1)}"`, from)) continue;
        const place = findPlace(bytes.subarray(from), path);
        if (place === undefined || bytes[from + place.valueStart] !== quote) continue;
        return replaced(bytes, from + place.valueStart, from + place.end, JSON.stringify(name));
      }
      return bytes;
    },
    json: (json) => modelPlaces.reduce((changed, path) => renamed(changed, path, name), json),
  };
}

/** The conversation that the gateway keeps, and that the vendor knows nothing of. */
export function inConversation(id: string): AnswerEdit {
  const member = `"conversation":${JSON.stringify({ id })}`;
  const within = (bytes: Buffer, from: number, path: readonly string[]): Buffer => {
    const json = bytes.subarray(from);
    const old = findPlace(json, [...path, 'conversation']);
    if (old !== undefined) return replaced(bytes, from + old.valueStart, from + old.end, JSON.stringify({ id }));
    const start = path.length === 0 ? 0 : findPlace(json, path)!.valueStart;
    const first = json
      .subarray(start + 1)
      .toString('latin1', 0, 64)
      .trimStart();
    const at = from + start + 1;
    return replaced(bytes, at, at, first.startsWith('}') ? member : `${member},`);
  };
  return {
    bytes(bytes, from) {
      if (!bytes.includes('"response"', from)) return bytes;
      const json = bytes.subarray(from);
      const response = findPlace(json, ['response']);
      if (response !== undefined)
        return json[response.valueStart] === brace ? within(bytes, from, ['response']) : bytes;
      return isResponse(json) ? within(bytes, from, []) : bytes;
    },
    json(json) {
      const { response } = json;
      if (isObject(response)) return { ...json, response: { ...response, conversation: { id } } };
      return json['object'] === 'response' ? { ...json, conversation: { id } } : json;
    },
  };
}

/** Texts of the request that the vendor repeats in its answer's object, written by `by`. */
export function repeatedTexts({ repeats = [] }: AnsweringProtocol, by: (text: string) => string): AnswerEdit {
  return {
    bytes(bytes, from) {
      if (!bytes.includes('"response"', from)) return bytes;
      const text = bytes.toString('utf8', from);
      if (by(text) === text) return bytes;
      const within = findPlace(bytes.subarray(from), ['response']) === undefined ? [] : ['response'];
      if (within.length === 0 && !isResponse(bytes.subarray(from))) return bytes;
      return repeats.reduce((edited, name) => {
        const place = findPlace(edited.subarray(from), [...within, name]);
        if (place === undefined) return edited;
        const [start, end] = [from + place.valueStart, from + place.end];
        const before: unknown = JSON.parse(edited.toString('utf8', start, end));
        const after = jsonOfRepeated(before, by);
        return after === JSON.stringify(before) ? edited : replaced(edited, start, end, after);
      }, bytes);
    },
    json(json) {
      const within = isObject(json['response']) ? json['response'] : json;
      if (within === json && json['object'] !== 'response') return json;
      const edited = withRepeated(within, repeats, by);
      return within === json ? edited : { ...json, response: edited };
    },
  };
}

function isResponse(json: Buffer): boolean {
  const place = findPlace(json, ['object']);
  return place !== undefined && json.toString('latin1', place.valueStart, place.end) === '"response"';
}

function replaced(bytes: Buffer, start: number, end: number, text: string): Buffer {
  return asBuffer(applyEdits(bytes, [{ start, end, text }]));
}

function renamed(json: JsonObject, [name, ...rest]: readonly string[], text: string): JsonObject {
  const value = json[name!];
  if (rest.length === 0) return typeof value === 'string' ? { ...json, [name!]: text } : json;
  return isObject(value) ? { ...json, [name!]: renamed(value, rest, text) } : json;
}
