/** Files that a conversation named in an earlier turn, or in a tool's result: the conversation can go on where they are not kept. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import { unshownText } from '../../common/encoding/readable-media.ts';
import { kindOfMedia } from '../../common/kit/media-types.ts';
import type { VendorId } from '../../common/wire/protocols.ts';
import { vendorIdsIn } from './vendor-ids.ts';

/** `conversation`: the member with the turns. Of these ids, those outside of the last turn in which the user says something. */
export function earlierIds(json: JsonObject, conversation: string, ids: readonly VendorId[]): ReadonlySet<VendorId> {
  const turns = listOf(json[conversation]);
  const last = turns.findLastIndex(isSaid);
  return new Set(ids.filter(({ field }) => isEarlier(turns, conversation, stepsOf(field), last)));
}

function isEarlier(turns: readonly unknown[], conversation: string, steps: readonly Step[], last: number): boolean {
  const [member, index, ...inner] = steps;
  if (member !== conversation || typeof index !== 'number') return false;
  return index < last || isOfModel(turns[index]) || isResult(turns[index], inner);
}

function isOfModel(turn: unknown): boolean {
  return isObject(turn) && (turn['role'] === 'assistant' || turn['role'] === 'model');
}

function isSaid(turn: unknown): boolean {
  if (!isObject(turn)) return false;
  const { role, type } = turn;
  if (role !== 'user' && !(role === undefined && 'parts' in turn)) return type === 'input_text' || isBarePart(turn);
  const content = turn['content'] ?? turn['parts'];
  if (typeof content === 'string') return content !== '';
  return listOf(content).some((part) => isObject(part) && !isResultPart(part));
}

/** Content without a message around it. */
function isBarePart({ role, type }: JsonObject): boolean {
  return role === undefined && (type === 'input_image' || type === 'input_file' || type === 'input_audio');
}

function isResultPart(part: JsonObject): boolean {
  return part['type'] === 'tool_result' || 'functionResponse' in part || 'function_response' in part;
}

/** Whether the path leads through what a tool has returned. */
function isResult(turn: unknown, inner: readonly Step[]): boolean {
  let value = turn;
  for (const step of [undefined, ...inner]) {
    if (step !== undefined) value = memberOf(value, step);
    if (!isObject(value)) continue;
    if (isResultPart(value) || value['role'] === 'tool' || (textOf(value['type']) ?? '').endsWith('_output'))
      return true;
  }
  return false;
}

type Step = string | number;

function stepsOf(field: string): Step[] {
  return [...field.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([name, index]) =>
    index === undefined ? name : Number(index),
  );
}

function memberOf(value: unknown, step: Step): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<Step, unknown>)[step] : undefined;
}

/** Lists of which an element can be a text. */
const partLists = new Set<Step | undefined>(['content', 'parts', 'output']);

/** The same request with texts where it names these ids, and the ids' fields. */
export function withoutIds(
  json: JsonObject,
  isLeftOut: (id: string) => boolean,
): { json: JsonObject; fields: string[] } {
  const found = vendorIdsIn(json).filter(({ id, isEcho }) => !isEcho && isLeftOut(id));
  const copy = structuredClone(json);
  const fields: string[] = [];
  // From the end, as a part may be taken out of its list.
  for (const { kind, field } of found.toReversed()) if (replace(copy, stepsOf(field), kind)) fields.unshift(field);
  return { json: copy, fields };
}

function wordOf(kind: string, part: JsonObject): string {
  if (kind === 'Image' || textOf(part['type'])?.includes('image') === true) return unshownText('image');
  if (kind === 'Audio') return unshownText('audio');
  const data = objectOf(part['fileData']) ?? objectOf(part['file_data']);
  const mediaType = textOf(data?.['mimeType']) ?? textOf(data?.['mime_type']);
  return unshownText(mediaType === undefined ? 'document' : kindOfMedia(mediaType));
}

/** false: the path is not there any more, as something around it was replaced before. */
function replace(json: JsonObject, steps: readonly Step[], kind: string): boolean {
  const values: unknown[] = [json];
  for (const step of steps) values.push(memberOf(values.at(-1), step));
  if (values.at(-1) === undefined) return false;
  for (let at = steps.length - 1; at > 0; at--) {
    const [list, name, part] = [values[at], steps[at - 1], values[at + 1]];
    if (!Array.isArray(list) || !isObject(part)) continue;
    const text = wordOf(kind, part);
    const index = steps[at] as number;
    const around = values[at - 1];
    // The parts of a function's result are media alone.
    if (isObject(around) && 'response' in around) {
      list.splice(index, 1);
      (around as Record<string, unknown>)['response'] = { ...objectOf(around['response']), media: text };
    } else list[index] = partLists.has(name) ? partFor(part, text) : turnFor(part, text);
    return true;
  }
  return false;
}

function partFor({ type, cache_control: mark }: JsonObject, text: string): JsonObject {
  if (type === undefined) return { text };
  const marked = mark === undefined ? {} : { cache_control: mark };
  return { type: (textOf(type) ?? '').startsWith('input_') ? 'input_text' : 'text', text, ...marked };
}

/** A whole item, such as an image that a vendor has made, or a turn with a sound of its own. */
function turnFor(turn: JsonObject, text: string): JsonObject {
  const { audio, content } = turn;
  if (audio !== undefined) {
    const { audio: _kept, ...rest } = turn;
    return { ...rest, content: content ?? text };
  }
  if (turn['role'] === undefined && /^input_/.test(textOf(turn['type']) ?? '')) return { type: 'input_text', text };
  if ('output' in turn) return { ...turn, output: text };
  return { role: 'assistant', content: text };
}
