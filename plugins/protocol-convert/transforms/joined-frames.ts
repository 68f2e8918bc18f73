/**
 * Frames that differ from the one before in one text alone, joined as long as the transforms would hold their texts anyway: they are decoded, given to
 * the transforms and encoded once. Pure.
 */
import type { ReadFrame, RepeatedFrame } from '../../common/wire/frame.ts';
import type { AnswerTransforms } from './chain.ts';

export class JoinedFrames {
  readonly #transforms: AnswerTransforms;
  readonly #decode: (frame: RepeatedFrame) => void;
  #frame: RepeatedFrame | undefined;
  #text = '';
  #room = 0;

  /** `decode` gets a frame with the texts of all that were joined. */
  constructor(transforms: AnswerTransforms, decode: (frame: RepeatedFrame) => void) {
    this.#transforms = transforms;
    this.#decode = decode;
  }

  get isOpen(): boolean {
    return this.#frame !== undefined;
  }

  /** Whether this frame waits with those before it. Otherwise call `leave` before it is decoded. */
  takes({ repeated }: ReadFrame): boolean {
    if (repeated === undefined) return false;
    const { text } = repeated;
    if (this.#frame === undefined) {
      this.#room = this.#transforms.room;
      if (text.length > this.#room) return false;
      this.#frame = repeated;
    } else if (this.#frame !== repeated || this.#text.length + text.length > this.#room) return false;
    this.#text += text;
    return true;
  }

  /** What was joined is decoded. The frame that was read last keeps its own text. */
  leave(): void {
    const frame = this.#frame;
    if (frame === undefined) return;
    const { text } = frame;
    frame.say(this.#text);
    this.drop();
    this.#decode(frame);
    frame.say(text);
  }

  drop(): void {
    this.#frame = undefined;
    this.#text = '';
  }
}
