/** Words the blocks of an answer that look alike streamed and whole. Pure. */
import type { MediaPart, SearchPart } from '../../canon.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import type { StopReason } from '../../reply.ts';
import { shortHash } from '../../wording/hash.ts';
import { dataUrl } from '../../wording/media.ts';
import { legalCallId } from '../../wording/tool-ids.ts';
import { searchResultJson } from './citations.ts';

export type Seal = (value: string) => string;

/** Reasoning with its signature. One that nobody signed gets a sealed nothing, so that it is known again when it comes back. */
export function thinkingBlock(text: string, keepsake: string | undefined, seal: Seal): JsonObject {
  return { type: 'thinking', thinking: text, signature: seal(keepsake ?? '') };
}

export function redactedBlock(keepsake: string | undefined, seal: Seal): JsonObject {
  return { type: 'redacted_thinking', data: seal(keepsake ?? '') };
}

export function toolUseBlock(id: string, name: string, input: JsonObject): JsonObject {
  return { type: 'tool_use', id: legalCallId(id, 'messages'), name, input };
}

/**
 * A call's arguments as JSON of an object, which is all that this protocol has: free text goes into `input`, and what is
 * no object, or no JSON, into `_raw`.
 */
export function inputObjectJson(input: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input });
  if (input.trim() === '') return '{}';
  const value = tryParse(input);
  return isObject(value) ? input : JSON.stringify({ _raw: value ?? input });
}

/** A search as the two blocks that tell of it: the query, and what was found. */
export function searchBlocks({ id, queries, results }: SearchPart, seal: Seal): [query: JsonObject, found: JsonObject] {
  const legalId = searchId(id);
  return [
    { type: 'server_tool_use', id: legalId, name: 'web_search', input: { query: queries.join('; ') } },
    {
      type: 'web_search_tool_result',
      tool_use_id: legalId,
      content: results.map((result) => searchResultJson(result, seal)),
    },
  ];
}

/** Ids of searches have a form of their own: others follow from the id that is there. */
export function searchId(id: string): string {
  if (/^srvtoolu_[a-zA-Z0-9_]{1,64}$/.test(id)) return id;
  return `srvtoolu_${/^[a-zA-Z0-9_]{1,64}$/.test(id) ? id : shortHash(id, 24)}`;
}

/** An image or sound as text, for this protocol's answers are text: a picture that markdown can show, or the words said. */
export function mediaText(media: MediaPart): string {
  if (media.transcript !== undefined) return media.transcript;
  const { source } = media;
  if (source.form === 'text') return source.text;
  if (source.form === 'file') return '';
  const url = source.form === 'url' ? source.url : dataUrl(source);
  return `${media.kind === 'image' ? '!' : ''}[${media.name ?? media.kind}](${url})`;
}

/** Why an answer ended, in this protocol's words. */
export interface Ending {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details: JsonObject | null;
}

const reasons: Readonly<Record<StopReason, string>> = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  pause: 'pause_turn',
};

/** `refusal`: what the model said instead of an answer, if it did; some vendors end such an answer like any other. */
export function endingOf(reason: StopReason, sequence: string | undefined, refusal: string): Ending {
  const isRefusal = reason === 'refusal' || (reason === 'stop' && refusal !== '');
  // Clients read which text was hit; where that is unknown it is a plain end.
  const told = reason === 'stop-sequence' && sequence === undefined ? 'stop' : reason;
  return {
    stop_reason: isRefusal ? 'refusal' : reasons[told],
    stop_sequence: told === 'stop-sequence' ? (sequence ?? null) : null,
    stop_details: isRefusal ? { type: 'refusal', category: null, explanation: refusal === '' ? null : refusal } : null,
  };
}

/** An answer without its content, as it begins. */
export function messageHead(exchangeId: string, model: string): JsonObject {
  return { id: `msg_${exchangeId}`, type: 'message', role: 'assistant', model };
}
