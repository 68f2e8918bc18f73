/**
 * The usage report of one answer, computed on each read, so that it is right for complete, cut and abandoned answers.
 */

import type { JsonObject } from '../../../core/json/json.ts';
import type { Call, SeenAnswer, Unreported, UsageReport } from '../../common/domain/calls.ts';
import type { Services } from '../../common/domain/prices.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { hasErrorIn } from '../../common/kit/upstream-errors.ts';
import { isPossibleAnswer, type ModelSize } from '../../common/wire/possible-usage.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';
import { answerTokens } from './estimate.ts';

export class LiveReport implements UsageReport {
  readonly #usageMeter: UsageMeter;
  readonly #call: Call;
  readonly #size: ModelSize;
  /** The upstream failed or reported an error. */
  broken = false;
  /** By what `look` was given. */
  hasError = false;
  refusedHere = false;
  #reportsRead = 0;
  #reportedOutput = 0;
  #isBelieved = true;

  constructor(usageMeter: UsageMeter, call: Call, size: ModelSize) {
    this.#usageMeter = usageMeter;
    this.#call = call;
    this.#size = size;
  }

  /** At a body or frame that the client gets in another form. */
  look(json: JsonObject): void {
    if (hasErrorIn(json)) this.hasError = true;
  }

  get usage(): Usage {
    const { reading } = this.#usageMeter;
    if (this.broken && this.#isEmpty()) return {};
    if (reading.hasInput && reading.hasOutput && this.#missingOutput() === 0) return reading.usage;
    const usage: { -readonly [K in keyof Usage]: Usage[K] } = { ...reading.usage };
    if (!reading.hasInput) usage.input = (usage.input ?? 0) + this.#call.inputTokens;
    const missing = this.#missingOutput();
    if (missing > 0 || !reading.hasOutput) usage.output = (usage.output ?? 0) + missing;
    return usage;
  }

  /**
   * Output tokens so far, for the reservation: the last report if it is possible, and an estimate for the text since. Called for each
   * chunk.
   */
  get answeredTokens(): number {
    const { text } = this.#usageMeter;
    if (text.reports !== this.#reportsRead) {
      this.#reportsRead = text.reports;
      const { usage } = this.#usageMeter.reading;
      // An impossible count is not charged, so it must not stop the answer.
      const isPossible = isPossibleAnswer(usage, this.#call, this.#size, this.seen);
      this.#reportedOutput = isPossible ? outputOf(usage) : 0;
      this.#isBelieved = isPossible;
    }
    const { bytes, frames, bytesUnreported, framesUnreported } = text;
    if (!this.#isBelieved) return answerTokens(bytes, frames);
    return this.#reportedOutput + answerTokens(bytesUnreported, framesUnreported);
  }

  get estimated(): boolean {
    const { hasInput, hasOutput, isUncertain } = this.#usageMeter.reading;
    if (this.broken && this.#isEmpty()) return false;
    return !hasInput || !hasOutput || isUncertain === true || this.#missingOutput() > 0;
  }

  get terminal(): boolean {
    return this.#usageMeter.complete && !this.broken;
  }

  get upstreamId(): string | undefined {
    return storable(this.#usageMeter.upstreamId);
  }

  get seen(): SeenAnswer {
    const { bytes, frames } = this.#usageMeter.text;
    return { bytes, tokens: answerTokens(bytes, frames) };
  }

  get unreported(): Unreported | undefined {
    const { text, reading } = this.#usageMeter;
    if (!this.estimated) return undefined;
    const bytes = reading.hasOutput ? text.bytesUnreported : text.bytes;
    return { prompt: !reading.hasInput, bytes, tokens: this.#missingOutput() };
  }

  get finish(): string | undefined {
    return storable(this.#usageMeter.finish);
  }

  get services(): Services {
    return this.#usageMeter.services ?? {};
  }

  /** Whether an upstream that failed had answered and reported nothing: nothing was consumed. */
  #isEmpty(): boolean {
    const { hasInput, hasOutput } = this.#usageMeter.reading;
    return !hasInput && !hasOutput && this.#usageMeter.text.bytes === 0;
  }

  /**
   * Output tokens that no report covers. Reported output of a complete answer is final; otherwise the text since the
   * last report is estimated (some vendors report repeatedly, some report a zero at the start).
   */
  #missingOutput(): number {
    const { text, reading, complete } = this.#usageMeter;
    if (!reading.hasOutput) return answerTokens(text.bytes, text.frames);
    if (complete && outputOf(reading.usage) > 0) return 0;
    return answerTokens(text.bytesUnreported, text.framesUnreported);
  }
}

const longestText = 500;
/** Most ids and reasons. */
const plain = /^[\w.:-]*$/;

/** Bounds a text of the upstream and removes characters that databases refuse, as it is stored with the ledger. */
function storable(text: string | undefined): string | undefined {
  if (text === undefined || (text.length <= longestText && plain.test(text))) return text;
  return text.slice(0, longestText).toWellFormed().replaceAll('\0', '\ufffd');
}

function outputOf({ output, reasoning, output_audio: audio, output_image: image }: Usage): number {
  return (output ?? 0) + (reasoning ?? 0) + (audio ?? 0) + (image ?? 0);
}
