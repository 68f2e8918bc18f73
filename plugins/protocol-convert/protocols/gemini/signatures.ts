/** The content of `thoughtSignature`: the vendor's own signature upstream, sealed opaque states for clients. Pure. */

import { isObject, type JsonObject, listOf, oneOrMany } from '../../../../core/json/json.ts';
import type { OpenSeal } from '../../../common/canonical/codec.ts';
import type { OpaqueState } from '../../../common/canonical/prompt.ts';
import { isSealed, lostSignature, sealPrefixBase64 } from '../../encoding/sealed-text.ts';

/** Origin of an opaque state: the part itself, the reasoning before it, or redacted reasoning. */
type SlotKind = 'own' | 'reasoning' | 'redacted';
export interface SlotEntry<Content> {
  readonly kind: SlotKind;
  readonly content: Content;
}

const marks: Record<SlotKind, string> = { own: 'o', reasoning: 'r', redacted: 'x' };
const kinds = new Map<string, SlotKind>(Object.entries(marks).map(([kind, mark]) => [mark, kind as SlotKind]));

/**
 * One slot for all opaque state that a client must return with a part. In base64, as official clients read the member as
 * bytes; one seal and its kind on each line.
 */
export function encodeSlot(entries: readonly SlotEntry<string>[]): string {
  const lines = entries.map(({ kind, content }) => `${content} ${marks[kind]}`);
  return Buffer.from(lines.join('\n'), 'latin1').toString('base64');
}

/** The opaque states of a slot that can still be opened; undefined for a slot that this gateway did not fill. */
export function decodeSlot(slot: unknown, open: OpenSeal): SlotEntry<OpaqueState>[] | undefined {
  if (!isSlot(slot)) return undefined;
  const entries: SlotEntry<OpaqueState>[] = [];
  for (const line of Buffer.from(slot, 'base64').toString('latin1').split('\n')) {
    const [seal = '', mark = ''] = line.split(' ');
    const content = open(seal);
    const kind = kinds.get(mark);
    if (content !== undefined && kind !== undefined) entries.push({ kind, content });
  }
  return entries;
}

function isSlot(value: unknown): value is string {
  return isSealed(value, sealPrefixBase64);
}

/** The request without slots that this gateway filled: calls get the value for a lost signature instead. */
export function withoutSeals(json: JsonObject): JsonObject {
  const name = isObject(json['generateContentRequest']) ? 'generateContentRequest' : 'generate_content_request';
  const nested = json[name];
  const { contents } = json;
  return {
    ...json,
    ...(contents === undefined || contents === null ? {} : { contents: cleaned(contents, contentWithoutSeals) }),
    ...(isObject(nested) ? { [name]: withoutSeals(nested) } : {}),
  };
}

function contentWithoutSeals(content: unknown): unknown {
  if (!isObject(content) || oneOrMany(content['parts']).length === 0) return content;
  return { ...content, parts: cleaned(content['parts'], partWithoutSeals) };
}

/** A list, or an object in its place; undefined entries are removed. */
function cleaned(value: unknown, clean: (entry: unknown) => unknown): unknown {
  if (isObject(value)) return clean(value) ?? [];
  return listOf(value)
    .map(clean)
    .filter((entry) => entry !== undefined);
}

/** undefined for a part with only a slot. */
function partWithoutSeals(part: unknown): unknown {
  if (!isObject(part)) return part;
  const name = isSlot(part['thoughtSignature']) ? 'thoughtSignature' : 'thought_signature';
  if (!isSlot(part[name])) return part;
  if (isObject(part['functionCall'] ?? part['function_call'])) return { ...part, [name]: lostSignature };
  const { [name]: _sealed, ...rest } = part;
  return rest['text'] === '' ? undefined : rest;
}
