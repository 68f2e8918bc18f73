/** Words the pieces of an answer as parts for a client, with what the client must bring back. Pure. */
import type { MediaPart } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import { isObject, type JsonObject, objectOf, tryParse } from '../../json.ts';
import { parseExact } from '../../wording/exact-json.ts';
import { type SlotEntry, wordSlot } from './signatures.ts';

/** Whether the client asked to read thoughts: `includeThoughts`, in any of the three shapes of a request. */
export function asksThoughts(request: JsonObject): boolean {
  const nested = objectOf(request['generateContentRequest']) ?? request;
  const config = objectOf(nested['generationConfig'] ?? nested['generation_config']);
  const thinking = objectOf(config?.['thinkingConfig'] ?? config?.['thinking_config']);
  return (thinking?.['includeThoughts'] ?? thinking?.['include_thoughts']) === true;
}

/** Arguments as the object that the protocol wants, whatever the model wrote. */
export function argsOf(input: string): JsonObject {
  const args = input.trim() === '' ? {} : tryParse(input, parseExact);
  if (isObject(args)) return args;
  return args === undefined ? { _raw: input } : { value: args };
}

/** undefined for a file that only its vendor can read. */
export function mediaPart({ source }: MediaPart): JsonObject | undefined {
  switch (source.form) {
    case 'bytes':
      return { inlineData: { mimeType: source.mediaType, data: source.base64 } };
    case 'url':
      return {
        fileData: { ...(source.mediaType === undefined ? {} : { mimeType: source.mediaType }), fileUri: source.url },
      };
    case 'text':
      return { text: source.text };
    default:
      return undefined;
  }
}

/** Keepsakes on their way into the next part of one candidate. */
export class PendingSlot {
  readonly #seal: ReplyContext['seal'];
  #entries: SlotEntry<string>[] = [];

  constructor(seal: ReplyContext['seal']) {
    this.#seal = seal;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  add(kind: SlotEntry<string>['kind'], keepsake: string): void {
    this.#entries.push({ kind, content: this.#seal(keepsake) });
  }

  /** The member for the part that goes out now; nothing when nothing waits. */
  take(): { thoughtSignature?: string } {
    if (this.#entries.length === 0) return {};
    const thoughtSignature = wordSlot(this.#entries);
    this.#entries = [];
    return { thoughtSignature };
  }
}
