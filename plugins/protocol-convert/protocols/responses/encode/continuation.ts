/** Continues a responses stream that was relayed up to some frame: numbers, ids and items stay, and an open item continues. */
import { type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { StreamContinuation } from '../../../../common/canonical/codec.ts';
import { framesOf } from '../../../../common/wire/frame.ts';

/** An item of the vendor. */
interface Item {
  readonly index: number;
  /** As it began. */
  readonly item: JsonObject;
  /** Its complete parts. */
  readonly parts: unknown[];
  /** The last part has begun, and is not complete. */
  hasOpenPart: boolean;
  /** An item of the encoder continues it. */
  isTaken: boolean;
}

/** Where an item of the encoder is on the wire. `parts`: those that the vendor has sent of it. */
interface Place {
  readonly index: number;
  readonly id: unknown;
  readonly parts: readonly unknown[];
  skipsPart: boolean;
}

export class ResponsesContinuation implements StreamContinuation {
  #sequence = 0;
  #id: unknown;
  #next = 0;
  readonly #open = new Map<number, Item>();
  readonly #places = new Map<unknown, Place>();
  /** Complete items, by index. */
  readonly #done = new Map<number, unknown>();
  response: string | undefined;

  /** The encoder gets the end of an item, which follows these frames. */
  waits({ type }: JsonObject): boolean {
    const name = textOf(type) ?? '';
    return name.endsWith('annotation.added') || (name.endsWith('.done') && name !== 'response.output_item.done');
  }

  sent(json: JsonObject): void {
    const { type, sequence_number: sequence, output_index: index } = json;
    if (typeof sequence === 'number') this.#sequence = sequence + 1;
    this.#id ??= objectOf(json['response'])?.['id'];
    if (typeof index !== 'number') return;
    const item = this.#open.get(index);
    if (type === 'response.output_item.added') {
      const begun = objectOf(json['item']) ?? {};
      this.#open.set(index, { index, item: begun, parts: [], hasOpenPart: false, isTaken: false });
      this.#next = Math.max(this.#next, index + 1);
    } else if (type === 'response.output_item.done') {
      this.#open.delete(index);
      this.#done.set(index, json['item']);
    } else if (item !== undefined && textOf(type)?.endsWith('part.added')) item.hasOpenPart = true;
    else if (item !== undefined && textOf(type)?.endsWith('part.done')) {
      item.hasOpenPart = false;
      item.parts.push(json['part']);
    }
  }

  fit(frames: string): string {
    let out = '';
    for (const { json, event } of framesOf(frames)) {
      if (event === 'response.completed' || event === 'response.incomplete') out += this.#close();
      const fitting = this.#fitOne(json, event ?? '');
      if (fitting !== undefined) out += this.#frame(fitting, event ?? '');
    }
    return out;
  }

  #frame(json: JsonObject, event: string): string {
    return `event: ${event}\ndata: ${JSON.stringify({ ...json, sequence_number: this.#sequence++ })}\n\n`;
  }

  /** The vendor's open items of which nothing is left. */
  #close(): string {
    let frames = '';
    for (const { index, item, parts, isTaken } of this.#open.values()) {
      if (isTaken) continue;
      const content = 'content' in item ? { content: parts } : {};
      const done = { ...item, ...('status' in item ? { status: 'completed' } : {}), ...content };
      this.#done.set(index, done);
      frames += this.#frame(
        { type: 'response.output_item.done', output_index: index, item: done },
        'response.output_item.done',
      );
    }
    return frames;
  }

  /** undefined: the client has received it from the vendor. */
  #fitOne(json: JsonObject, event: string): JsonObject | undefined {
    if ('response' in json) return this.#lifecycle(json, event);
    if (event === 'response.output_item.added') return this.#begin(json);
    const place = this.#places.get(json['output_index']);
    if (place === undefined) return json;
    if (event === 'response.output_item.done') return this.#end(json, place);
    if (event.endsWith('part.added') && place.skipsPart) {
      place.skipsPart = false;
      return undefined;
    }
    return { ...json, output_index: place.index, item_id: place.id, ...partIndex(json, place) };
  }

  #lifecycle(json: JsonObject, event: string): JsonObject | undefined {
    const isStart = event === 'response.created' || event === 'response.in_progress';
    if (isStart && this.#id !== undefined) return undefined;
    const response = objectOf(json['response']) ?? {};
    if (isStart) return json;
    const output = [...this.#done].sort(([one], [other]) => one - other).map(([, item]) => item);
    const whole = { ...response, ...(this.#id === undefined ? {} : { id: this.#id }), output };
    if (event === 'response.completed' || event === 'response.incomplete') this.response = JSON.stringify(whole);
    return { ...json, response: whole };
  }

  #begin(json: JsonObject): JsonObject | undefined {
    const item = objectOf(json['item']) ?? {};
    for (const open of this.#open.values()) {
      if (open.isTaken || open.item['type'] !== item['type']) continue;
      open.isTaken = true;
      const { index, parts, hasOpenPart } = open;
      this.#places.set(json['output_index'], { index, id: open.item['id'], parts, skipsPart: hasOpenPart });
      return undefined;
    }
    const index = this.#next++;
    this.#places.set(json['output_index'], { index, id: item['id'], parts: [], skipsPart: false });
    return { ...json, output_index: index };
  }

  #end(json: JsonObject, { index, id, parts }: Place): JsonObject {
    const item: Record<string, unknown> = { ...objectOf(json['item']), id };
    for (const member of ['content', 'summary'])
      if (parts.length > 0 && Array.isArray(item[member])) item[member] = [...parts, ...listOf(item[member])];
    this.#done.set(index, item);
    return { ...json, output_index: index, item };
  }
}

/** Parts follow those of the vendor. */
function partIndex(json: JsonObject, { parts }: Place): JsonObject {
  const entries = ['content_index', 'summary_index'].flatMap((name) => {
    const index = json[name];
    return typeof index === 'number' ? [[name, index + parts.length] as const] : [];
  });
  return Object.fromEntries(entries);
}
