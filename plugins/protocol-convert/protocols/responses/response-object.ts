/** Words the response object that lifecycle events and whole answers carry: the client's request echoed, then what came of it. Pure. */
import type { ReplyContext } from '../../codec.ts';
import { isObject, type JsonObject, objectOf } from '../../json.ts';
import type { StopReason, UsageSeen } from '../../reply.ts';
import { toolUsage, usageObject } from './usage.ts';

/** How an answer ended: its `status`, and why it is not whole. */
export interface Ending {
  readonly status: 'completed' | 'incomplete';
  readonly reason: 'max_output_tokens' | 'content_filter' | undefined;
}

/** A refusal that the model put in words is a whole answer; one that left no words is an answer that was held back. */
export function endingOf(stop: StopReason | undefined, hasRefusal: boolean): Ending {
  if (stop === 'length') return { status: 'incomplete', reason: 'max_output_tokens' };
  if (stop === 'refusal' && !hasRefusal) return { status: 'incomplete', reason: 'content_filter' };
  return { status: 'completed', reason: undefined };
}

/** The gateway's own id of the answer. */
export function responseId(exchangeId: string): string {
  return `resp_${exchangeId}`;
}

/** Ids of the answer's items: unique in it, and the same for the same exchange. */
export function itemId(prefix: string, exchangeId: string, outputIndex: number): string {
  return `${prefix}_${exchangeId}_${outputIndex}`;
}

/** What stays the same from `response.created` to the end: identity, and the client's request with the official defaults. */
export function responseBase(
  context: ReplyContext,
  told: { readonly createdAt: number | undefined; readonly serviceTier: string | undefined },
): JsonObject {
  const { request } = context;
  const text = objectOf(request['text']) ?? {};
  const reasoning = objectOf(request['reasoning']) ?? {};
  return {
    id: responseId(context.exchangeId),
    object: 'response',
    created_at: told.createdAt ?? context.createdAt,
    model: context.call.model,
    background: false,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    max_tool_calls: request['max_tool_calls'] ?? null,
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: request['previous_response_id'] ?? null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: reasoning['effort'] ?? null, summary: reasoning['summary'] ?? null },
    safety_identifier: request['safety_identifier'] ?? null,
    service_tier: told.serviceTier ?? request['service_tier'] ?? 'default',
    store: request['store'] ?? true,
    temperature: request['temperature'] ?? 1,
    text: { format: text['format'] ?? { type: 'text' }, verbosity: text['verbosity'] ?? 'medium' },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: Array.isArray(request['tools']) ? request['tools'] : [],
    top_logprobs: request['top_logprobs'] ?? 0,
    top_p: request['top_p'] ?? 1,
    truncation: request['truncation'] ?? 'disabled',
    user: request['user'] ?? null,
    metadata: isObject(request['metadata']) ? request['metadata'] : {},
  };
}

/** What an ended answer adds to its base, but for `output`. */
export function endingMembers({ status, reason }: Ending, seen: UsageSeen): JsonObject {
  const tools = toolUsage(seen.usage);
  return {
    status,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    usage: usageObject(seen.usage),
    ...(tools === undefined ? {} : { tool_usage: tools }),
  };
}
