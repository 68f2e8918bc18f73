/** The answer to a try that races, as a protocol's tap hands it on: pulled chunk by chunk, counted, and its usage reported at its end. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { LiveBranch } from '../../core/http/exchange.ts';
import { spendGuard, usageReport } from '../../plugins/common/domain/calls.ts';
import type { Setting } from './client-call.ts';
import { heard } from './reported.ts';
import type { Life } from './schedule.ts';
import { reportOf } from './talk.ts';
import type { ReportedUsage, Trace, Try } from './trace.ts';
import type { VendorAnswer } from './vendors.ts';

export interface MeteredAnswerOptions {
  readonly setting: Setting;
  readonly life: Life;
  readonly trace: Trace;
  readonly branch: LiveBranch;
  readonly attempt: Try;
  readonly answer: VendorAnswer;
}

type Step = IteratorResult<Uint8Array>;

/** A usage meter without a report estimates by what it saw of the text, as a rule a little more than there is. */
export function reportedOf(
  inputTokens: number,
  { usage, chunks }: Pick<VendorAnswer, 'usage' | 'chunks'>,
): ReportedUsage {
  const seen = chunks.reduce((sum, tokens) => sum + tokens, 0);
  const isGuess = usage === undefined;
  return { usage: usage ?? { input: inputTokens, output: seen }, isGuess, isWhole: true, seen };
}

/** The text of a chunk: the first names the request. */
export const textOf = ({ id }: Trace, chunks: readonly number[], index: number): string =>
  index === 0 ? id : ` ${chunks[index]}`;

export class MeteredAnswer implements AsyncIterableIterator<Uint8Array> {
  readonly #options: MeteredAnswerOptions;
  #at = 0;
  #error: Error | undefined;
  #waiting: { resolve(step: Step): void; reject(error: Error): void } | undefined;

  constructor(options: MeteredAnswerOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The first event of a stream has come: it is counted before anybody knows whether this try has won. */
  begin(): void {
    const { branch, attempt, answer } = this.#options;
    this.#take(answer.chunks[0]!);
    branch.get(spendGuard).observe(attempt.seen);
  }

  /** All of an answer that is not streamed. */
  whole(): Uint8Array {
    const { trace, answer } = this.#options;
    this.#end();
    return Buffer.from(answer.chunks.map((_tokens, index) => textOf(trace, answer.chunks, index)).join(''));
  }

  next(): Promise<Step> {
    const { setting, life, answer, attempt } = this.#options;
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (attempt.over) return Promise.resolve({ done: true, value: undefined });
    if (this.#at === 0) return Promise.resolve(this.#handOn());
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      setting.schedule.after(setting.chance.delay(answer.chunkMeanMs), life, 'chunk', () => {
        if (!attempt.over) this.#step(resolve);
      });
    });
  }

  #step(resolve: (step: Step) => void): void {
    const { chunks, cutAfter } = this.#options.answer;
    if (cutAfter === this.#at) this.break(new GatewayError('upstream_failed', 'cut'));
    else if (this.#at === chunks.length) {
      this.#end();
      resolve({ done: true, value: undefined });
    } else if (this.#show(chunks[this.#at]!)) resolve(this.#handOn());
    else this.break(new GatewayError('insufficient_balance', 'used up'));
  }

  #handOn(): Step {
    const { trace, answer } = this.#options;
    this.#at += 1;
    return { done: false, value: Buffer.from(textOf(trace, answer.chunks, this.#at - 1)) };
  }

  #take(tokens: number): void {
    const { trace, attempt } = this.#options;
    attempt.seen += tokens;
    attempt.bill = { input: trace.inputTokens, output: attempt.seen };
  }

  /** false: the client's money is used up. */
  #show(tokens: number): boolean {
    const { setting, trace, branch, attempt } = this.#options;
    this.#take(tokens);
    const goesOn = branch.get(spendGuard).observe(attempt.seen);
    if (trace.winner !== attempt) return goesOn;
    trace.seen = attempt.seen;
    setting.oracle.observed(trace, goesOn);
    return goesOn;
  }

  /** The protocol's terminal event has come. */
  #end(): void {
    const { trace, answer, attempt } = this.#options;
    attempt.over = true;
    const reported = reportedOf(trace.inputTokens, answer);
    this.#report(reported, reported.isGuess ? reported.usage : heard(reported.usage, trace.id));
    attempt.bill = reported.usage;
  }

  /** It goes no further, or no one wants more of it. What the client is shown is counted by the meter too. */
  break(error: Error): void {
    const { setting, trace, attempt } = this.#options;
    if (attempt.over) return;
    attempt.over = true;
    const isReported = trace.winner !== attempt || setting.chance.oneIn(2);
    const { seen } = attempt;
    const usage = { input: trace.inputTokens, output: seen };
    if (isReported) this.#report({ usage, isGuess: setting.chance.oneIn(2), isWhole: false, seen });
    this.#error = error;
    this.#waiting?.reject(error);
  }

  async return(): Promise<Step> {
    this.break(new GatewayError('client_left', 'the reader left'));
    return { done: true, value: undefined };
  }

  #report(reported: ReportedUsage, usage = reported.usage): void {
    const { branch, attempt, trace } = this.#options;
    attempt.reported = reported;
    branch.set(usageReport, reportOf(trace.id, reported, usage));
  }
}
