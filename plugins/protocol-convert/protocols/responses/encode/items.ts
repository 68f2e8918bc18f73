/** Encodes the other items of a stream: reasoning and calls with deltas, searches and images without. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { MediaPart, SearchPart } from '../../../../common/canonical/prompt.ts';
import { toolSearch } from '../tool-search.ts';
import type { Frames, Output } from './frames.ts';
import { type CallHead, callItem, imageItem, reasoningItem, searchItem, summaryPart } from './output-items.ts';

/** Position of an item. */
export interface Place {
  readonly index: number;
  readonly id: string;
}

function addItem(frames: Frames, index: number, item: JsonObject): string {
  return frames.frame('response.output_item.added', `"output_index":${index},"item":${JSON.stringify(item)}`);
}

function endItem(frames: Frames, output: Output, index: number, item: JsonObject): string {
  const json = JSON.stringify(item);
  output.set(index, json);
  return frames.frame('response.output_item.done', `"output_index":${index},"item":${json}`);
}

/** One reasoning item with at most one summary part, which starts with the first readable text. */
export class ReasoningWriter {
  readonly #frames: Frames;
  readonly #output: Output;
  readonly #place: Place;
  /** `"item_id":…,"output_index":…,"summary_index":0` */
  readonly #members: string;
  #deltaHead = '';
  #text = '';

  constructor(frames: Frames, output: Output, place: Place) {
    this.#frames = frames;
    this.#output = output;
    this.#place = place;
    this.#members = `"item_id":"${place.id}","output_index":${place.index},"summary_index":0`;
  }

  start(): string {
    return addItem(this.#frames, this.#place.index, reasoningItem(this.#place.id, '', undefined));
  }

  delta(text: string): string {
    let frames = '';
    if (this.#deltaHead === '') {
      const part = JSON.stringify(summaryPart(''));
      frames = this.#frames.frame('response.reasoning_summary_part.added', `${this.#members},"part":${part}`);
      this.#deltaHead = this.#frames.deltaHead('response.reasoning_summary_text.delta', this.#members);
    }
    this.#text += text;
    return frames + this.#frames.delta(this.#deltaHead, text);
  }

  end(sealed: string | undefined): string {
    const text = this.#text;
    let frames = '';
    if (this.#deltaHead !== '') {
      const part = JSON.stringify(summaryPart(text));
      frames =
        this.#frames.frame('response.reasoning_summary_text.done', `${this.#members},"text":${JSON.stringify(text)}`) +
        this.#frames.frame('response.reasoning_summary_part.done', `${this.#members},"part":${part}`);
    }
    const { index, id } = this.#place;
    return frames + endItem(this.#frames, this.#output, index, reasoningItem(id, text, sealed));
  }
}

/** One call of a function, of a free-text tool, or of the client's search for tools, which has no events of its own. */
export class CallWriter {
  readonly #frames: Frames;
  readonly #output: Output;
  readonly #index: number;
  readonly #head: CallHead;
  readonly #members: string;
  readonly #deltaHead: string;
  #input = '';

  constructor(frames: Frames, output: Output, index: number, head: CallHead) {
    this.#frames = frames;
    this.#output = output;
    this.#index = index;
    this.#head = head;
    this.#members = `"item_id":"${head.id}","output_index":${index}`;
    const type = head.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    this.#deltaHead = frames.deltaHead(type, this.#members);
  }

  get callId(): string {
    return this.#head.callId;
  }

  start(): string {
    return addItem(this.#frames, this.#index, callItem(this.#head, '', 'in_progress'));
  }

  delta(text: string): string {
    this.#input += text;
    return this.#isSearch ? '' : this.#frames.delta(this.#deltaHead, text);
  }

  /** A call that the answer's end cut off is `incomplete`: clients run those alone that are `completed`. */
  end(status: 'completed' | 'incomplete' = 'completed'): string {
    const done = this.#isSearch ? '' : this.#inputDone(JSON.stringify(this.#input));
    return done + endItem(this.#frames, this.#output, this.#index, callItem(this.#head, this.#input, status));
  }

  get #isSearch(): boolean {
    return this.#head.namespace === toolSearch.namespace;
  }

  #inputDone(input: string): string {
    if (this.#head.custom)
      return this.#frames.frame('response.custom_tool_call_input.done', `${this.#members},"input":${input}`);
    return this.#frames.frame(
      'response.function_call_arguments.done',
      `${this.#members},"name":${JSON.stringify(this.#head.name)},"arguments":${input}`,
    );
  }
}

export function encodeSearch(frames: Frames, output: Output, place: Place, search: SearchPart): string {
  const members = `"item_id":"${place.id}","output_index":${place.index}`;
  return (
    addItem(frames, place.index, searchItem(place.id, search, 'in_progress')) +
    frames.frame('response.web_search_call.in_progress', members) +
    frames.frame('response.web_search_call.searching', members) +
    frames.frame('response.web_search_call.completed', members) +
    endItem(frames, output, place.index, searchItem(place.id, search, 'completed'))
  );
}

export function encodeImage(frames: Frames, output: Output, place: Place, media: MediaPart): string {
  const members = `"item_id":"${place.id}","output_index":${place.index}`;
  return (
    addItem(frames, place.index, imageItem(place.id, media, false)) +
    frames.frame('response.image_generation_call.in_progress', members) +
    frames.frame('response.image_generation_call.generating', members) +
    frames.frame('response.image_generation_call.completed', members) +
    endItem(frames, output, place.index, imageItem(place.id, media, true))
  );
}
