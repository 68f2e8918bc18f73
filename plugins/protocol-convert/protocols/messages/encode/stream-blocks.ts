/** Open blocks of a streamed answer: each buffers parts that cannot be sent yet and encodes the rest. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { SearchPart } from '../../../../common/canonical/prompt.ts';
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

/** Assigns block indexes in the order in which blocks start on the wire. */
export interface Indexes {
  next: number;
}

/** Common interface of blocks. Blocks form a queue; only the first one writes. */
export interface StreamBlock {
  /** Number of the block in the events. */
  readonly number: number;
  ended: boolean;
  hold(text: string): void;
  /** Frames of everything that can be sent now, with the stop if the block has ended. */
  write(indexes: Indexes): string;
  /** The frame of more text, if it can be sent at once; undefined: buffer it with `hold` and call `write`. */
  delta?(text: string): string | undefined;
}

/** Common base of text and thinking: they start with their first text and stream further text as it arrives. */
class GrowingBlock implements StreamBlock {
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
    const frames = this.open(indexes) + this.emit();
    return this.ended ? frames + blockStopFrame(this.index) : frames;
  }

  /** The buffered text in one frame. */
  protected emit(): string {
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
  #opaqueState: string | undefined;
  #redacted = false;

  constructor(number: number, seal: Seal) {
    super(number, { type: 'thinking', thinking: '', signature: '' }, 'thinking_delta');
    this.#seal = seal;
  }

  end(opaqueState: string | undefined, redacted: boolean): void {
    this.ended = true;
    this.#opaqueState = opaqueState;
    this.#redacted = redacted;
  }

  /** The signature is the last delta of a block; a redacted block has no other content. */
  override write(indexes: Indexes): string {
    if (!this.ended) return super.write(indexes);
    if (this.#redacted && this.isEmpty)
      return wholeBlockFrames(indexes.next++, redactedBlock(this.#opaqueState, this.#seal));
    const frames = this.open(indexes) + this.emit();
    const signature = this.#seal(this.#opaqueState ?? '');
    return frames + deltaFrame(this.index, 'signature_delta', signature) + blockStopFrame(this.index);
  }
}

/**
 * A tool call. It is buffered until it is complete: only then is it known whether its arguments are the JSON object that
 * clients expect, and whether it is signed. An eager call is streamed, like the protocol's own fine-grained tool streaming.
 */
export class ToolBlock implements StreamBlock {
  readonly number: number;
  readonly #call: { readonly id: string; readonly name: string; readonly custom: boolean };
  readonly #isEager: boolean;
  readonly #seal: Seal;
  ended = false;
  /** Arguments that were not sent yet. */
  #input = '';
  #isSent = false;
  /** It does not start as an object: an eager call waits for its end like any other. */
  #isOdd = false;
  #index = -1;
  #opaqueState: string | undefined;
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

  end(opaqueState: string | undefined, isCut: boolean): void {
    this.ended = true;
    this.#opaqueState = opaqueState;
    this.#isCut = isCut;
  }

  write(indexes: Indexes): string {
    let frames = this.#isEager ? this.#encodeEagerly(indexes) : '';
    if (!this.ended) return frames;
    // Nothing was sent of a buffered call that was cut off, so that the client cannot run it by mistake.
    if (this.#isCut && this.#index === -1) return '';
    if (this.#opaqueState !== undefined && this.#index === -1)
      frames += this.#signature(indexes.next++, this.#opaqueState);
    frames += this.#open(indexes);
    if (!this.#isSent && !this.#isCut)
      frames += deltaFrame(this.#index, 'input_json_delta', inputObjectJson(this.#input, this.#call.custom));
    return frames + blockStopFrame(this.#index);
  }

  #encodeEagerly(indexes: Indexes): string {
    const frames = this.#open(indexes);
    const more = this.#input;
    if (more === '' || this.#isOdd) return frames;
    if (!this.#isSent) {
      const start = more.trimStart();
      this.#isOdd = start !== '' && !start.startsWith('{');
      if (start === '' || this.#isOdd) return frames;
    }
    this.#isSent = true;
    this.#input = '';
    return frames + deltaFrame(this.#index, 'input_json_delta', more);
  }

  /** Calls have no member for a signature: an empty thinking block before the call carries it. */
  #signature(index: number, opaqueState: string): string {
    const start = blockStartFrame(index, { type: 'thinking', thinking: '', signature: '' });
    return start + deltaFrame(index, 'signature_delta', this.#seal(opaqueState)) + blockStopFrame(index);
  }

  #open(indexes: Indexes): string {
    if (this.#index !== -1) return '';
    this.#index = indexes.next++;
    return blockStartFrame(this.#index, toolUseBlock(this.#call.id, this.#call.name, {}));
  }
}

/** A search: two blocks, complete at once. */
export class SearchBlock implements StreamBlock {
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
