/** Encodes pieces of an answer as parts for a client, with the opaque state that the client must return. Pure. */

import { isObject, type JsonObject, objectOf, tryParse } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type { MediaPart } from '../../../../common/canonical/prompt.ts';
import { parseExact } from '../../../encoding/exact-json.ts';
import { encodeSlot, type SlotEntry } from '../signatures.ts';

/** Whether the client requested thoughts: `includeThoughts`, in any of the three shapes of a request. */
export function wantsThoughts(request: JsonObject): boolean {
  const nested = objectOf(request['generateContentRequest']) ?? request;
  const config = objectOf(nested['generationConfig'] ?? nested['generation_config']);
  const thinking = objectOf(config?.['thinkingConfig'] ?? config?.['thinking_config']);
  return (thinking?.['includeThoughts'] ?? thinking?.['include_thoughts']) === true;
}

/** Arguments as the object that the protocol requires, whatever the model wrote. */
export function argsOf(input: string): JsonObject {
  const args = input.trim() === '' ? {} : tryParse(input, parseExact);
  if (isObject(args)) return args;
  if (args === '' || (Array.isArray(args) && args.length === 0)) return {};
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

/** Opaque states that the next part of one candidate carries. */
export class PendingSlot {
  readonly #seal: ReplyContext['seal'];
  #entries: SlotEntry<string>[] = [];

  constructor(seal: ReplyContext['seal']) {
    this.#seal = seal;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  add(kind: SlotEntry<string>['kind'], opaqueState: string): void {
    this.#entries.push({ kind, content: this.#seal(opaqueState) });
  }

  /** The member for the next part; empty if no opaque state is pending. */
  take(): { thoughtSignature?: string } {
    if (this.#entries.length === 0) return {};
    const thoughtSignature = encodeSlot(this.#entries);
    this.#entries = [];
    return { thoughtSignature };
  }
}
