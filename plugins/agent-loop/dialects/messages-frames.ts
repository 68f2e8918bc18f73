/** A run as one stream of messages: blocks of its turns in one numbering, and those of the calls between them. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import type { Offered } from '../offered.ts';
import type { Sources } from '../search/sources.ts';
import type { End, Frames, ToolDone, ToolUse } from '../talk.ts';
import { citationsOf, withSearches } from './messages-search.ts';
import { resultBlock, useBlock } from './messages-turns.ts';
import { summed } from './sums.ts';

interface GrowingBlock {
  readonly block: Record<string, unknown>;
  /** Its place in the run's content; undefined: a call that the gateway makes. */
  readonly place: number | undefined;
  input: string;
}

export class MessagesFrames implements Frames {
  readonly #offered: Offered;
  readonly #sources: Sources;
  #blocks = new Map<unknown, GrowingBlock>();
  #message: JsonObject = {};
  #ended: JsonObject | undefined;
  #places = 0;
  #hasBegun = false;
  #usage: unknown;

  constructor(offered: Offered, sources: Sources) {
    this.#offered = offered;
    this.#sources = sources;
  }

  frame(event: string | undefined, data: JsonObject | undefined): string {
    if (data === undefined) return '';
    switch (data['type']) {
      case 'message_start':
        return this.#begin(event, data);
      case 'content_block_start':
        return this.#start(event, data);
      case 'content_block_delta':
        this.#grow(data);
        return this.#placed(event, data);
      case 'content_block_stop':
        return this.#cited(data) + this.#placed(event, data);
      case 'message_delta':
        this.#ended = data;
        return '';
      case 'message_stop':
        return '';
      default:
        return formatFrame(JSON.stringify(data), event);
    }
  }

  answer(): JsonObject | undefined {
    const ended = this.#ended;
    const blocks = [...this.#blocks.values()];
    const usage = { ...asObject(this.#message['usage']), ...asObject(ended?.['usage']) };
    this.#ended = undefined;
    this.#blocks = new Map();
    if (ended === undefined) return undefined;
    this.#usage = summed(this.#usage, usage);
    this.#message = { ...this.#message, ...asObject(ended['delta']) };
    const content = blocks.map(({ block, input }) =>
      String(block['type']).endsWith('tool_use') && input !== '' ? { ...block, input: parsed(input) } : block,
    );
    return { ...this.#message, content, usage };
  }

  called(use: ToolUse): string {
    const block = useBlock(use, this.#offered);
    const index = this.#places++;
    return (
      this.#event({ type: 'content_block_start', index, content_block: { ...block, input: {} } }) +
      this.#event({
        type: 'content_block_delta',
        index,
        delta: { type: 'input_json_delta', partial_json: use.arguments },
      }) +
      this.#event({ type: 'content_block_stop', index })
    );
  }

  done(done: ToolDone): string {
    const index = this.#places++;
    return (
      this.#event({ type: 'content_block_start', index, content_block: resultBlock(done) }) +
      this.#event({ type: 'content_block_stop', index })
    );
  }

  asked(): string {
    return '';
  }

  end(end: End): string {
    const { stop_reason, stop_sequence, ...others } = this.#message;
    const reasons =
      end === 'bound' ? { stop_reason: 'pause_turn', stop_sequence: null } : { stop_reason, stop_sequence };
    const container = others['container'] === undefined ? {} : { container: others['container'] };
    const usage = withSearches(this.#usage ?? {}, this.#sources.queries.length);
    return (
      this.#event({ type: 'message_delta', delta: { ...reasons, ...container }, usage }) +
      this.#event({ type: 'message_stop' })
    );
  }

  #begin(event: string | undefined, data: JsonObject): string {
    this.#message = asObject(data['message']);
    if (this.#hasBegun) return '';
    this.#hasBegun = true;
    return formatFrame(JSON.stringify(data), event);
  }

  #start(event: string | undefined, data: JsonObject): string {
    const block = { ...asObject(data['content_block']) };
    const isOwn = block['type'] === 'tool_use' && this.#offered.has(block['name']);
    const place = isOwn ? undefined : this.#places++;
    this.#blocks.set(data['index'], { block, place, input: '' });
    return this.#placed(event, data);
  }

  #placed(event: string | undefined, data: JsonObject): string {
    const place = this.#blocks.get(data['index'])?.place;
    return place === undefined ? '' : formatFrame(JSON.stringify({ ...data, index: place }), event);
  }

  /** The pages that a block's text cites, before it ends. */
  #cited({ index }: JsonObject): string {
    const { block, place } = this.#blocks.get(index) ?? {};
    if (block?.['type'] !== 'text' || place === undefined) return '';
    const citations = citationsOf(block['text'], this.#sources);
    return citations
      .map((citation) =>
        this.#event({ type: 'content_block_delta', index: place, delta: { type: 'citations_delta', citation } }),
      )
      .join('');
  }

  #grow({ index, delta }: JsonObject): void {
    const growing = this.#blocks.get(index);
    if (growing === undefined || !isObject(delta)) return;
    const { block } = growing;
    if (delta['type'] === 'input_json_delta') growing.input += String(delta['partial_json'] ?? '');
    else if (delta['type'] === 'citations_delta')
      block['citations'] = [...listOf(block['citations']), delta['citation']];
    else if (delta['type'] === 'signature_delta') block['signature'] = delta['signature'];
    else
      for (const name of ['text', 'thinking', 'content'])
        if (typeof delta[name] === 'string') block[name] = String(block[name] ?? '') + delta[name];
  }

  #event(data: JsonObject): string {
    return formatFrame(JSON.stringify(data), String(data['type']));
  }
}

const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});

function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return {};
  }
}
