/** Members in which chat carries a vendor's opaque state: `reasoning_details`, `thinking_blocks`, `extra_content`. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../../core/json/json.ts';

/** The opaque member of a call or a text, as compatible servers and their clients name it. */
export function thoughtSignature(holder: JsonObject): string | undefined {
  return textOf(objectOf(objectOf(holder['extra_content'])?.['google'])?.['thought_signature']);
}

/** The same member, encoded. */
export function extraContent(signature: string): JsonObject {
  return { google: { thought_signature: signature } };
}

/** Opaque texts that an entry of `reasoning_details` or `thinking_blocks` may hold. */
export function opaqueOf(entry: JsonObject): string | undefined {
  return textOf(entry['signature']) ?? textOf(entry['data']) ?? textOf(entry['encrypted_content']);
}

/** The readable text of such an entry. */
export function readableOf(entry: JsonObject): string {
  return textOf(entry['text']) ?? textOf(entry['summary']) ?? textOf(entry['thinking']) ?? '';
}

/** Members that are concatenated when an entry arrives in pieces. */
const growing = ['text', 'summary', 'thinking', 'data'];

/** Joins the pieces of streamed reasoning details into the form in which their vendor accepts them again. */
export class ReasoningDetails {
  #entries: Record<string, unknown>[] = [];
  #isSigned = false;

  /** An entry arrived that only its vendor can read. */
  get isSigned(): boolean {
    return this.#isSigned;
  }

  add(list: readonly unknown[]): void {
    for (const entry of list) if (isObject(entry)) this.#addEntry(entry);
  }

  /** Returns everything since the last call as one opaque state and starts again; undefined if nothing in it is opaque. */
  take(): string | undefined {
    if (!this.#isSigned) return undefined;
    const opaqueState = JSON.stringify(this.#entries);
    this.#entries = [];
    this.#isSigned = false;
    return opaqueState;
  }

  #addEntry(entry: JsonObject): void {
    if (opaqueOf(entry) !== undefined) this.#isSigned = true;
    const last = this.#entries.at(-1);
    if (last === undefined || !isSame(last, entry)) {
      this.#entries.push({ ...entry });
      return;
    }
    for (const [key, value] of Object.entries(entry)) {
      if (value === null || value === '') continue;
      const before = last[key];
      last[key] = growing.includes(key) && typeof before === 'string' ? before + String(value) : value;
    }
  }
}

function isSame(one: JsonObject, other: JsonObject): boolean {
  if (one['type'] !== other['type'] || one['index'] !== other['index']) return false;
  // A signature ends an entry without an index.
  if (one['index'] === undefined && opaqueOf(one) !== undefined) return false;
  return textOf(one['id']) === undefined || textOf(other['id']) === undefined || one['id'] === other['id'];
}

/** The opaque state of `ReasoningDetails` as members of an assistant message. */
export function detailMembers(opaqueStates: readonly string[]): JsonObject {
  const details: unknown[] = [];
  const blocks: unknown[] = [];
  for (const opaqueState of opaqueStates)
    for (const entry of listOf(tryParse(opaqueState))) {
      const isBlock = /^(redacted_)?thinking$/.test(textOf(objectOf(entry)?.['type']) ?? '');
      (isBlock ? blocks : details).push(entry);
    }
  return {
    ...(details.length > 0 ? { reasoning_details: details } : {}),
    ...(blocks.length > 0 ? { thinking_blocks: blocks } : {}),
  };
}
