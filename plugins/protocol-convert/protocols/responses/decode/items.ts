/** Decodes the items of an answer, whole or streamed: each byte is emitted once. Pure. */

import { type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { TokenLogprob } from '../../../../common/canonical/prompt.ts';
import { bytesSource } from '../../../../common/encoding/media.ts';
import { citationOf, logprobsOf, ranCode, searchOf } from './details.ts';

/** One item of the answer. `part`: its `content_index` or `summary_index`. */
export interface ItemDecoder {
  readonly isDone: boolean;
  readonly hasRefused: boolean;
  added(item: JsonObject): void;
  delta(type: string, text: string, part: number, logprobs: readonly TokenLogprob[] | undefined): void;
  /** The full text of a part; only its new end is emitted. */
  whole(type: string, text: string, part: number): void;
  annotation(annotation: unknown, part: number): void;
  /** The item as it is after its end; later versions change nothing. */
  done(item: JsonObject): void;
  /** The item ends without further events. */
  flush(): void;
}

/** Target of the decoders' events, and the decoder that emitted last. */
export interface DecodeTarget {
  readonly events: ReplyEvents;
  lastEmitter: ItemDecoder | undefined;
}

/** undefined: an answer of another protocol cannot contain items of this type. `index`: the item's `output_index`. */
export function createItemDecoder(type: string, target: DecodeTarget, index: number): ItemDecoder | undefined {
  switch (type) {
    case 'message':
      return new MessageDecoder(target);
    case 'reasoning':
      return new ReasoningDecoder(target);
    case 'function_call':
    case 'custom_tool_call':
      return new CallDecoder(target, index, type === 'custom_tool_call');
    case 'web_search_call':
    case 'image_generation_call':
    case 'code_interpreter_call':
      return new WholeItemDecoder(target);
    default:
      return undefined;
  }
}

/** Ignores everything that a subclass does not decode. */
abstract class BaseItemDecoder implements ItemDecoder {
  readonly #target: DecodeTarget;
  hasRefused = false;
  isDone = false;

  constructor(target: DecodeTarget) {
    this.#target = target;
  }

  /** The events to emit something of this item to. */
  protected get events(): ReplyEvents {
    this.#target.lastEmitter = this;
    return this.#target.events;
  }

  /** No other item has emitted anything since this one did. */
  protected get isLastEmitter(): boolean {
    return this.#target.lastEmitter === this;
  }

  added(_item: JsonObject): void {}
  delta(_type: string, _text: string, _part: number, _logprobs: readonly TokenLogprob[] | undefined): void {}
  whole(_type: string, _text: string, _part: number): void {}
  annotation(_annotation: unknown, _part: number): void {}
  flush(): void {}

  done(item: JsonObject): void {
    if (this.isDone) return;
    this.decode(item);
    this.isDone = true;
  }

  protected abstract decode(item: JsonObject): void;
}

interface EmittedPart {
  text: string;
  annotations: number;
  /** The item has repeated it. */
  isWhole: boolean;
}

class MessageDecoder extends BaseItemDecoder {
  /** Characters and annotations that were emitted of each part. */
  readonly #emitted: EmittedPart[] = [];
  #current = 0;

  override delta(type: string, text: string, part: number, logprobs: readonly TokenLogprob[] | undefined): void {
    this.#part(part).text += text;
    if (type === 'response.output_text.delta') this.events.text(0, text, logprobs);
    else this.#refuse(text);
  }

  override whole(type: string, text: string, part: number): void {
    this.#emit(type === 'response.output_text.done', text, part, undefined);
  }

  override annotation(annotation: unknown, part: number): void {
    const citation = citationOf(annotation);
    this.#part(part).annotations++;
    // If another item has emitted since, this text can no longer be cited.
    if (citation !== undefined && this.isLastEmitter) this.events.citation(0, citation);
  }

  protected override decode(item: JsonObject): void {
    for (const [index, value] of listOf(item['content']).entries()) {
      const part = objectOf(value) ?? {};
      const isText = part['type'] === 'output_text' || part['type'] === 'text';
      const text = isText ? part['text'] : part['refusal'];
      if (typeof text === 'string') this.#emit(isText, text, index, logprobsOf(part['logprobs']));
      this.#part(index).isWhole = true;
      for (const annotation of listOf(part['annotations']).slice(this.#part(index).annotations)) {
        this.annotation(annotation, index);
      }
    }
    if (this.isLastEmitter) this.events.close(0);
  }

  #emit(isText: boolean, text: string, index: number, logprobs: readonly TokenLogprob[] | undefined): void {
    this.#recognise(text, index);
    const part = this.#part(index);
    if (text.length <= part.text.length) return;
    const rest = text.slice(part.text.length);
    // Log probabilities belong to the whole text: if a part of it was emitted, so were they.
    const partLogprobs = part.text === '' ? logprobs : undefined;
    part.text = text;
    if (isText) this.events.text(0, rest, partLogprobs);
    else this.#refuse(rest);
  }

  /** Some vendors give a part another number in its deltas than in its item: the text decides which part it is. */
  #recognise(text: string, index: number): void {
    if ((this.#emitted[index]?.text ?? '') !== '') return;
    const said = this.#emitted.find(
      (part) => part !== undefined && !part.isWhole && part.text !== '' && text.startsWith(part.text),
    );
    if (said === undefined) return;
    if (this.#emitted[this.#current] === said) this.#current = index;
    this.#emitted[index] = said;
  }

  #refuse(text: string): void {
    this.hasRefused = true;
    this.events.refusal(0, text);
  }

  /** Each part is a block of its own: citation offsets are relative to it. */
  #part(index: number): EmittedPart {
    if (index !== this.#current) {
      if (this.isLastEmitter) this.events.close(0);
      this.#current = index;
    }
    const known = this.#emitted[index];
    if (known !== undefined) return known;
    const fresh = { text: '', annotations: 0, isWhole: false };
    this.#emitted[index] = fresh;
    return fresh;
  }
}

/** All parts of one item form one block, with a blank line between them. */
class ReasoningDecoder extends BaseItemDecoder {
  /** Summary or raw text, whichever arrives first: the other is a version of different length. */
  #kind: 'summary' | 'text' | undefined;
  #current = -1;
  readonly #lengths: number[] = [];
  #opaqueState: string | undefined;

  override added(item: JsonObject): void {
    this.#opaqueState = textOf(item['encrypted_content']);
  }

  override delta(type: string, text: string, part: number): void {
    this.#emit(kindOf(type), text, part);
  }

  override whole(type: string, text: string, part: number): void {
    this.#emit(kindOf(type), text.slice(this.#lengths[part] ?? 0), part);
  }

  protected override decode(item: JsonObject): void {
    this.#opaqueState = textOf(item['encrypted_content']) ?? this.#opaqueState;
    for (const kind of ['summary', 'text'] as const) {
      for (const [index, value] of listOf(item[kind === 'summary' ? 'summary' : 'content']).entries()) {
        const text = textOf(objectOf(value)?.['text']);
        if (text !== undefined && (this.#kind ?? kind) === kind) {
          this.#emit(kind, text.slice(this.#lengths[index] ?? 0), index);
        }
      }
    }
    // A block that another item has ended can no longer carry the opaque state.
    if (this.isLastEmitter) this.events.close(0, this.#opaqueState);
    else if (this.#opaqueState !== undefined) this.events.redacted(0, this.#opaqueState);
  }

  override flush(): void {
    this.done({});
  }

  #emit(kind: 'summary' | 'text', text: string, part: number): void {
    if (text === '' || this.isDone || (this.#kind ?? kind) !== kind) return;
    this.#kind = kind;
    if (this.#current >= 0 && part !== this.#current) this.events.reasoning(0, '\n\n');
    this.#current = part;
    this.#lengths[part] = (this.#lengths[part] ?? 0) + text.length;
    this.events.reasoning(0, text);
  }
}

function kindOf(type: string): 'summary' | 'text' {
  return type.startsWith('response.reasoning_summary') ? 'summary' : 'text';
}

class CallDecoder extends BaseItemDecoder {
  readonly #key: number;
  readonly #custom: boolean;
  /** Arguments from `…_arguments.done`, in case that nothing else ends the call. */
  #input: string | undefined;

  constructor(target: DecodeTarget, key: number, custom: boolean) {
    super(target);
    this.#key = key;
    this.#custom = custom;
  }

  override added(item: JsonObject): void {
    this.events.call(0, this.#key, {
      id: textOf(item['call_id']),
      name: textOf(item['name']),
      custom: this.#custom || undefined,
    });
  }

  override delta(_type: string, text: string): void {
    this.events.call(0, this.#key, { input: text });
  }

  override whole(_type: string, text: string): void {
    this.#input = text;
  }

  protected override decode(item: JsonObject): void {
    this.added(item);
    const input = textOf(item[this.#custom ? 'input' : 'arguments']) ?? this.#input;
    this.events.endCall(0, this.#key, {
      ...(input === undefined ? {} : { input }),
      isCut: item['status'] === 'incomplete',
    });
  }

  override flush(): void {
    if (this.isDone || this.#input === undefined) return;
    this.events.endCall(0, this.#key, { input: this.#input });
  }
}

/** Searches, images, and code that the vendor ran: emitted when complete. */
class WholeItemDecoder extends BaseItemDecoder {
  protected override decode(item: JsonObject): void {
    if (item['type'] === 'web_search_call') {
      this.events.search(0, searchOf(item));
      return;
    }
    if (item['type'] === 'code_interpreter_call') {
      this.events.text(0, ranCode(item));
      // Citation offsets are relative to the start of the model's own text.
      this.events.close(0);
      return;
    }
    const base64 = textOf(item['result']);
    if (base64 === undefined) return;
    const source = bytesSource(base64, `image/${textOf(item['output_format']) ?? 'png'}`);
    this.events.media(0, { kind: 'image', source });
  }
}
