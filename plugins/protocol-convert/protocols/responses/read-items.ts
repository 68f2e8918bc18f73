/** Reads the items of an answer, whole or as they grow: each byte is told once. Pure. */
import type { TokenLogprob } from '../../canon.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { bytesSource } from '../../wording/media.ts';
import { citationOf, logprobsOf, ranCode, searchOf } from './read-details.ts';

/** One item of the answer. `part`: its `content_index` or `summary_index`. */
export interface ItemReader {
  readonly isDone: boolean;
  readonly hasRefused: boolean;
  added(item: JsonObject): void;
  delta(type: string, text: string, part: number, logprobs: readonly TokenLogprob[] | undefined): void;
  /** All of a part's text, of which only what has not come yet is told. */
  whole(type: string, text: string, part: number): void;
  annotation(annotation: unknown, part: number): void;
  /** The item as it is when it has ended; later ones change nothing. */
  done(item: JsonObject): void;
  /** Nothing more will come. */
  flush(): void;
}

/** Where readers tell what they read, and which of them spoke last. */
export interface Ear {
  readonly events: ReplyEvents;
  speaker: ItemReader | undefined;
}

/** undefined: items of this type have no place in an answer of another protocol. `index`: the item's `output_index`. */
export function createReader(type: string, ear: Ear, index: number): ItemReader | undefined {
  switch (type) {
    case 'message':
      return new MessageReader(ear);
    case 'reasoning':
      return new ReasoningReader(ear);
    case 'function_call':
    case 'custom_tool_call':
      return new CallReader(ear, index, type === 'custom_tool_call');
    case 'web_search_call':
    case 'image_generation_call':
    case 'code_interpreter_call':
      return new PieceReader(ear);
    default:
      return undefined;
  }
}

/** Does nothing with what it is not told to read. */
abstract class Reader implements ItemReader {
  readonly #ear: Ear;
  hasRefused = false;
  isDone = false;

  constructor(ear: Ear) {
    this.#ear = ear;
  }

  /** Where to tell something of this item. */
  protected get events(): ReplyEvents {
    this.#ear.speaker = this;
    return this.#ear.events;
  }

  /** Nothing was told of another item since this one was spoken of. */
  protected get isSpeaker(): boolean {
    return this.#ear.speaker === this;
  }

  added(_item: JsonObject): void {}
  delta(_type: string, _text: string, _part: number, _logprobs: readonly TokenLogprob[] | undefined): void {}
  whole(_type: string, _text: string, _part: number): void {}
  annotation(_annotation: unknown, _part: number): void {}
  flush(): void {}

  done(item: JsonObject): void {
    if (this.isDone) return;
    this.read(item);
    this.isDone = true;
  }

  protected abstract read(item: JsonObject): void;
}

class MessageReader extends Reader {
  /** Characters and annotations told of each part. */
  readonly #told: { length: number; annotations: number }[] = [];
  #current = 0;

  override delta(type: string, text: string, part: number, logprobs: readonly TokenLogprob[] | undefined): void {
    this.#part(part).length += text.length;
    if (type === 'response.output_text.delta') this.events.text(0, text, logprobs);
    else this.#refuse(text);
  }

  override whole(type: string, text: string, part: number): void {
    this.#tell(type === 'response.output_text.done', text, part, undefined);
  }

  override annotation(annotation: unknown, part: number): void {
    const citation = citationOf(annotation);
    this.#part(part).annotations++;
    // Where another item has spoken since, its text cannot be cited any more.
    if (citation !== undefined && this.isSpeaker) this.events.citation(0, citation);
  }

  protected override read(item: JsonObject): void {
    for (const [index, value] of listOf(item['content']).entries()) {
      const part = objectOf(value) ?? {};
      const isText = part['type'] === 'output_text' || part['type'] === 'text';
      const text = isText ? part['text'] : part['refusal'];
      if (typeof text === 'string') this.#tell(isText, text, index, logprobsOf(part['logprobs']));
      for (const annotation of listOf(part['annotations']).slice(this.#part(index).annotations)) {
        this.annotation(annotation, index);
      }
    }
    if (this.isSpeaker) this.events.close(0);
  }

  #tell(isText: boolean, text: string, index: number, logprobs: readonly TokenLogprob[] | undefined): void {
    const part = this.#part(index);
    if (text.length <= part.length) return;
    const rest = part.length === 0 ? text : text.slice(part.length);
    // Probabilities belong to the whole text: where a part of it was told, theirs were too.
    const told = part.length === 0 ? logprobs : undefined;
    part.length = text.length;
    if (isText) this.events.text(0, rest, told);
    else this.#refuse(rest);
  }

  #refuse(text: string): void {
    this.hasRefused = true;
    this.events.refusal(0, text);
  }

  /** Each part is a block of its own: places of citations are counted in it. */
  #part(index: number): { length: number; annotations: number } {
    if (index !== this.#current) {
      if (this.isSpeaker) this.events.close(0);
      this.#current = index;
    }
    const known = this.#told[index];
    if (known !== undefined) return known;
    const fresh = { length: 0, annotations: 0 };
    this.#told[index] = fresh;
    return fresh;
  }
}

/** All parts of one item are one block, with a blank line between them. */
class ReasoningReader extends Reader {
  /** Summary or raw text, whichever comes first: the other says the same at another length. */
  #kind: 'summary' | 'text' | undefined;
  #current = -1;
  readonly #lengths: number[] = [];
  #keepsake: string | undefined;

  override added(item: JsonObject): void {
    this.#keepsake = textOf(item['encrypted_content']);
  }

  override delta(type: string, text: string, part: number): void {
    this.#tell(kindOf(type), text, part);
  }

  override whole(type: string, text: string, part: number): void {
    this.#tell(kindOf(type), text.slice(this.#lengths[part] ?? 0), part);
  }

  protected override read(item: JsonObject): void {
    this.#keepsake = textOf(item['encrypted_content']) ?? this.#keepsake;
    for (const kind of ['summary', 'text'] as const) {
      for (const [index, value] of listOf(item[kind === 'summary' ? 'summary' : 'content']).entries()) {
        const text = textOf(objectOf(value)?.['text']);
        if (text !== undefined && (this.#kind ?? kind) === kind) {
          this.#tell(kind, text.slice(this.#lengths[index] ?? 0), index);
        }
      }
    }
    // A block that another item has ended meanwhile cannot take the keepsake any more.
    if (this.isSpeaker) this.events.close(0, this.#keepsake);
    else if (this.#keepsake !== undefined) this.events.redacted(0, this.#keepsake);
  }

  override flush(): void {
    this.done({});
  }

  #tell(kind: 'summary' | 'text', text: string, part: number): void {
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

class CallReader extends Reader {
  readonly #key: number;
  readonly #custom: boolean;
  /** What `…_arguments.done` told, in case that nothing else ends the call. */
  #input: string | undefined;

  constructor(ear: Ear, key: number, custom: boolean) {
    super(ear);
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

  protected override read(item: JsonObject): void {
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

/** Searches, images, and code that the vendor ran: told when they are whole. */
class PieceReader extends Reader {
  protected override read(item: JsonObject): void {
    if (item['type'] === 'web_search_call') {
      this.events.search(0, searchOf(item));
      return;
    }
    if (item['type'] === 'code_interpreter_call') {
      this.events.text(0, ranCode(item));
      // Places of citations are counted from where the model's own text begins.
      this.events.close(0);
      return;
    }
    const base64 = textOf(item['result']);
    if (base64 === undefined) return;
    const source = bytesSource(base64, `image/${textOf(item['output_format']) ?? 'png'}`);
    this.events.media(0, { kind: 'image', source });
  }
}
