/** Lets an answer be read on after its client has left, where the rest costs less than an estimate of the prompt errs by. */
import { type Exchange, upstreamRequest } from '../../../core/contract/contract.ts';
import { call } from '../../common/domain/calls.ts';
import { target } from '../../common/domain/upstreams.ts';
import { boundOf } from '../reservations/charge.ts';
import type { Terms } from '../reservations/terms.ts';

/** An estimate is a tenth of the prompt off at the median, and what is held for the prompt is three times its tokens. */
const partOfHeld = 30;
/** Their vendors report usage at the end alone; others report the prompt when an answer begins. */
const reportsLast: ReadonlySet<string> = new Set(['chat', 'responses']);

/** Before an attempt is sent. */
export function readOnIfCheap(exchange: Exchange, terms: Terms): void {
  const { maxOutputTokens, inputTokens, choices } = exchange.get(call);
  // Output costs at least what input does, or the bound below decides.
  if (maxOutputTokens === undefined || partOfHeld * maxOutputTokens > inputTokens) return;
  const { upstream, protocol } = exchange.find(target) ?? {};
  const request = exchange.find(upstreamRequest);
  if (upstream?.cheapDrain === undefined || request === undefined || !reportsLast.has(protocol ?? '')) return;
  if (isCheap(terms, choices * maxOutputTokens)) request.drain = upstream.cheapDrain;
}

/** Whether so many output tokens cost at most a thirtieth of what is held for the prompt. */
function isCheap(terms: Terms, outputTokens: number): boolean {
  const held = boundOf(terms, 0);
  return BigInt(partOfHeld) * (boundOf(terms, outputTokens) - held) <= held;
}
