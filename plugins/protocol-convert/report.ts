/** The usage fact of one answer: computed when it is read, so that it is right on complete, cut and abandoned answers. */
import type { Services } from '../../core/prices.ts';
import type { Usage } from '../../core/usage.ts';
import type { Call, UsageReport } from '../../core/vocabulary.ts';
import { answerTokens } from './estimate.ts';
import type { Tap } from './protocol.ts';

export class LiveReport implements UsageReport {
  readonly #tap: Tap;
  readonly #call: Call;
  /** The upstream broke off or told of an error. */
  broken = false;
  #reportsRead = 0;
  #reportedOutput = 0;

  constructor(tap: Tap, call: Call) {
    this.#tap = tap;
    this.#call = call;
  }

  get usage(): Usage {
    const { reading } = this.#tap;
    if (this.#nothingCame()) return {};
    if (reading.hasInput && reading.hasOutput && this.#missingOutput() === 0) return reading.usage;
    const usage: { -readonly [K in keyof Usage]: Usage[K] } = { ...reading.usage };
    if (!reading.hasInput) usage.input = (usage.input ?? 0) + this.#call.inputTokens;
    const missing = this.#missingOutput();
    if (missing > 0 || !reading.hasOutput) usage.output = (usage.output ?? 0) + missing;
    return usage;
  }

  /** Output tokens so far, for the money that is held: the last report, and the texts since by their size. Asked for each chunk. */
  get answeredTokens(): number {
    const { text } = this.#tap;
    if (text.reports !== this.#reportsRead) {
      this.#reportsRead = text.reports;
      this.#reportedOutput = outputOf(this.#tap.reading.usage);
    }
    return this.#reportedOutput + answerTokens(text.bytesUnreported, text.framesUnreported);
  }

  get estimated(): boolean {
    const { hasInput, hasOutput } = this.#tap.reading;
    return !this.#nothingCame() && (!hasInput || !hasOutput || this.#missingOutput() > 0);
  }

  get terminal(): boolean {
    return this.#tap.complete && !this.broken;
  }

  get upstreamId(): string | undefined {
    return storable(this.#tap.upstreamId);
  }

  get finish(): string | undefined {
    return storable(this.#tap.finish);
  }

  get services(): Services {
    return this.#tap.services ?? {};
  }

  /** The upstream failed before any answer and reported no usage: nothing was consumed. */
  #nothingCame(): boolean {
    const { hasInput, hasOutput } = this.#tap.reading;
    return this.broken && !hasInput && !hasOutput && this.#tap.text.bytes === 0;
  }

  /**
   * Output tokens that no report covers. An answer that is complete and has reported output is believed; otherwise the
   * texts since the last report are estimated (some vendors report as they go, some report a zero at the start).
   */
  #missingOutput(): number {
    const { text, reading, complete } = this.#tap;
    if (!reading.hasOutput) return answerTokens(text.bytes, text.frames);
    if (complete && outputOf(reading.usage) > 0) return 0;
    return answerTokens(text.bytesUnreported, text.framesUnreported);
  }
}

const longestText = 500;

/** Bounded, and without what no database takes as text: these words are the upstream's, and go where the money is kept. */
function storable(text: string | undefined): string | undefined {
  return text?.slice(0, longestText).toWellFormed().replaceAll('\0', '\ufffd');
}

function outputOf({ output, reasoning, output_audio: audio, output_image: image }: Usage): number {
  return (output ?? 0) + (reasoning ?? 0) + (audio ?? 0) + (image ?? 0);
}
