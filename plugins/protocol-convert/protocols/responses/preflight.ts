/** Extracts from a responses request what the gateway needs before it forwards it. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { RequestBody } from '../../../common/wire/protocols.ts';
import { keptStateTokens, measureMedia, promptTokens } from '../../metering/estimate.ts';
import { boundedCalls, picturesOf, surcharges, toolCallsOf } from '../../metering/surcharges.ts';
import { countOf, invalid, modelOf, streamOf } from '../../request/checks.ts';
import { booleanMember } from '../../request/members.ts';

/** Members that refer to a prompt in the vendor's store. */
const keptState = ['previous_response_id', 'conversation', 'prompt'];

/** Throws invalid_request or unsupported; both name the field. */
export function preflightResponses({ json, bytes }: RequestBody): Call {
  // An upstream may take any other value for `true` all the same, and its answer would have no usage.
  if (booleanMember(json, 'background') === true) {
    throw new GatewayError(
      'invalid_request',
      'The field "background" is not supported: an answer is charged when it is given. Leave it out.',
      { field: 'background' },
    );
  }
  booleanMember(json, 'store');
  return {
    protocol: 'responses',
    model: modelOf(json),
    stream: streamOf(json),
    billable: true,
    inputTokens: inputTokens(json, bytes.length, true),
    maxOutputTokens: countOf(json, 'max_output_tokens', 0),
    choices: 1,
    ...picturesOf(json['tools']),
    ...surcharges({ tier: ['service_tier', json['service_tier']], toolCalls: toolCalls(json) }),
  };
}

/** Tools that the client runs, or that have no price for each call. */
const clientTools =
  /^(function|custom|namespace|local_shell|shell|apply_patch|computer.*|tool_search|image_generation)$/;

/** A shell runs in a container of the vendor, or at the client. */
function isHosted({ type, environment }: JsonObject): boolean {
  if (type === 'shell') return /^container_/.test(textOf(objectOf(environment)?.['type']) ?? '');
  return typeof type === 'string' && !clientTools.test(type);
}

function toolCalls(json: JsonObject): number {
  const calls = toolCallsOf(json['tools'], (tool) => (isHosted(tool) ? boundedCalls(undefined) : 0));
  const bound = json['max_tool_calls'];
  return calls > 0 && bound !== undefined && bound !== null ? boundedCalls(bound) : calls;
}

/** The official compaction request. */
export function preflightCompact({ json, bytes }: RequestBody): Call {
  return { ...preflightPrompt(json, bytes.length), billable: true };
}

/** Counting runs no inference: it costs nothing. */
export function preflightInputTokens({ json, bytes }: RequestBody): Call {
  return { ...preflightPrompt(json, bytes.length), billable: false };
}

function preflightPrompt(json: JsonObject, bodyBytes: number): Omit<Call, 'billable'> {
  return {
    protocol: 'responses',
    model: modelOf(json),
    stream: false,
    inputTokens: inputTokens(json, bodyBytes, false),
    maxOutputTokens: undefined,
    choices: 1,
  };
}

/** Checks the input and estimates an upper limit of the prompt. Throws invalid_request. */
function inputTokens(json: JsonObject, bodyBytes: number, needsInput: boolean): number {
  const { input } = json;
  const keeps = keptState.some((name) => json[name] !== undefined && json[name] !== null);
  if (input === undefined || input === null) {
    if (needsInput && !keeps) throw invalid('The field "input" is missing.', 'input');
  } else if (typeof input !== 'string' && !Array.isArray(input)) {
    throw invalid('The field "input" must be a string or a list.', 'input');
  }
  const media = { characters: 0, tokens: keeps ? keptStateTokens : 0 };
  for (const item of listOf(input)) {
    measureMedia([item], media);
    measureMedia(objectOf(item)?.['content'], media);
  }
  return promptTokens(bodyBytes, media);
}
