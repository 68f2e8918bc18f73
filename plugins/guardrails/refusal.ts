/** A refused call: the error, or the answer that takes its place, in the client's protocol. */
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { table } from '../../core/contract/table.ts';
import type { Event, Reply } from '../common/canonical/reply.ts';
import { type Opened, opened } from '../common/wire/protocols.ts';
import type { OpenCheck } from './open-checks.ts';
import { verdictHeader } from './verdicts.ts';

export class Refusal extends GatewayError {
  readonly check: OpenCheck;
  readonly stage: 'prompt' | 'answer';

  constructor(check: OpenCheck, stage: 'prompt' | 'answer', shown: string | undefined) {
    super('invalid_request', check.settings.message, {
      code: 'content_policy_violation',
      shouldRetry: false,
      ...(shown === undefined ? {} : { headers: { [verdictHeader]: shown } }),
    });
    this.check = check;
    this.stage = stage;
  }
}

/** A check that could not judge, where its calls are refused then. */
export function unchecked(): GatewayError {
  return new GatewayError('overloaded', 'The content could not be checked.', {
    code: 'guardrail_unavailable',
    retryAfterMs: 1_000,
  });
}

export function notApplicable(operation: string): GatewayError {
  const message = `The rules of this gateway cannot be applied to the operation "${operation}".`;
  return new GatewayError('forbidden', message, { code: 'guardrail_not_applicable', shouldRetry: false });
}

type Blocked = (request: Opened, message: string, exchange: Exchange) => Answer;

/** Protocols that answer a blocked prompt with a form of its own instead of an error. */
const blockedPrompts: Readonly<Record<string, Blocked>> = table({ gemini: blockedContent });

/** undefined: the error itself is sent. `now`: Unix seconds. */
export function answerInstead(exchange: Exchange, { check, headers }: Refusal, now: number): Answer | undefined {
  const request = exchange.find(opened);
  if (request === undefined || !request.call.billable) return undefined;
  const { as: form, message } = check.settings;
  const blocked = blockedPrompts[request.protocol.name];
  if (form === 'error' && blocked === undefined) return undefined;
  const answer = form === 'answer' ? textAnswer(request, message, exchange, now) : blocked!(request, message, exchange);
  Object.assign(answer.headers, headers);
  return answer;
}

function blockedContent({ call, reshape }: Opened, message: string, exchange: Exchange): Answer {
  const json = JSON.stringify({
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT', blockReasonMessage: message },
    usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 },
    modelVersion: call.model,
    responseId: exchange.id,
  });
  if (!call.stream) return answerOf('application/json', json);
  const isEvents = exchange.request.query.get('alt') === 'sse' || exchange.request.query.get('$alt') === 'sse';
  const type = reshape?.streamType ?? (isEvents ? 'text/event-stream' : 'application/json');
  return answerOf(type, type === 'text/event-stream' ? `data: ${json}\n\n` : `[${json}]`);
}

function answerOf(type: string, body: string): Answer {
  return { status: 200, headers: { 'content-type': type }, body };
}

function textAnswer(request: Opened, text: string, exchange: Exchange, now: number): Answer {
  const { call, json, protocol, reshape, clientJson } = request;
  const { codec } = protocol;
  const { [codec.conversation]: _conversation, ...members } = clientJson ?? json;
  const context = {
    exchangeId: exchange.id,
    call,
    request: members,
    query: exchange.request.query,
    createdAt: Math.floor(exchange.receivedAt / 1_000),
    now: () => now,
    seal: (state: string) => state,
    usage: () => ({ usage: {}, estimated: false }),
  };
  if (!call.stream) return answerOf('application/json', JSON.stringify(codec.encodeReply(replyOf(text), context)));
  const encoder = codec.createEncoder(context);
  const frames = eventsOf(text).map((event) => encoder.event(event));
  return answerOf(reshape?.streamType ?? 'text/event-stream', frames.join('') + encoder.finish());
}

const beginning = { id: undefined, createdAt: undefined, serviceTier: undefined };

function replyOf(text: string): Reply {
  const parts = [{ kind: 'text', text }] as const;
  return { ...beginning, choices: [{ parts, stop: 'refusal', sequence: undefined, cutCalls: new Set<string>() }] };
}

function eventsOf(text: string): readonly Event[] {
  return [
    { type: 'reply-start', ...beginning },
    ...textBlock(0, 0, text),
    { type: 'stop', choice: 0, reason: 'refusal', sequence: undefined },
  ];
}

/** A whole block with this text. */
export function textBlock(block: number, choice: number, text: string): readonly Event[] {
  return [
    { type: 'text-start', block, choice },
    { type: 'text-delta', block, choice, text, logprobs: undefined },
    { type: 'text-end', block, choice, opaqueState: undefined },
  ];
}
