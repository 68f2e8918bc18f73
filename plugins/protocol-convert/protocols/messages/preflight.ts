/** Extracts from a messages request what the gateway needs before it forwards it. Pure. */
import { type JsonObject, objectOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { RequestBody } from '../../../common/wire/protocols.ts';
import { keptStateTokens, measureMedia, promptTokens } from '../../metering/estimate.ts';
import { boundedCalls, surcharges, toolCallsOf } from '../../metering/surcharges.ts';
import { countOf, invalid, modelOf, requireList, streamOf } from '../../request/checks.ts';
import { continuesThread } from './decode/threads.ts';

/** Throws invalid_request that names the field. */
export function preflightMessages(body: RequestBody): Call {
  const maxTokens = countOf(body.json, 'max_tokens', 0);
  const call = preflightPrompt(body, streamOf(body.json), true);
  if (maxTokens === undefined) throw invalid('The field "max_tokens" is missing.', 'max_tokens');
  return { ...call, maxOutputTokens: maxTokens };
}

/** Counting runs no inference: it needs no limit and costs nothing. */
export function preflightCountTokens(body: RequestBody): Call {
  return preflightPrompt(body, false, false);
}

function preflightPrompt({ json, bytes }: RequestBody, stream: boolean, billable: boolean): Call {
  const model = modelOf(json);
  const media = { characters: 0, tokens: 0 };
  for (const message of requireList(json, 'messages')) measureMedia(objectOf(message)?.['content'], media);
  return {
    protocol: 'messages',
    model,
    stream,
    billable,
    inputTokens: promptTokens(bytes.length, media) + (continuesThread(json) ? keptStateTokens : 0),
    maxOutputTokens: undefined,
    choices: 1,
    ...surcharges({
      tier: json['speed'] === 'fast' ? ['speed', 'fast'] : ['service_tier', json['service_tier']],
      region: ['inference_geo', json['inference_geo']],
      toolCalls: toolCallsOf(json['tools'], callsOf),
    }),
  };
}

/** The client runs tools of these families although the vendor defines them. */
const clientTools = /^(custom$|bash_|text_editor_|computer_|memory_|tool_search_)/;

function callsOf({ type, max_uses: most }: JsonObject): number {
  return typeof type !== 'string' || clientTools.test(type) ? 0 : boundedCalls(most);
}
