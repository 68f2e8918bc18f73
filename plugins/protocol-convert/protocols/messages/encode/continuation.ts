/** Continues a messages stream that was relayed up to some frame: blocks keep their indexes, and an open block continues. */
import { type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { StreamContinuation } from '../../../../common/canonical/codec.ts';
import { framesOf } from '../../../../common/wire/frame.ts';
import { blockStopFrame } from './frames.ts';

/** Identifies a citation by its quote and source; the encoder may write the other members differently. */
const places = [
  ...['type', 'cited_text', 'url', 'document_index', 'search_result_index'],
  ...['start_char_index', 'start_page_number', 'start_block_index'],
];

export class MessagesContinuation implements StreamContinuation {
  #hasStarted = false;
  #next = 0;
  /** The vendor's open block that no block of the encoder has taken over. */
  #open: { readonly index: number; readonly type: string | undefined } | undefined;
  /** Citations that the vendor's open block has sent: the encoder gets them with its end, and writes them all. */
  #cited: JsonObject[] = [];
  /** Index on the wire of each block of the encoder. */
  readonly #indexes = new Map<unknown, number>();

  /** The encoder gets a block's signature and citations with its end, and the end of a call without input with the next frame. */
  waits(json: JsonObject): boolean {
    const type = objectOf(json['delta'])?.['type'];
    return type === 'signature_delta' || type === 'citations_delta' || json['type'] === 'content_block_stop';
  }

  sent(json: JsonObject): void {
    const { type, index } = json;
    if (type === 'message_start') this.#hasStarted = true;
    else if (type === 'content_block_stop') this.#open = undefined;
    else if (type === 'content_block_delta') {
      const citation = objectOf(objectOf(json['delta'])?.['citation']);
      if (citation !== undefined) this.#cited.push(citation);
    } else if (type === 'content_block_start' && typeof index === 'number') {
      this.#cited = [];
      this.#open = { index, type: textOf(objectOf(json['content_block'])?.['type']) };
      this.#next = Math.max(this.#next, index + 1);
    }
  }

  fit(frames: string): string {
    let out = '';
    for (const { json, event } of framesOf(frames)) out += this.#fitOne(json, event ?? '');
    return out;
  }

  #fitOne(json: JsonObject, event: string): string {
    switch (event) {
      case 'message_start':
        if (this.#hasStarted) return '';
        this.#hasStarted = true;
        break;
      case 'content_block_start':
        return this.#begin(json);
      case 'content_block_delta':
        if (this.#wasCited(objectOf(objectOf(json['delta'])?.['citation']))) return '';
        return frameOf(event, { ...json, index: this.#indexes.get(json['index']) });
      case 'content_block_stop':
        return frameOf(event, { ...json, index: this.#indexes.get(json['index']) });
      case 'message_delta':
        return this.#close() + frameOf(event, json);
    }
    return frameOf(event, json);
  }

  /** Whether the client has this citation already; each sent citation matches once. */
  #wasCited(citation: JsonObject | undefined): boolean {
    if (citation === undefined) return false;
    const index = this.#cited.findIndex((sent) => places.every((name) => sent[name] === citation[name]));
    if (index === -1) return false;
    this.#cited.splice(index, 1);
    return true;
  }

  #begin(json: JsonObject): string {
    const open = this.#open;
    if (open !== undefined && open.type === objectOf(json['content_block'])?.['type']) {
      this.#open = undefined;
      this.#indexes.set(json['index'], open.index);
      return '';
    }
    this.#cited = [];
    const closed = this.#close();
    const index = this.#next++;
    this.#indexes.set(json['index'], index);
    return closed + frameOf('content_block_start', { ...json, index });
  }

  /** Nothing of the vendor's open block is left. */
  #close(): string {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? '' : blockStopFrame(open.index);
  }
}

function frameOf(event: string, json: JsonObject): string {
  return `event: ${event}\ndata: ${JSON.stringify(json)}\n\n`;
}
