/** The checks of one answer: its texts leave in pieces, tool arguments whole, in the order in which they came. */
import type { Event } from '../../common/canonical/reply.ts';
import type { AnswerTransform } from '../../common/wire/call-transforms.ts';
import type { Place } from '../config.ts';
import type { GuardedCall, Masked, Window } from '../guarded-call.ts';
import type { OpenCheck } from '../open-checks.ts';
import { inOrder } from '../pieces.ts';
import { Refusal, textBlock } from '../refusal.ts';
import {
  type BlockEnd,
  type Delta,
  type Held,
  inputPiece,
  settle,
  textOf,
  tooLarge,
  unsigned,
  wholeDeltas,
  withText,
} from './held.ts';

export interface Release {
  /** `whole`: each text before any of it is sent. `end`: all was sent; a finding is noted alone. */
  readonly mode: 'pieces' | 'whole' | 'end';
  readonly release: number;
  readonly overlap: number;
}

interface Block {
  readonly checks: readonly OpenCheck[];
  readonly isTool: boolean;
  /** Nothing of it leaves before its end. */
  readonly isWhole: boolean;
  /** Undecided deltas. */
  held: Held[];
  length: number;
  /** The end of what has left, so that a finding across pieces is seen. */
  before: string;
  /** In the mode `end`: all that has left. */
  sent: string;
  isChanged: boolean;
}

/** Characters of one text that may wait. */
const mostHeld = 2 ** 20;

/** Characters of a text that waits to its end, in one delta. */
const mostJoined = 8_192;

const none: readonly Event[] = [];

type Judged = Parameters<GuardedCall['judge']>[2];
/** undefined: nothing waits. */
type Wait = Promise<void> | undefined;

export class AnswerCheck implements AnswerTransform {
  readonly #call: GuardedCall;
  readonly #release: Release;
  readonly #queue: Held[] = [];
  readonly #blocks = new Map<number, Block>();
  /** The answer that takes the place of the rest, from a refusal on. */
  #instead: string | undefined;
  #ownBlocks = 0;

  constructor(call: GuardedCall, release: Release) {
    this.#call = call;
    this.#release = release;
  }

  event(event: Event): readonly Event[] | Promise<readonly Event[]> {
    if (this.#instead !== undefined) return this.#afterRefusal(event, this.#instead);
    const waits = this.#take(event);
    if (waits === undefined) return this.#ready();
    return waits.then(
      () => this.#ready(),
      (error: unknown) => this.#refused(error, event),
    );
  }

  /** Up to where the next verdict begins, so that as much leaves with it as of deltas that come one by one. */
  room(number: number): number {
    const block = this.#blocks.get(number);
    if (block === undefined || block.checks.length === 0 || this.#instead !== undefined) return 0;
    const { mode, release, overlap } = this.#release;
    if (mode === 'end') return 0;
    if (block.isWhole) return mostJoined;
    return (block.length < release ? release : release + overlap - 1) - block.length;
  }

  /** A promise only where a check waits. */
  #take(event: Event): Promise<void> | undefined {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
      case 'reasoning-delta':
      case 'tool-delta':
        return this.#grow(event);
      case 'text-end':
      case 'refusal-end':
      case 'reasoning-end':
      case 'tool-end':
        return this.#close(event);
      default:
        this.#pass(event);
        return undefined;
    }
  }

  #pass(event: Event): void {
    this.#queue.push({ event, made: [event] });
  }

  #blockOf({ type, block }: Delta): Block {
    const known = this.#blocks.get(block);
    if (known !== undefined) return known;
    const isTool = type === 'tool-delta';
    const place: Place = isTool ? 'tool_arguments' : type === 'reasoning-delta' ? 'thinking' : 'text';
    const all = this.#call.at('answer', place);
    const checks = type === 'text-delta' ? all : all.filter(({ check }) => check.textOnly !== true);
    const isWhole = isTool || this.#release.mode === 'whole' || checks.some(({ check }) => check.wantsWhole === true);
    const made: Block = { checks, isTool, isWhole, held: [], length: 0, before: '', sent: '', isChanged: false };
    this.#blocks.set(block, made);
    return made;
  }

  #grow(event: Delta): Promise<void> | undefined {
    const block = this.#blockOf(event);
    if (block.checks.length === 0 || this.#release.mode === 'end') {
      if (block.checks.length > 0 && block.sent.length < mostHeld) block.sent += event.text;
      this.#pass(event);
      return undefined;
    }
    const held: Held = { event, made: undefined };
    this.#queue.push(held);
    block.held.push(held);
    block.length += event.text.length;
    if (block.length > mostHeld) throw tooLarge();
    const { release, overlap } = this.#release;
    if (block.isWhole || block.length < release + overlap) return undefined;
    return this.#caught(() => this.#decide(block, false));
  }

  #close(event: BlockEnd): Promise<void> | undefined {
    const block = this.#blocks.get(event.block);
    const end = () => this.#pass(block?.isChanged === true ? unsigned(event) : event);
    if (block === undefined) {
      end();
      return undefined;
    }
    const decided = this.#caught(() => this.#decideLast(block));
    if (decided !== undefined) return decided.then(end);
    end();
    return undefined;
  }

  #decideLast(block: Block): Wait {
    if (this.#release.mode === 'end') return this.#noted(block);
    return block.isTool ? this.#decideTool(block) : this.#decide(block, true);
  }

  /** An error of a check that does not wait is met as that of one that does. */
  #caught(work: () => Wait): Wait {
    try {
      return work();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  // ------------------------------------------------------------------------------------------------------------- texts

  #decide(block: Block, isEnd: boolean): Wait {
    const text = textOf(block.held);
    if (text === '') {
      settle(block.held);
      block.held = [];
      return undefined;
    }
    const texts = [{ role: 'assistant', text: block.before + text }] as const;
    const from = block.before.length;
    const until = isEnd ? text.length : Math.max(0, text.length - this.#release.overlap);
    const window: Window = { from, until: from + until, isOpen: !isEnd };
    const places = this.#judged(block.checks, { texts, window });
    const decide = (all: readonly Masked[]) => this.#decided(block, text, all, window);
    if (places instanceof Promise) return places.then(decide);
    decide(places);
    return undefined;
  }

  #judged(checks: readonly OpenCheck[], judged: Judged, first = 0): Masked[] | Promise<Masked[]> {
    const all: Masked[] = [];
    for (let index = first; index < checks.length; index++) {
      const places = this.#call.judge(checks[index]!, 'answer', judged);
      if (places instanceof Promise)
        return places.then(async (some) => [...all, ...some, ...(await this.#judged(checks, judged, index + 1))]);
      all.push(...places);
    }
    return all;
  }

  #decided(block: Block, text: string, found: readonly Masked[], window: Window): void {
    const { from } = window;
    let until = window.until - from;
    const masked = found.length === 0 ? found : maskedIn(found, window);
    for (const { end } of masked) until = Math.max(until, end);
    if (masked.length > 0) this.#write(block, text, masked, until);
    else {
      until = wholeDeltas(block.held, until);
      block.held = block.held.slice(settle(block.held, until));
    }
    const { overlap } = this.#release;
    block.before =
      until < overlap ? (block.before + text.slice(0, until)).slice(-overlap) : text.slice(until - overlap, until);
    block.length = text.length - until;
  }

  /** What was decided leaves as one delta; the rest waits on. */
  #write(block: Block, text: string, masked: readonly Masked[], until: number): void {
    let out = '';
    let at = 0;
    for (const place of masked) {
      out += text.slice(at, place.start) + this.#call.standIn(place, text);
      at = place.end;
    }
    out += text.slice(at, until);
    block.isChanged = true;
    const last = block.held.at(-1)!;
    const delta = last.event as Delta;
    for (const held of block.held) held.made = [];
    last.made = out === '' ? [] : [withText(delta, out)];
    const rest = text.slice(until);
    block.held = [];
    if (rest === '') return;
    const left: Held = { event: withText(delta, rest), made: undefined };
    this.#queue.splice(this.#queue.indexOf(last) + 1, 0, left);
    block.held = [left];
  }

  // ------------------------------------------------------------------------------------------------------------- tools

  #decideTool(block: Block): Wait {
    const { held } = block;
    const piece = inputPiece(held);
    const places = piece === undefined ? [] : this.#judged(block.checks, { texts: piece.texts });
    const write = (all: readonly Masked[]) => {
      if (piece !== undefined) this.#call.mask(piece, all);
      settle(held);
      block.held = [];
    };
    if (places instanceof Promise) return places.then(write);
    write(places);
    return undefined;
  }

  /** All was sent: what is found is noted. */
  #noted(block: Block): Wait {
    if (block.sent === '') return undefined;
    const texts = [{ role: 'assistant', text: block.sent }] as const;
    const noted = block.checks.map((one) => ({
      ...one,
      settings: { ...one.settings, do: 'log', broken: 'log' } as const,
    }));
    const heard = this.#judged(noted, { texts });
    return heard instanceof Promise ? heard.then(() => {}) : undefined;
  }

  // ----------------------------------------------------------------------------------------------------------- refusal

  #refused(error: unknown, event: Event): readonly Event[] {
    if (!(error instanceof Refusal) || error.check.settings.as !== 'answer') throw error;
    this.#instead = error.check.settings.message;
    for (const held of this.#queue) held.made ??= [];
    return [...this.#ready(), ...('block' in event ? this.#lastOf(event) : [])];
  }

  /** Blocks that have begun end, and the text of the refusal is the last one. */
  #afterRefusal(event: Event, text: string): readonly Event[] {
    if (event.type === 'stop') {
      const block = --this.#ownBlocks;
      return [...textBlock(block, event.choice, text), { ...event, reason: 'refusal', sequence: undefined }];
    }
    return 'block' in event ? this.#lastOf(event) : [event];
  }

  readonly #dropped = new Set<number>();

  #lastOf(event: Exclude<Event, { type: 'reply-start' | 'stop' }>): readonly Event[] {
    if (event.type.endsWith('-start')) this.#dropped.add(event.block);
    if (this.#dropped.has(event.block)) return [];
    switch (event.type) {
      case 'tool-end':
        return [{ ...event, isCut: true }];
      case 'text-end':
      case 'refusal-end':
      case 'reasoning-end':
        return [unsigned(event)];
      default:
        return [];
    }
  }

  /** Events leave in the order in which they came. */
  #ready(): readonly Event[] {
    const queue = this.#queue;
    let count = 0;
    while (count < queue.length && queue[count]!.made !== undefined) count++;
    if (count === 0) return none;
    const out = queue.splice(0, count);
    return count === 1 ? out[0]!.made! : out.flatMap(({ made }) => made!);
  }
}

/** What begins before the end of the window, by its places behind the window's beginning. */
function maskedIn(found: readonly Masked[], { from, until }: Window): readonly Masked[] {
  const shifted = found.map((place) => ({ ...place, start: Math.max(0, place.start - from), end: place.end - from }));
  return inOrder(shifted).filter(({ start }) => start < until - from);
}
