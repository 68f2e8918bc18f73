/** Remembers what clients drop: the reasoning and signatures of answers that called tools, for an hour, by account and call. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/contract.ts';
import type { Keepsake, Part, ReasoningPart, ToolCallPart, Turn } from './canon.ts';
import { tryParse } from './json.ts';
import type { Event } from './reply.ts';
import { legalCallId } from './wording/tool-ids.ts';

/** What is kept of an answer, shared by its calls. */
interface Kept {
  readonly reasoning: readonly ReasoningPart[];
}
interface Entry {
  readonly kept: Kept;
  readonly keepsake: Keepsake | undefined;
}

export interface KeepsakeMemoryOptions {
  /** Default: 64 MB. */
  readonly maxBytes?: number;
  /** Default: an hour. */
  readonly lifetimeMs?: number;
}

/** Characters of one answer's reasoning above which it is not remembered at all. */
const maxAnswerLength = 1_000_000;
/** Bytes of an entry beside its texts, roughly. */
const entryBytes = 300;
/** Ids that are shorter may be counters, which come again with each answer. */
const uniqueIdLength = 16;

/**
 * Some clients, or the libraries in them, have no place for signatures and encrypted reasoning. Their next request brings
 * the calls back alone; by these the rest is found again. Only what the same account was answered is ever given back.
 */
export class KeepsakeMemory {
  readonly #entries: LRUCache<string, Entry>;

  constructor(clock: Clock, options: KeepsakeMemoryOptions = {}) {
    const { maxBytes = 64 * 2 ** 20, lifetimeMs = 3_600_000 } = options;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      ttl: lifetimeMs,
      ttlResolution: 0,
      // A time of 0 would mean to the cache that nothing was set.
      perf: { now: () => clock.monotonic() + 1 },
    });
  }

  /** Of one choice of an answer: parts whose keepsakes are in the vendor's words; `maker` made them. */
  remember(accountId: string, maker: string, parts: readonly Part[]): void {
    const reasoning: ReasoningPart[] = [];
    const calls: ToolCallPart[] = [];
    let length = 0;
    for (const part of parts) {
      if (part.kind === 'tool-call') calls.push(part);
      if (part.kind !== 'reasoning') continue;
      reasoning.push({ ...part, ...by(maker, part.keepsake) });
      length += part.text.length + (part.keepsake?.value.length ?? 0);
    }
    const isSigned = reasoning.some(({ keepsake }) => keepsake !== undefined);
    const kept: Kept = { reasoning: isSigned ? reasoning : [] };
    if (length > maxAnswerLength) return;
    for (const call of calls) {
      const { keepsake } = by(maker, call.keepsake);
      if (!isSigned && keepsake === undefined) continue;
      const key = keyOf(accountId, call);
      const ownLength = key.length + (keepsake?.value.length ?? 0);
      const size = entryBytes + 2 * Math.ceil(ownLength + length / calls.length);
      this.#entries.set(key, { kept, keepsake }, { size });
    }
  }

  /** Told the events of an answer as they pass; remembers each choice when it stops. */
  collector(accountId: string, maker: string): KeepsakeCollector {
    return new KeepsakeCollector((parts) => this.remember(accountId, maker, parts));
  }

  /**
   * Assistant turns with calls but without any keepsake get back their reasoning (in front of what it led to, instead of
   * any that came without keepsake) and the keepsakes of their calls. Turns of which nothing is remembered stay.
   */
  recall(accountId: string, turns: readonly Turn[]): Turn[] {
    return turns.map((turn) => (turn.role === 'assistant' && isBare(turn) ? this.#recalled(accountId, turn) : turn));
  }

  #recalled(accountId: string, turn: Turn): Turn {
    const given = new Set<Kept>();
    const parts: Part[] = [];
    for (const part of turn.parts) {
      const entry = part.kind === 'tool-call' ? this.#entries.get(keyOf(accountId, part)) : undefined;
      if (entry === undefined) {
        parts.push(part);
        continue;
      }
      if (!given.has(entry.kept)) {
        // The first reasoning led to all of the turn, a later one (of answers that were joined) to its call.
        if (given.size === 0) parts.unshift(...entry.kept.reasoning);
        else parts.push(...entry.kept.reasoning);
        given.add(entry.kept);
      }
      parts.push(entry.keepsake === undefined ? part : { ...(part as ToolCallPart), keepsake: entry.keepsake });
    }
    if (given.size === 0) return turn;
    const hasReasoning = parts.some((part) => part.kind === 'reasoning' && part.keepsake !== undefined);
    // What the client told of the same thoughts, unsigned, would stand there twice.
    const kept = hasReasoning ? parts.filter((part) => part.kind !== 'reasoning' || !turn.parts.includes(part)) : parts;
    return { ...turn, parts: kept };
  }
}

function by(maker: string, keepsake: Keepsake | undefined): { keepsake?: Keepsake } {
  return keepsake === undefined ? {} : { keepsake: { maker, value: keepsake.value } };
}

function isBare({ parts }: Turn): boolean {
  let hasCalls = false;
  for (const part of parts) {
    if (part.kind === 'tool-call') hasCalls = true;
    if ('keepsake' in part && part.keepsake !== undefined) return false;
  }
  return hasCalls;
}

/** The call as any client brings it back: its id perhaps made legal, its arguments perhaps worded anew. */
function keyOf(accountId: string, { id, name, input }: ToolCallPart): string {
  const key = `${accountId}\0${legalCallId(id, 'messages')}\0${name}`;
  if (id.length >= uniqueIdLength) return key;
  const plain = JSON.stringify(sorted(tryParse(input))) ?? input;
  return `${key}\0${createHash('sha256').update(plain).digest('base64')}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

interface OpenBlock {
  readonly part: Part;
  texts: string[];
}

/** Gathers from events what `KeepsakeMemory` wants to know; texts and media pass unseen. */
export class KeepsakeCollector {
  readonly #remember: (parts: readonly Part[]) => void;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #choices = new Map<number, Part[]>();
  #length = 0;

  constructor(remember: (parts: readonly Part[]) => void) {
    this.#remember = remember;
  }

  event(event: Event): void {
    switch (event.type) {
      case 'reasoning-start':
        this.#blocks.set(event.block, { part: { kind: 'reasoning', text: '' }, texts: [] });
        return;
      case 'tool-start':
        this.#blocks.set(event.block, {
          part: { kind: 'tool-call', id: event.id, name: event.name, input: '' },
          texts: [],
        });
        return;
      case 'reasoning-delta':
      case 'tool-delta':
        this.#length += event.text.length;
        if (this.#length <= maxAnswerLength) this.#blocks.get(event.block)?.texts.push(event.text);
        return;
      case 'reasoning-end':
      case 'tool-end':
        this.#close(event.block, event.choice, event.keepsake, event.type === 'reasoning-end' && event.redacted);
        return;
      case 'stop':
        if (this.#length <= maxAnswerLength) this.#remember(this.#choices.get(event.choice) ?? []);
        this.#choices.delete(event.choice);
    }
  }

  #close(block: number, choice: number, value: string | undefined, redacted: boolean): void {
    const open = this.#blocks.get(block);
    if (open === undefined) return;
    this.#blocks.delete(block);
    const words = open.texts.join('');
    const keepsake = value === undefined ? {} : { keepsake: { maker: '', value } };
    const part: Part =
      open.part.kind === 'tool-call'
        ? { ...open.part, input: words, ...keepsake }
        : { kind: 'reasoning', text: words, ...keepsake, ...(redacted ? { redacted } : {}) };
    const parts = this.#choices.get(choice);
    if (parts === undefined) this.#choices.set(choice, [part]);
    else parts.push(part);
  }
}
