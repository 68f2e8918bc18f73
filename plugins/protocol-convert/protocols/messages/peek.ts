/** Reads what the gateway must know of a messages request. Pure. */
import type { Call } from '../../../../core/vocabulary.ts';
import { countOf, invalid, modelOf, requireList, streamOf } from '../../checks.ts';
import { measureMedia, promptTokens } from '../../estimate.ts';
import { type JsonObject, objectOf } from '../../json.ts';
import type { RequestBody } from '../../protocol.ts';
import { boundedCalls, surcharges, toolCallsOf } from '../../surcharges.ts';

/** Throws invalid_request that names the field. */
export function peekMessages(body: RequestBody): Call {
  const maxTokens = countOf(body.json, 'max_tokens', 0);
  const call = peekPrompt(body, streamOf(body.json), true);
  if (maxTokens === undefined) throw invalid('The field "max_tokens" is missing.', 'max_tokens');
  return { ...call, maxOutputTokens: maxTokens };
}

/** Counting runs no inference: it needs no bound on the answer and costs nothing. */
export function peekCountTokens(body: RequestBody): Call {
  return peekPrompt(body, false, false);
}

function peekPrompt({ json, bytes }: RequestBody, stream: boolean, billable: boolean): Call {
  const model = modelOf(json);
  const media = { characters: 0, tokens: 0 };
  for (const message of requireList(json, 'messages')) measureMedia(objectOf(message)?.['content'], media);
  return {
    protocol: 'messages',
    model,
    stream,
    billable,
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: undefined,
    choices: 1,
    ...surcharges({
      tier: json['speed'] === 'fast' ? 'fast' : json['service_tier'],
      region: json['inference_geo'],
      toolCalls: toolCallsOf(json['tools'], callsOf),
    }),
  };
}

/** Tools of these families are run by the client although the vendor has defined them. */
const clientTools = /^(custom$|bash_|text_editor_|computer_|memory_|tool_search_)/;

function callsOf({ type, max_uses: most }: JsonObject): number {
  return typeof type !== 'string' || clientTools.test(type) ? 0 : boundedCalls(most);
}
