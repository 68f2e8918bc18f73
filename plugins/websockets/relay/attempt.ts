/** The innermost plugin step of a relayed session's exchanges: sets the request for the target, and reads a refusal. */
import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { spendGuard, usageReport } from '../../common/domain/calls.ts';
import { recordVendorWords } from '../../common/domain/timeline.ts';
import { target } from '../../common/domain/upstreams.ts';
import { maxScrubbedBytes } from '../../common/kit/scrub.ts';
import { classify, classifyFrame } from '../../common/kit/upstream-errors.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import { wholeBody } from '../../common/wire/answer-body.ts';
import type { RelayProtocol } from './dialect.ts';
import { relayStep } from './step.ts';
import { RefusedSession } from './upstream.ts';

export async function relayAttempt(
  exchange: Exchange,
  protocol: RelayProtocol,
  clock: Clock,
  next: Next,
): Promise<Answer> {
  const step = exchange.get(relayStep);
  const chosen = exchange.get(target);
  const prepared = { path: protocol.path(chosen.model), body: undefined };
  const request = buildUpstreamRequest(protocol.wire, { headers: exchange.request.headers }, prepared, chosen, true);
  request.method = 'GET';
  request.sendOver = (sending) => step.send(request, chosen, sending);
  step.guard = exchange.find(spendGuard);
  exchange.set(upstreamRequest, request);
  exchange.set(usageReport, step.report);
  const key = chosen.key.reveal();
  step.failed = (error) => recordVendorWords(exchange, clock.now(), classifyFrame(error, clock.now(), key).vendor);
  try {
    const answer = await next();
    if (answer.status === 200) return answer;
    const body = await wholeBody(answer.body, maxScrubbedBytes);
    throw classify(Math.max(answer.status, 300), answer.headers, body, clock.now(), key);
  } catch (error) {
    throw error instanceof RefusedSession ? refusalOf(error, clock.now(), key) : error;
  }
}

const badRequestCodes = new Set([1003, 1007, 1008]);

/** A protocol without error events has no message but the close reason. */
function refusalOf({ code, reason }: RefusedSession, now: number, key: string): Error {
  if (!badRequestCodes.has(code)) return new UpstreamError('connect', `the upstream closed the session with ${code}`);
  const message = reason === '' ? 'The model refused the session.' : reason;
  return classifyFrame({ error: { code: 400, message } }, now, key);
}
