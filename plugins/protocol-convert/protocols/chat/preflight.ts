/** Extracts from a chat request what the gateway needs before it forwards it. Pure. */
import { type JsonObject, objectOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import { asksSearch, searchMembers } from '../../../common/wire/hosted-tools.ts';
import type { RequestBody } from '../../../common/wire/protocols.ts';
import { measureMedia, promptTokens } from '../../metering/estimate.ts';
import { boundedCalls, picturesOf, type Surcharges, surcharges, toolCallsOf } from '../../metering/surcharges.ts';
import { countOf, largest, modelOf, requireList, streamOf } from '../../request/checks.ts';

/** Throws invalid_request that names the field. */
export function preflightChat({ json, bytes }: RequestBody): Call {
  const model = modelOf(json);
  const messages = requireList(json, 'messages');
  const media = { characters: 0, tokens: 0 };
  for (const message of messages) {
    const { content, images } = objectOf(message) ?? {};
    if (typeof content !== 'string') measureMedia(content, media);
    if (images !== undefined) measureMedia(images, media);
  }
  return {
    protocol: 'chat',
    model,
    stream: streamOf(json),
    billable: true,
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: largest(countOf(json, 'max_tokens', 0), countOf(json, 'max_completion_tokens', 0)),
    choices: countOf(json, 'n', 1) ?? 1,
    ...(hasServices(json) ? servicesOf(json) : noServices),
  };
}

const serviceMembers = ['tools', 'modalities', 'service_tier', ...searchMembers];
const noServices: Surcharges = { toolCalls: 0 };

function hasServices(json: JsonObject): boolean {
  for (const name of serviceMembers) if (json[name] !== undefined) return true;
  return false;
}

function servicesOf(json: JsonObject): Partial<Call> {
  const { tools, modalities, service_tier: tier } = json;
  const searches = searchMembers.some((name) => asksSearch(json[name])) ? boundedCalls(undefined) : 0;
  const toolCalls = searches + toolCallsOf(tools, callsOf);
  return { ...picturesOf(tools, modalities), ...surcharges({ tier: ['service_tier', tier], toolCalls }) };
}

/** The vendor runs every tool but functions and free-text tools. */
function callsOf({ type }: JsonObject): number {
  return type === undefined || type === 'function' || type === 'custom' ? 0 : boundedCalls(undefined);
}
