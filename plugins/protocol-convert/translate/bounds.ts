/** Refuses requests with so many values that translating them would block the event loop; real conversations have fewer. Pure. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Part, Prompt } from '../../common/canonical/prompt.ts';
import { valuesIn } from '../encoding/json-text.ts';
import { refusedForSize } from '../request/checks.ts';

/** Characters of all names and ids of tools and calls together. Some clients carry signatures in ids. */
const maxNameLength = 2 ** 20;

/** The bounds of one request. In this order: `json` before it is decoded, `prompt` after it. */
export class TranslationBounds {
  readonly #most: number;
  #left: number;

  /** `most`: members and elements, at all depths, of the request and of its calls' arguments together. */
  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** Throws invalid_request that names the member with the most values. */
  json(json: JsonObject): void {
    let largest = { field: '', values: -1 };
    for (const [field, value] of Object.entries(json)) {
      const values = 1 + count(value, this.#left);
      if (values > largest.values) largest = { field, values };
      this.#left -= values;
      if (this.#left < 0) throw this.#tooMany(largest.field, '');
    }
  }

  /** `field`: the member with the conversation. Throws invalid_request. */
  prompt({ turns, tools }: Prompt, field: string): void {
    let nameLength = 0;
    for (const tool of tools) nameLength += tool.name.length;
    for (const { parts } of turns) {
      for (const part of parts) {
        nameLength += namesOf(part);
        if (part.kind !== 'tool-call' || part.custom === true) continue;
        this.#left -= valuesIn(part.input, this.#left);
        if (this.#left < 0) throw this.#tooMany(field, ', with those in the arguments of its calls');
      }
    }
    if (nameLength > maxNameLength)
      throw refusedForSize(`The names and ids of tools and calls have more than ${maxNameLength} characters.`, field);
  }

  #tooMany(field: string, where: string): GatewayError {
    return refusedForSize(
      `The field "${field}" has too many members and elements${where}: a request that is translated may have ${this.#most}.`,
      field,
    );
  }
}

function namesOf(part: Part): number {
  if (part.kind === 'tool-call') return part.id.length + part.name.length;
  return part.kind === 'tool-result' ? part.callId.length + (part.name?.length ?? 0) : 0;
}

/** Members and elements of a value, at all depths; counting stops beyond `most`. */
function count(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Array.isArray(value) ? (value as readonly unknown[]) : Object.values(value);
  let values = inner.length;
  for (let index = 0; index < inner.length && values <= most; index++) values += count(inner[index], most - values);
  return values;
}
