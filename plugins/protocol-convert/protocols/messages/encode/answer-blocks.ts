/** Encodes blocks of an answer that streams and whole answers share. Pure. */
import { isObject, type JsonObject, tryParse } from '../../../../../core/json/json.ts';
import type { SearchPart } from '../../../../common/canonical/prompt.ts';
import type { StopReason } from '../../../../common/canonical/reply.ts';
import { shortHash } from '../../../../common/encoding/hash.ts';
import { legalCallId } from '../../../../common/encoding/tool-ids.ts';
import { parseExact } from '../../../encoding/exact-json.ts';
import { isPacked } from '../../../translate/call-ids.ts';
import { searchResultJson } from '../citations.ts';

const { isRawJSON } = JSON as typeof JSON & { isRawJSON(value: unknown): boolean };

export type Seal = (value: string) => string;

/**
 * Reasoning with its signature. Unsigned reasoning gets a sealed empty text, so that the gateway recognises it in a later
 * request.
 */
export function thinkingBlock(text: string, opaqueState: string | undefined, seal: Seal): JsonObject {
  return { type: 'thinking', thinking: text, signature: seal(opaqueState ?? '') };
}

export function redactedBlock(opaqueState: string | undefined, seal: Seal): JsonObject {
  return { type: 'redacted_thinking', data: seal(opaqueState ?? '') };
}

export function toolUseBlock(id: string, name: string, input: JsonObject): JsonObject {
  return { type: 'tool_use', id: isPacked(id) ? id : legalCallId(id, 'messages'), name, input };
}

/**
 * A call's arguments as JSON of an object, the only form in this protocol: free text goes into `input`, a value that is not
 * an object, or not JSON, into `_raw`.
 */
export function inputObjectJson(input: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input });
  if (input.trim() === '') return '{}';
  const value = tryParse(input);
  if (isNothing(value)) return '{}';
  return isObject(value) ? input : JSON.stringify({ _raw: value ?? input });
}

/** How some models write that there are no arguments. */
function isNothing(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0);
}

/** As `inputObjectJson`, parsed without loss of digits. */
export function inputObject(input: string, isCustom: boolean): JsonObject {
  if (isCustom) return { input };
  if (input.trim() === '') return {};
  const value = tryParse(input, parseExact);
  if (isNothing(value)) return {};
  return isObject(value) && !isRawJSON(value) ? value : { _raw: value ?? input };
}

/** A search as two blocks: the query, and the results. */
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

/** Ids of searches have a fixed form: other ids are converted deterministically. */
function searchId(id: string): string {
  if (/^srvtoolu_[a-zA-Z0-9_]{1,64}$/.test(id)) return id;
  return `srvtoolu_${/^[a-zA-Z0-9_]{1,64}$/.test(id) ? id : shortHash(id, 24)}`;
}

/** The reason of an answer's end, in this protocol's values. */
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

/** `refusal`: the model's text instead of an answer; some vendors end such an answer with an ordinary reason. */
export function endingOf(reason: StopReason, sequence: string | undefined, refusal: string): Ending {
  const isRefusal = reason === 'refusal' || (reason === 'stop' && refusal !== '');
  // Clients read which sequence was matched; if that is unknown, the reason is a plain end.
  const finish = reason === 'stop-sequence' && sequence === undefined ? 'stop' : reason;
  return {
    stop_reason: isRefusal ? 'refusal' : reasons[finish],
    stop_sequence: finish === 'stop-sequence' ? (sequence ?? null) : null,
    stop_details: isRefusal ? { type: 'refusal', category: null, explanation: refusal === '' ? null : refusal } : null,
  };
}

/** An answer without its content, as at its start. */
export function messageHead(exchangeId: string, model: string): JsonObject {
  return { id: `msg_${exchangeId}`, type: 'message', role: 'assistant', model };
}
