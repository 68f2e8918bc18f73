/**
 * Encodes the response object of lifecycle events and whole answers: the echo of the client's request, and the result. Pure.
 */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type { StopReason, UsageSeen } from '../../../../common/canonical/reply.ts';
import { toolUsage, usageObject } from '../usage.ts';
import { requestEcho } from './request-echo.ts';

/** How an answer ended: its `status`, and why it is incomplete. */
export interface Ending {
  readonly status: 'completed' | 'incomplete';
  readonly reason: 'max_output_tokens' | 'content_filter' | undefined;
}

/** A refusal with text is a complete answer; a refusal without text is an answer that was blocked. */
export function endingOf(stop: StopReason | undefined, hasRefusal: boolean): Ending {
  if (stop === 'length') return { status: 'incomplete', reason: 'max_output_tokens' };
  if (stop === 'refusal' && !hasRefusal) return { status: 'incomplete', reason: 'content_filter' };
  return { status: 'completed', reason: undefined };
}

/** The gateway's id of the answer. */
export function responseId(exchangeId: string): string {
  return `resp_${exchangeId}`;
}

/** Ids of the answer's items: unique in it, and deterministic for the exchange. */
export function itemId(prefix: string, exchangeId: string, outputIndex: number): string {
  return `${prefix}_${exchangeId}_${outputIndex}`;
}

/**
 * Members that do not change between `response.created` and the end: identity, and the client's request with the official
 * defaults.
 */
export function responseBase(
  context: ReplyContext,
  reported: { readonly createdAt: number | undefined; readonly serviceTier: string | undefined },
): JsonObject {
  const { request } = context;
  return {
    id: responseId(context.exchangeId),
    object: 'response',
    created_at: reported.createdAt ?? context.createdAt,
    model: context.call.model,
    ...requestEcho(request),
    service_tier: reported.serviceTier ?? request['service_tier'] ?? 'default',
  };
}

/** Members beside the base until the answer has ended. */
export const unfinishedMembers = {
  status: 'in_progress',
  completed_at: null,
  error: null,
  incomplete_details: null,
  usage: null,
  output: [],
} as const;

/** Members beside the base, `status`, `error` and `output` of an answer that failed. */
export const failedMembers = { completed_at: null, incomplete_details: null, usage: null } as const;

/** Members that an ended answer adds to its base, without `output`. `endedAt`: Unix seconds. */
export function endingMembers({ status, reason }: Ending, seen: UsageSeen, endedAt: number): JsonObject {
  const tools = toolUsage(seen.usage);
  return {
    status,
    completed_at: status === 'completed' ? endedAt : null,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    usage: usageObject(seen.usage),
    ...(tools === undefined ? {} : { tool_usage: tools }),
  };
}
