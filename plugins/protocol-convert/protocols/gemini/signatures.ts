/** What stands in `thoughtSignature`: the vendor's own words upstream, sealed keepsakes in clients' hands. Pure. */
import type { Keepsake } from '../../canon.ts';
import type { OpenSeal } from '../../codec.ts';
import { isObject, type JsonObject, listOf } from '../../json.ts';

/** Tells an upstream that the signature of this call was lost. https://ai.google.dev/gemini-api/docs/thought-signatures */
export const lostSignature = 'skip_thought_signature_validator';

/** What every slot begins with that this gateway filled: base64 of a seal's own beginning, `gw1.`. */
export const slotMark = 'Z3cxL';

/** Whose keepsake an entry is: the part's own, that of reasoning before it, or of reasoning that shows nothing. */
export type SlotKind = 'own' | 'reasoning' | 'redacted';
export interface SlotEntry<Content> {
  readonly kind: SlotKind;
  readonly content: Content;
}

const marks: Record<SlotKind, string> = { own: 'o', reasoning: 'r', redacted: 'x' };
const kinds = new Map<string, SlotKind>(Object.entries(marks).map(([kind, mark]) => [mark, kind as SlotKind]));

/**
 * One slot for all that a client must bring back with a part. In base64, as official clients read the member as bytes;
 * one seal and its mark on each line.
 */
export function wordSlot(entries: readonly SlotEntry<string>[]): string {
  const lines = entries.map(({ kind, content }) => `${content} ${marks[kind]}`);
  return Buffer.from(lines.join('\n'), 'latin1').toString('base64');
}

/** The keepsakes of a slot that can still be opened; undefined for one that this gateway did not fill. */
export function readSlot(slot: unknown, open: OpenSeal): SlotEntry<Keepsake>[] | undefined {
  if (!isSealed(slot)) return undefined;
  const entries: SlotEntry<Keepsake>[] = [];
  for (const line of Buffer.from(slot, 'base64').toString('latin1').split('\n')) {
    const [seal = '', mark = ''] = line.split(' ');
    const content = open(seal);
    const kind = kinds.get(mark);
    if (content !== undefined && kind !== undefined) entries.push({ kind, content });
  }
  return entries;
}

function isSealed(slot: unknown): slot is string {
  return typeof slot === 'string' && slot.startsWith(slotMark);
}

/** The request without slots that this gateway filled: on calls they become the sign of a lost signature. */
export function withoutSeals(json: JsonObject): JsonObject {
  const nested = json['generateContentRequest'];
  const { contents } = json;
  return {
    ...json,
    ...(Array.isArray(contents) ? { contents: contents.map(contentWithoutSeals) } : {}),
    ...(isObject(nested) ? { generateContentRequest: withoutSeals(nested) } : {}),
  };
}

function contentWithoutSeals(content: unknown): unknown {
  if (!isObject(content) || !Array.isArray(content['parts'])) return content;
  const parts = listOf(content['parts']).map(partWithoutSeals);
  return { ...content, parts: parts.filter((part) => part !== undefined) };
}

/** undefined for a part that was there for its slot alone. */
function partWithoutSeals(part: unknown): unknown {
  if (!isObject(part)) return part;
  const name = isSealed(part['thoughtSignature']) ? 'thoughtSignature' : 'thought_signature';
  if (!isSealed(part[name])) return part;
  if (isObject(part['functionCall'] ?? part['function_call'])) return { ...part, [name]: lostSignature };
  const { [name]: _sealed, ...rest } = part;
  return rest['text'] === '' ? undefined : rest;
}
