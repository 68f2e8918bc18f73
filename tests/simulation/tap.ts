/** The answer to a try that races, as a protocol's tap hands it on: pulled chunk by chunk, counted, and told of at its end. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { LiveBranch } from '../../core/http/exchange.ts';
import { spendGuard, usageReport } from '../../plugins/common/domain/calls.ts';
import type { Setting } from './ask.ts';
import type { Life } from './schedule.ts';
import type { Story, Told, Try } from './story.ts';
import { reportOf } from './talk.ts';
import { heard } from './told.ts';
import type { VendorAnswer } from './vendors.ts';

export interface TapOptions {
  readonly setting: Setting;
  readonly life: Life;
  readonly story: Story;
  readonly branch: LiveBranch;
  readonly attempt: Try;
  readonly answer: VendorAnswer;
}

type Step = IteratorResult<Uint8Array>;

/** A tap that was told nothing estimates by what it saw of the text, as a rule a little more than there is. */
export function toldOf(inputTokens: number, { usage, chunks }: Pick<VendorAnswer, 'usage' | 'chunks'>): Told {
  const seen = chunks.reduce((sum, tokens) => sum + tokens, 0);
  const isGuess = usage === undefined;
  return { usage: usage ?? { input: inputTokens, output: seen }, isGuess, isWhole: true, seen };
}

/** The text of a chunk: the first names the request. */
export const textOf = ({ id }: Story, chunks: readonly number[], index: number): string =>
  index === 0 ? id : ` ${chunks[index]}`;

export class Tap implements AsyncIterableIterator<Uint8Array> {
  readonly #options: TapOptions;
  #at = 0;
  #error: Error | undefined;
  #waiting: { resolve(step: Step): void; reject(error: Error): void } | undefined;

  constructor(options: TapOptions) {
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

  /** Of an answer that is not streamed: all of it. */
  whole(): Uint8Array {
    const { story, answer } = this.#options;
    this.#end();
    return Buffer.from(answer.chunks.map((_tokens, index) => textOf(story, answer.chunks, index)).join(''));
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
    const { story, answer } = this.#options;
    this.#at += 1;
    return { done: false, value: Buffer.from(textOf(story, answer.chunks, this.#at - 1)) };
  }

  #take(tokens: number): void {
    const { story, attempt } = this.#options;
    attempt.seen += tokens;
    attempt.bill = { input: story.inputTokens, output: attempt.seen };
  }

  /** false: the client's money is used up. */
  #show(tokens: number): boolean {
    const { setting, story, branch, attempt } = this.#options;
    this.#take(tokens);
    const goesOn = branch.get(spendGuard).observe(attempt.seen);
    if (story.winner !== attempt) return goesOn;
    story.seen = attempt.seen;
    setting.oracle.observed(story, goesOn);
    return goesOn;
  }

  /** The protocol's terminal event has come. */
  #end(): void {
    const { story, answer, attempt } = this.#options;
    attempt.over = true;
    const told = toldOf(story.inputTokens, answer);
    this.#report(told, told.isGuess ? told.usage : heard(told.usage, story.id));
    attempt.bill = told.usage;
  }

  /** It goes no further, or nobody wants more of it. What the client is shown is counted by the meter too. */
  break(error: Error): void {
    const { setting, story, attempt } = this.#options;
    if (attempt.over) return;
    attempt.over = true;
    const isTold = story.winner !== attempt || setting.chance.oneIn(2);
    const { seen } = attempt;
    const usage = { input: story.inputTokens, output: seen };
    if (isTold) this.#report({ usage, isGuess: setting.chance.oneIn(2), isWhole: false, seen });
    this.#error = error;
    this.#waiting?.reject(error);
  }

  async return(): Promise<Step> {
    this.break(new GatewayError('client_left', 'the reader left'));
    return { done: true, value: undefined };
  }

  #report(told: Told, usage = told.usage): void {
    const { branch, attempt, story } = this.#options;
    attempt.told = told;
    branch.set(usageReport, reportOf(story.id, told, usage));
  }
}
