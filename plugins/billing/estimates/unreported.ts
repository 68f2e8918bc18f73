/** Estimates the usage of calls for which the vendor reported none or only a part. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { attempts, call, conversation, usageReport } from '../../common/domain/calls.ts';
import type { Verdict } from '../reservations/outcome.ts';
import { type Asked, type Likely, PromptMemory } from './prompt-memory.ts';

export class Estimates {
  readonly #memory = new PromptMemory();

  /** Before an attempt is sent: keeps the request if nothing else is known by which its prompt could be estimated. */
  sending(exchange: Exchange, asked: Asked): void {
    const talk = exchange.find(conversation);
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return;
    if (!this.#memory.knows(asked, talk.mark, to)) talk.keep?.();
  }

  /** What stands in for what was not reported; a promise where the prompt has to be counted, undefined where sizes stay. */
  of(exchange: Exchange, asked: Asked, at: number): undefined | Likely | Promise<Likely> {
    const talk = exchange.find(conversation);
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return undefined;
    const likely = this.#memory.likely(asked, talk.mark, to, at);
    const report = exchange.find(usageReport);
    const isMissing = report === undefined || report.unreported?.prompt === true;
    if (likely.prompt !== undefined || !isMissing) return likely;
    return talk.countPrompt?.().then((tokens) => withPrompt(likely, tokens, asked)) ?? likely;
  }

  /** After the end: what was reported is remembered. */
  ended(exchange: Exchange, asked: Asked, verdict: Verdict, at: number): void {
    const talk = exchange.find(conversation);
    talk?.forget?.();
    if (verdict.kind === 'VOID' || verdict.estimated || !verdict.terminal || verdict.served !== undefined) return;
    const to = exchange.find(attempts)?.at(-1);
    if (talk?.mark === undefined || to === undefined || !isChat(exchange)) return;
    this.#memory.learn(asked, talk.mark, to, verdict.usage, exchange.find(usageReport)?.seen?.bytes ?? 0, at);
  }
}

function withPrompt(likely: Likely, tokens: number | undefined, { inputTokens }: Asked): Likely {
  return tokens === undefined ? likely : { ...likely, prompt: { input: Math.min(tokens, inputTokens) } };
}

/** Other models take no conversations. */
function isChat(exchange: Exchange): boolean {
  return (exchange.get(call).kind ?? 'chat') === 'chat';
}
