/** Blocks of an answer on their way out: each holds what cannot be told yet, and words what can. */
import type { SearchPart } from '../../canon.ts';
import type { JsonObject } from '../../json.ts';
import { inputObjectJson, redactedBlock, type Seal, searchBlocks, toolUseBlock } from './answer-blocks.ts';
import {
  blockStartFrame,
  blockStopFrame,
  type DeltaType,
  deltaFrame,
  deltaHead,
  deltaTail,
  wholeBlockFrames,
} from './frames.ts';

/** Gives out the indexes of blocks, in the order in which they begin on the wire. */
export interface Indexes {
  next: number;
}

/** What the encoder asks of any block. Blocks stand in line; only the first one is asked to write. */
export interface OutBlock {
  /** As the events number it. */
  readonly number: number;
  ended: boolean;
  hold(text: string): void;
  /** Frames of all that can be told now, with its stop if it has ended. */
  write(indexes: Indexes): string;
  /** The frame of more text, where that may go out at once; undefined: it has to be held and written. */
  delta?(text: string): string | undefined;
}

/** What text and thinking have in common: they begin with their first text and grow on the wire as it comes. */
class GrowingBlock implements OutBlock {
  readonly number: number;
  readonly #start: object;
  readonly #type: DeltaType;
  ended = false;
  index = -1;
  #head = '';
  #held = '';

  constructor(number: number, start: object, type: DeltaType) {
    this.number = number;
    this.#start = start;
    this.#type = type;
  }

  hold(text: string): void {
    this.#held += text;
  }

  delta(text: string): string | undefined {
    if (this.index === -1 || this.#held !== '') return undefined;
    return text === '' ? '' : this.#head + JSON.stringify(text) + deltaTail;
  }

  get isEmpty(): boolean {
    return this.index === -1 && this.#held === '';
  }

  write(indexes: Indexes): string {
    if (this.isEmpty) return '';
    const frames = this.open(indexes) + this.tell();
    return this.ended ? frames + blockStopFrame(this.index) : frames;
  }

  /** What is held, in one frame. */
  protected tell(): string {
    const held = this.#held;
    this.#held = '';
    return held === '' ? '' : this.#head + JSON.stringify(held) + deltaTail;
  }

  protected open(indexes: Indexes): string {
    if (this.index !== -1) return '';
    this.index = indexes.next++;
    this.#head = deltaHead(this.index, this.#type);
    return blockStartFrame(this.index, this.#start);
  }
}

export class TextBlock extends GrowingBlock {
  #citations: JsonObject[] = [];

  constructor(number: number) {
    super(number, { type: 'text', text: '' }, 'text_delta');
  }

  cite(citation: JsonObject): void {
    this.#citations.push(citation);
  }

  override get isEmpty(): boolean {
    return super.isEmpty && this.#citations.length === 0;
  }

  override write(indexes: Indexes): string {
    let frames = this.#citations.length === 0 ? '' : this.open(indexes);
    for (const citation of this.#citations) frames += deltaFrame(this.index, 'citations_delta', citation);
    this.#citations = [];
    return frames + super.write(indexes);
  }
}

export class ThinkingBlock extends GrowingBlock {
  readonly #seal: Seal;
  #keepsake: string | undefined;
  #redacted = false;

  constructor(number: number, seal: Seal) {
    super(number, { type: 'thinking', thinking: '', signature: '' }, 'thinking_delta');
    this.#seal = seal;
  }

  end(keepsake: string | undefined, redacted: boolean): void {
    this.ended = true;
    this.#keepsake = keepsake;
    this.#redacted = redacted;
  }

  /** The signature is the last that a block says; one that is redacted says nothing else. */
  override write(indexes: Indexes): string {
    if (!this.ended) return super.write(indexes);
    if (this.#redacted && this.isEmpty)
      return wholeBlockFrames(indexes.next++, redactedBlock(this.#keepsake, this.#seal));
    const frames = this.open(indexes) + this.tell();
    const signature = this.#seal(this.#keepsake ?? '');
    return frames + deltaFrame(this.index, 'signature_delta', signature) + blockStopFrame(this.index);
  }
}

/**
 * A tool call. It is held until it is whole, for only then is it known whether its arguments are the JSON object that
 * clients count on, and whether it is signed. An eager one is told as it comes, like the protocol's own eager streaming.
 */
export class ToolBlock implements OutBlock {
  readonly number: number;
  readonly #call: { readonly id: string; readonly name: string; readonly custom: boolean };
  readonly #isEager: boolean;
  readonly #seal: Seal;
  ended = false;
  /** What of the arguments has not been told. */
  #input = '';
  #isTold = false;
  /** It does not begin as an object: an eager call waits for its end like any other. */
  #isOdd = false;
  #index = -1;
  #keepsake: string | undefined;
  #isCut = false;

  constructor(
    call: { readonly block: number; readonly id: string; readonly name: string; readonly custom: boolean },
    isEager: boolean,
    seal: Seal,
  ) {
    this.number = call.block;
    this.#call = call;
    this.#isEager = isEager && !call.custom;
    this.#seal = seal;
  }

  get length(): number {
    return this.#input.length;
  }

  hold(text: string): void {
    this.#input += text;
  }

  end(keepsake: string | undefined, isCut: boolean): void {
    this.ended = true;
    this.#keepsake = keepsake;
    this.#isCut = isCut;
  }

  write(indexes: Indexes): string {
    let frames = this.#isEager ? this.#writeEagerly(indexes) : '';
    if (!this.ended) return frames;
    // Nothing is known yet of a held call that was cut off: nobody could carry it out by mistake.
    if (this.#isCut && this.#index === -1) return '';
    if (this.#keepsake !== undefined && this.#index === -1) frames += this.#signature(indexes.next++, this.#keepsake);
    frames += this.#open(indexes);
    if (!this.#isTold && !this.#isCut)
      frames += deltaFrame(this.#index, 'input_json_delta', inputObjectJson(this.#input, this.#call.custom));
    return frames + blockStopFrame(this.#index);
  }

  #writeEagerly(indexes: Indexes): string {
    const frames = this.#open(indexes);
    const more = this.#input;
    if (more === '' || this.#isOdd) return frames;
    if (!this.#isTold) {
      const start = more.trimStart();
      this.#isOdd = start !== '' && !start.startsWith('{');
      if (start === '' || this.#isOdd) return frames;
    }
    this.#isTold = true;
    this.#input = '';
    return frames + deltaFrame(this.#index, 'input_json_delta', more);
  }

  /** Calls have no place for a signature: an empty thinking block in front of it carries it. */
  #signature(index: number, keepsake: string): string {
    const start = blockStartFrame(index, { type: 'thinking', thinking: '', signature: '' });
    return start + deltaFrame(index, 'signature_delta', this.#seal(keepsake)) + blockStopFrame(index);
  }

  #open(indexes: Indexes): string {
    if (this.#index !== -1) return '';
    this.#index = indexes.next++;
    return blockStartFrame(this.#index, toolUseBlock(this.#call.id, this.#call.name, {}));
  }
}

/** A search: two blocks, whole at once. */
export class SearchBlock implements OutBlock {
  readonly number: number;
  readonly #search: SearchPart;
  readonly #seal: Seal;
  ended = true;

  constructor(number: number, search: SearchPart, seal: Seal) {
    this.number = number;
    this.#search = search;
    this.#seal = seal;
  }

  hold(): void {}

  write(indexes: Indexes): string {
    const [query, found] = searchBlocks(this.#search, this.#seal);
    const index = indexes.next++;
    return (
      blockStartFrame(index, { ...query, input: {} }) +
      deltaFrame(index, 'input_json_delta', JSON.stringify(query['input'])) +
      blockStopFrame(index) +
      wholeBlockFrames(indexes.next++, found)
    );
  }
}
