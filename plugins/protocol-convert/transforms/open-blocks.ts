/** The state an encoder needs when it begins in mid-stream: open blocks, and calls by number. Pure. */
import type { Event } from '../../common/canonical/reply.ts';

type BlockEvent = Extract<Event, { block: number }>;

interface Block {
  readonly start: BlockEvent;
  readonly pieces: string[];
  end: BlockEvent | undefined;
}

export class OpenBlocks {
  #start: Event | undefined;
  readonly #blocks = new Map<number, Block>();
  readonly #stops: Event[] = [];

  add(event: Event): void {
    if (event.type === 'text-delta') this.#blocks.get(event.block)?.pieces.push(event.text);
    else if (event.type === 'reply-start') this.#start = event;
    else if (event.type === 'stop') this.#stops.push(event);
    else if (event.type.endsWith('-start')) this.#blocks.set(event.block, { start: event, pieces: [], end: undefined });
    else if (event.type.endsWith('-delta'))
      this.#blocks.get(event.block)?.pieces.push((event as { text: string }).text);
    else if (event.type.endsWith('-end')) this.#close(event);
  }

  /** Ended blocks are forgotten, except calls, since later calls are numbered after them. */
  #close(event: BlockEvent): void {
    const block = this.#blocks.get(event.block);
    if (event.type !== 'tool-end' || block === undefined) this.#blocks.delete(event.block);
    else {
      block.end = event;
      block.pieces.length = 0;
    }
  }

  /** Events that lead to the same state. `withCalls`: with those of ended calls. */
  replay(withCalls: boolean): Event[] {
    const events: Event[] = this.#start === undefined ? [] : [this.#start];
    for (const { start, pieces, end } of this.#blocks.values()) {
      if (end !== undefined && !withCalls) continue;
      events.push(start);
      const text = pieces.join('');
      if (text !== '') events.push(deltaOf(start, text));
      if (end !== undefined) events.push(end);
    }
    return [...events, ...this.#stops];
  }
}

function deltaOf({ type, block, choice }: BlockEvent, text: string): Event {
  if (type === 'text-start') return { type: 'text-delta', block, choice, text, logprobs: undefined };
  return { type: type.replace('-start', '-delta') as 'tool-delta', block, choice, text };
}
