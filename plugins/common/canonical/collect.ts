/** Collects the events of an answer into a whole reply. Pure. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import type { Citation, Part, TextPart, TokenLogprob, ToolCallPart } from './prompt.ts';
import type { Choice, Event, Reply, StopReason } from './reply.ts';

/** A growing part. Pieces of text are joined once, at the end. */
interface Growing {
  readonly choice: number;
  readonly pieces: string[];
  readonly citations: Citation[];
  readonly logprobs: TokenLogprob[];
  finish: (text: string, growing: Growing) => Part;
}

/** An answer with more text is treated as endless: 64 MB, as for one frame of a stream. */
const maxCharacters = 64 * 2 ** 20;

interface Ended {
  readonly stop: StopReason;
  readonly sequence: string | undefined;
}

export class Collector {
  #start: Extract<Event, { type: 'reply-start' }> | undefined;
  readonly #blocks = new Map<number, Growing>();
  readonly #ended = new Map<number, Ended>();
  readonly #cut = new Map<number, Set<string>>();
  #characters = 0;

  event(event: Event): void {
    switch (event.type) {
      case 'reply-start':
        this.#start = event;
        return;
      case 'stop':
        this.#ended.set(event.choice, { stop: event.reason, sequence: event.sequence });
        return;
      case 'citation':
        this.#at(event.block).citations.push(event.citation);
        return;
      case 'text-delta':
        if (event.logprobs !== undefined) this.#at(event.block).logprobs.push(...event.logprobs);
        this.#grow(event.block, event.text);
        return;
      case 'refusal-delta':
      case 'reasoning-delta':
      case 'tool-delta':
        this.#grow(event.block, event.text);
        return;
      case 'text-end':
        if (event.opaqueState !== undefined) this.#keep(event.block, event.opaqueState);
        return;
      case 'reasoning-end':
        this.#endReasoning(event.block, event.opaqueState, event.redacted);
        return;
      case 'tool-end':
        this.#endCall(event);
        return;
      case 'refusal-end':
        return;
      default:
        this.#begin(event);
    }
  }

  /** The answer so far. A choice without a `stop` counts as stopped. */
  reply(): Reply {
    const byChoice = new Map<number, Part[]>([[0, []]]);
    for (const choice of this.#ended.keys()) if (!byChoice.has(choice)) byChoice.set(choice, []);
    for (const [, growing] of [...this.#blocks].sort(([one], [other]) => one - other)) {
      const parts = byChoice.get(growing.choice) ?? [];
      parts.push(growing.finish(growing.pieces.join(''), growing));
      byChoice.set(growing.choice, parts);
    }
    const choices = [...byChoice].sort(([one], [other]) => one - other);
    return {
      id: this.#start?.id,
      createdAt: this.#start?.createdAt,
      serviceTier: this.#start?.serviceTier,
      choices: choices.map(([choice, parts]) => this.#choice(choice, parts)),
    };
  }

  #choice(choice: number, parts: readonly Part[]): Choice {
    const { stop, sequence } = this.#ended.get(choice) ?? { stop: 'stop', sequence: undefined };
    return { parts, stop, sequence, cutCalls: this.#cut.get(choice) ?? new Set() };
  }

  #grow(block: number, text: string): void {
    this.#characters += text.length;
    if (this.#characters > maxCharacters) throw new UpstreamError('body', 'the answer is too large');
    this.#at(block).pieces.push(text);
  }

  #at(block: number): Growing {
    const growing = this.#blocks.get(block);
    if (growing === undefined) throw new Error(`block ${block} has not started`);
    return growing;
  }

  #begin(
    event: Exclude<Event, { type: 'reply-start' | 'stop' | 'citation' | `${string}-delta` | `${string}-end` }>,
  ): void {
    const { choice, block } = event;
    this.#blocks.set(block, { choice, pieces: [], citations: [], logprobs: [], finish: finishOf(event) });
  }

  #keep(block: number, opaqueState: string): void {
    const growing = this.#at(block);
    const finish = growing.finish;
    const kept: Growing['finish'] = (text, all) =>
      ({ ...finish(text, all), opaqueState: { maker: '', value: opaqueState } }) as Part;
    growing.finish = kept;
  }

  #endReasoning(block: number, opaqueState: string | undefined, redacted: boolean): void {
    const finish: Growing['finish'] = (text) => ({
      kind: 'reasoning',
      text,
      ...(opaqueState === undefined ? {} : { opaqueState: { maker: '', value: opaqueState } }),
      ...(redacted ? { redacted } : {}),
    });
    this.#at(block).finish = finish;
  }

  #endCall({ block, choice, opaqueState, isCut }: Extract<Event, { type: 'tool-end' }>): void {
    if (opaqueState !== undefined) this.#keep(block, opaqueState);
    if (!isCut) return;
    const { id } = this.#at(block).finish('', this.#at(block)) as ToolCallPart;
    const cut = this.#cut.get(choice) ?? new Set();
    this.#cut.set(choice, cut.add(id));
  }
}

function finishOf(event: Extract<Event, { type: `${string}-start` | 'media' | 'search' }>): Growing['finish'] {
  switch (event.type) {
    case 'text-start':
      return finishText;
    case 'refusal-start':
      return (text) => ({ kind: 'refusal', text });
    case 'reasoning-start':
      return (text) => ({ kind: 'reasoning', text });
    case 'tool-start': {
      const { id, name, namespace, custom } = event;
      const call = { kind: 'tool-call', id, name, ...(namespace === undefined ? {} : { namespace }) } as const;
      return (input) => ({ ...call, input, ...(custom ? { custom } : {}) });
    }
    case 'media':
      return () => event.media;
    case 'search':
      return () => event.search;
    default:
      throw new Error(`${event.type} begins no part`);
  }
}

function finishText(text: string, { citations, logprobs }: Growing): TextPart {
  return {
    kind: 'text',
    text,
    ...(citations.length === 0 ? {} : { citations }),
    ...(logprobs.length === 0 ? {} : { logprobs }),
  };
}
