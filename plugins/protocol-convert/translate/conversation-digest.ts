/** Digests of what precedes each answer of a conversation, as the client sends it: the same in every later request. */
import { createHash } from 'node:crypto';
import { tryParse } from '../../../core/json/json.ts';
import type { MediaPart, Part, Turn } from '../../common/canonical/prompt.ts';
import { valuesIn } from '../encoding/json-text.ts';

/** Characters of a medium that count at each of its ends, beside its length. */
const mediaSample = 512;

/**
 * Everything counts but what clients leave out or rename between requests: reasoning, the vendor's searches, cache marks,
 * the ids of calls, and the form of their arguments. Turns may be split or joined, but not reordered.
 */
export class ConversationDigest {
  readonly #turns: readonly Turn[];
  readonly #hash = createHash('sha256');
  #written = 0;
  #digest: string | undefined;

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
  }

  /** Digest of the turns before the answer that this turn is part of. Indexes must never fall from call to call. */
  before(index: number): string {
    let end = index;
    // Adjacent turns of the assistant may be one answer.
    while (end > 0 && this.#turns[end - 1]!.role === 'assistant') end--;
    if (end > this.#written) this.#digest = undefined;
    for (; this.#written < end; this.#written++) this.#write(this.#turns[this.#written]!);
    this.#digest ??= this.#hash.copy().digest('base64');
    return this.#digest;
  }

  /** Digest of the turns before the answer to the whole conversation. */
  end(): string {
    return this.before(this.#turns.length);
  }

  #write({ role, parts }: Turn): void {
    for (const part of parts) this.#part(role, part);
  }

  #part(role: string, part: Part): void {
    switch (part.kind) {
      case 'text':
      case 'refusal':
        if (part.text !== '') this.#add(role, part.kind, part.text);
        return;
      case 'tool-call':
        this.#add(role, part.kind, part.namespace ?? '', part.name, plainInput(part.input));
        return;
      case 'tool-result':
        this.#add(role, part.kind, part.isError === true ? 'error' : '');
        for (const inner of part.parts) this.#part(part.kind, inner);
        return;
      case 'reasoning':
      case 'search':
        return;
      default:
        this.#add(role, part.kind, ...sampleOf(part));
    }
  }

  /** Lengths first: no two lists of texts give the same bytes. */
  #add(...texts: readonly string[]): void {
    this.#hash.update(`${texts.map(({ length }) => length).join(' ')}\n`);
    for (const text of texts) this.#hash.update(text);
  }
}

/** Arguments with more values, or nested deeper, count as they are written: sorting them takes too long. */
const mostValues = 25_000;

/** The arguments of a call in one form, whatever JSON writer a client sends them back with. */
export function plainInput(input: string): string {
  if (valuesIn(input, mostValues) > mostValues) return input;
  return JSON.stringify(sorted(tryParse(input))) ?? input;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

function sampleOf({ source }: MediaPart): string[] {
  const text = contentOf(source);
  return [source.form, String(text.length), text.slice(0, mediaSample), text.slice(-mediaSample)];
}

function contentOf(source: MediaPart['source']): string {
  switch (source.form) {
    case 'bytes':
      return source.base64;
    case 'url':
      return source.url;
    case 'file':
      return source.id;
    case 'text':
      return source.text;
  }
}
