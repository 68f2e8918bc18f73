/** Encodes one message item of a stream: its parts, deltas and annotations, each started and ended once. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { Citation, TokenLogprob } from '../../../../common/canonical/prompt.ts';
import type { Frames, Output } from './frames.ts';
import {
  annotationOf,
  type ItemStatus,
  logprobObject,
  messageItem,
  refusalPart,
  type Span,
  textPart,
} from './output-items.ts';

interface OpenPart {
  readonly kind: 'text' | 'refusal';
  /** `"item_id":…,"output_index":…,"content_index":…` */
  readonly place: string;
  readonly deltaHead: string;
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: JsonObject[];
}

/** Adjacent text blocks form one part of one message: clients display each message separately. */
export class MessageWriter {
  readonly #frames: Frames;
  readonly #output: Output;
  readonly #index: number;
  readonly #id: string;
  /** As JSON texts. */
  readonly #parts: string[] = [];
  #open: OpenPart | undefined;
  /** Offset of the current block in the open part. */
  #base = 0;
  /** Citations of the whole current block: its end is unknown so far. */
  #held: Citation[] = [];

  constructor(frames: Frames, output: Output, place: { readonly index: number; readonly id: string }) {
    this.#frames = frames;
    this.#output = output;
    this.#index = place.index;
    this.#id = place.id;
  }

  start(): string {
    const item = JSON.stringify(messageItem(this.#id, [], 'in_progress'));
    return this.#frames.frame('response.output_item.added', `"output_index":${this.#index},"item":${item}`);
  }

  /** Starts a block; it continues the open part if that has the same kind. */
  startPart(kind: 'text' | 'refusal'): string {
    if (this.#open?.kind === kind) {
      this.#base = this.#open.text.length;
      return '';
    }
    const ended = this.#endPart();
    const place = `"item_id":"${this.#id}","output_index":${this.#index},"content_index":${this.#parts.length}`;
    const deltaType = kind === 'text' ? 'response.output_text.delta' : 'response.refusal.delta';
    const deltaHead = this.#frames.deltaHead(deltaType, place);
    this.#open = { kind, place, deltaHead, text: '', annotations: [], logprobs: [] };
    this.#base = 0;
    const part = JSON.stringify(kind === 'text' ? textPart('', [], []) : refusalPart(''));
    return ended + this.#frames.frame('response.content_part.added', `${place},"part":${part}`);
  }

  text(text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    const part = this.#open;
    if (part === undefined) return '';
    part.text += text;
    if (logprobs === undefined) return this.#frames.textDelta(part.deltaHead, text, '[]');
    const encodedLogprobs = logprobs.map(logprobObject);
    part.logprobs.push(...encodedLogprobs);
    return this.#frames.textDelta(part.deltaHead, text, JSON.stringify(encodedLogprobs));
  }

  refusal(text: string): string {
    const part = this.#open;
    if (part === undefined) return '';
    part.text += text;
    return this.#frames.delta(part.deltaHead, text);
  }

  citation(citation: Citation): string {
    const { start, end } = citation;
    if (start === undefined || end === undefined) {
      this.#held.push(citation);
      return '';
    }
    return this.#annotate(citation, { start: this.#base + start, end: this.#base + end });
  }

  /** Ends the block; the part stays open for an adjacent block. */
  endBlock(): string {
    const held = this.#held;
    this.#held = [];
    const span = { start: this.#base, end: this.#open?.text.length ?? 0 };
    let frames = '';
    for (const citation of held) frames += this.#annotate(citation, span);
    return frames;
  }

  end(status: ItemStatus): string {
    const frames = this.endBlock() + this.#endPart();
    const item = endingWith(messageItem(this.#id, [], status), `[${this.#parts.join(',')}]`);
    this.#output.set(this.#index, item);
    return frames + this.#frames.frame('response.output_item.done', `"output_index":${this.#index},"item":${item}`);
  }

  #annotate(citation: Citation, span: Span): string {
    const part = this.#open;
    const annotation = part === undefined ? undefined : annotationOf(citation, span);
    if (part === undefined || annotation === undefined) return '';
    const members = `${part.place},"annotation_index":${part.annotations.length}`;
    part.annotations.push(annotation);
    return this.#frames.frame(
      'response.output_text.annotation.added',
      `${members},"annotation":${JSON.stringify(annotation)}`,
    );
  }

  #endPart(): string {
    const part = this.#open;
    if (part === undefined) return '';
    this.#open = undefined;
    const { kind, place, text, annotations, logprobs } = part;
    const isText = kind === 'text';
    const encodedText = JSON.stringify(text);
    const done = endingWith(isText ? textPart('', annotations, logprobs) : refusalPart(''), encodedText);
    this.#parts.push(done);
    const members = isText
      ? `"text":${encodedText},"logprobs":${JSON.stringify(logprobs)}`
      : `"refusal":${encodedText}`;
    return (
      this.#frames.frame(isText ? 'response.output_text.done' : 'response.refusal.done', `${place},${members}`) +
      this.#frames.frame('response.content_part.done', `${place},"part":${done}`)
    );
  }
}

/** An object's JSON with its last, empty member replaced by `json`: a long text occurs four times but is encoded once. */
function endingWith(object: JsonObject, json: string): string {
  return `${JSON.stringify(object).slice(0, -'""}'.length)}${json}}`;
}
