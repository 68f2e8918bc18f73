/** Reads what the gateway must know of a chat request. Pure. */
import type { Call } from '../../../../core/vocabulary.ts';
import { countOf, largest, modelOf, requireList, streamOf } from '../../checks.ts';
import { measureMedia, promptTokens } from '../../estimate.ts';
import { type JsonObject, objectOf } from '../../json.ts';
import type { RequestBody } from '../../protocol.ts';
import { boundedCalls, surcharges, toolCallsOf } from '../../surcharges.ts';

/** Throws invalid_request that names the field. */
export function peekChat({ json, bytes }: RequestBody): Call {
  const model = modelOf(json);
  const messages = requireList(json, 'messages');
  const media = { characters: 0, tokens: 0 };
  for (const message of messages) measureMedia(objectOf(message)?.['content'], media);
  const searches = objectOf(json['web_search_options']) === undefined ? 0 : boundedCalls(undefined);
  return {
    protocol: 'chat',
    model,
    stream: streamOf(json),
    billable: true,
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: largest(countOf(json, 'max_tokens', 0), countOf(json, 'max_completion_tokens', 0)),
    choices: countOf(json, 'n', 1) ?? 1,
    ...surcharges({ tier: json['service_tier'], toolCalls: searches + toolCallsOf(json['tools'], callsOf) }),
  };
}

/** Everything but functions and free-text tools is run by the vendor. */
function callsOf({ type }: JsonObject): number {
  return type === undefined || type === 'function' || type === 'custom' ? 0 : boundedCalls(undefined);
}
