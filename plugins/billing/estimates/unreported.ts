/** Estimates the usage of calls for which the vendor reported none or only a part, and says where it is better read on for. */
import { type Exchange, upstreamRequest } from '../../../core/contract/contract.ts';
import { attempts, call, conversation, usageReport } from '../../common/domain/calls.ts';
import { target } from '../../common/domain/upstreams.ts';
import { boundOf } from '../reservations/charge.ts';
import type { Likely, Verdict } from '../reservations/outcome.ts';
import type { Terms } from '../reservations/terms.ts';
import { type EstimatedCall, PromptMemory } from './prompt-memory.ts';

export class Estimates {
  readonly #memory = new PromptMemory();

  /** Before an attempt is sent: keeps the request if nothing else is known by which its prompt could be estimated. */
  sending(exchange: Exchange, requested: EstimatedCall): void {
    const talk = exchange.find(conversation);
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return;
    if (!this.#memory.knows(requested, talk.mark, to)) talk.keep?.();
  }

  /** The estimate for unreported usage; a promise where the prompt has to be counted, undefined where sizes stay. */
  of(exchange: Exchange, requested: EstimatedCall, at: number): undefined | Likely | Promise<Likely> {
    const talk = exchange.find(conversation);
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return undefined;
    const likely = this.#memory.likely(requested, talk.mark, to, at);
    const report = exchange.find(usageReport);
    const isMissing = report === undefined || report.unreported?.prompt === true;
    if (likely.prompt !== undefined || !isMissing) return likely;
    return talk.countPrompt?.().then((tokens) => withPrompt(likely, tokens, requested)) ?? likely;
  }

  /** After the end: remembers the reported usage. */
  ended(exchange: Exchange, requested: EstimatedCall, verdict: Verdict, at: number): void {
    const talk = exchange.find(conversation);
    talk?.forget?.();
    if (verdict.kind === 'VOID' || verdict.estimated || !verdict.terminal || verdict.served !== undefined) return;
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return;
    this.#memory.learn(requested, talk.mark, to, verdict.usage, exchange.find(usageReport)?.seen?.bytes ?? 0, at);
  }
}

function withPrompt(likely: Likely, tokens: number | undefined, { inputTokens }: EstimatedCall): Likely {
  return tokens === undefined ? likely : { ...likely, prompt: { input: Math.min(tokens, inputTokens) } };
}

/** Other models take no conversations. */
function isChat(exchange: Exchange): boolean {
  return (exchange.get(call).kind ?? 'chat') === 'chat';
}

/** An estimate is a tenth of the prompt off at the median, and the hold for the prompt is three times its tokens. */
const partOfHeld = 30;
/** Their vendors report usage at the end alone; others report the prompt when an answer begins. */
const reportsLast: ReadonlySet<string> = new Set(['chat', 'responses']);

/** Before an attempt is sent: its answer is read on after its client has left, where the rest costs less than an estimate errs by. */
export function readOnIfCheap(exchange: Exchange, terms: Terms): void {
  const { maxOutputTokens, inputTokens, choices } = exchange.get(call);
  // Output costs at least what input does, or the bound below decides.
  if (maxOutputTokens === undefined || partOfHeld * maxOutputTokens > inputTokens) return;
  const { upstream, protocol } = exchange.find(target) ?? {};
  const request = exchange.find(upstreamRequest);
  if (upstream?.cheapDrain === undefined || request === undefined || !reportsLast.has(protocol ?? '')) return;
  if (isCheap(terms, choices * maxOutputTokens)) request.drain = upstream.cheapDrain;
}

/** Whether so many output tokens cost at most a thirtieth of the hold for the prompt. */
function isCheap(terms: Terms, outputTokens: number): boolean {
  const held = boundOf(terms, 0);
  return BigInt(partOfHeld) * (boundOf(terms, outputTokens) - held) <= held;
}
