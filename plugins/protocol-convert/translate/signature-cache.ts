/**
 * A cache of opaque state that clients drop: reasoning and signatures of answers with tool calls, for an hour, by
 * account, conversation and call.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { OpaqueState, Part, ReasoningPart, ToolCallPart, Turn } from '../../common/canonical/prompt.ts';
import type { Event } from '../../common/canonical/reply.ts';
import { legalCallId } from '../../common/encoding/tool-ids.ts';
import { type ConversationDigest, plainInput } from './conversation-digest.ts';

/** The cached parts of an answer, shared by its calls. */
interface Kept {
  readonly reasoning: readonly ReasoningPart[];
}
interface Entry {
  readonly maker: string;
  /** undefined: two of its answers to the same conversation made this call, so that it does not say which of them goes on. */
  readonly kept: Kept | undefined;
  readonly opaqueState: OpaqueState | undefined;
  readonly size: number;
}

export interface SignatureCacheOptions {
  /** Default: 64 MB. */
  readonly maxBytes?: number;
  /** Default: an hour. */
  readonly lifetimeMs?: number;
}

/** Reasoning of an answer with more characters is not cached. */
const maxAnswerLength = 1_000_000;
/** Approximate bytes of an entry beside its texts. */
const entryBytes = 300;

/**
 * Some clients and client libraries have no member for signatures and encrypted reasoning. Their next request repeats
 * the calls alone; the calls, and the conversation before them, identify the rest: vendors repeat the ids of calls.
 * An account gets back only what it was answered, in the conversation that it belongs to.
 */
export class SignatureCache {
  /** What each maker answered to one conversation with the same call. */
  readonly #entries: LRUCache<string, readonly Entry[]>;

  constructor(clock: Clock, options: SignatureCacheOptions = {}) {
    const { maxBytes = 64 * 2 ** 20, lifetimeMs = 3_600_000 } = options;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      ttl: lifetimeMs,
      ttlResolution: 0,
      // The cache would read a time of 0 as unset.
      perf: { now: () => clock.monotonic() + 1 },
    });
  }

  /**
   * Parts of one choice of an answer, with opaque state as the vendor encodes it; `maker` made them. `precedent`: the
   * digest of the conversation that was answered.
   */
  remember(accountId: string, maker: string, precedent: string, parts: readonly Part[]): void {
    const reasoning: ReasoningPart[] = [];
    const calls: ToolCallPart[] = [];
    let length = 0;
    for (const part of parts) {
      if (part.kind === 'tool-call') calls.push(part);
      if (part.kind !== 'reasoning') continue;
      reasoning.push({ ...part, ...by(maker, part.opaqueState) });
      length += part.text.length + (part.opaqueState?.value.length ?? 0);
    }
    const isSigned = reasoning.some(({ opaqueState }) => opaqueState !== undefined);
    const isKept = length <= maxAnswerLength;
    const kept: Kept = { reasoning: isSigned && isKept ? reasoning : [] };
    for (const call of calls) {
      const { opaqueState } = isKept ? by(maker, call.opaqueState) : {};
      const key = keyOf(accountId, precedent, call);
      const ownLength = key.length + (opaqueState?.value.length ?? 0);
      const size = entryBytes + 2 * Math.ceil(ownLength + (isKept ? length : 0) / calls.length);
      this.#set(key, { maker, kept, opaqueState, size });
    }
  }

  #set(key: string, entry: Entry): void {
    const earlier = this.#entries.get(key) ?? [];
    const own = earlier.find(({ maker }) => maker === entry.maker);
    const others = earlier.filter((other) => other !== own);
    const isSame = own === undefined || JSON.stringify(own) === JSON.stringify(entry);
    const ambiguous = { ...entry, kept: undefined, opaqueState: undefined, size: entryBytes + 2 * key.length };
    const all = [...others, isSame ? entry : ambiguous];
    this.#entries.set(key, all, { size: all.reduce((sum, { size }) => sum + size, 0) });
  }

  /** Collects from the events of an answer as they pass; stores each choice when it stops. */
  collector(accountId: string, maker: string, precedent: string): SignatureCollector {
    return new SignatureCollector((parts) => this.remember(accountId, maker, precedent, parts));
  }

  /**
   * Restores assistant turns that have calls but no opaque state: adds their reasoning (before the parts it led to,
   * replacing reasoning without opaque state) and the opaque state of their calls. Other turns stay as they are. Where
   * several makers answered the same, each gets its own, and none gets that of others.
   */
  recall(accountId: string, maker: string, turns: readonly Turn[], digest: ConversationDigest): readonly Turn[] {
    if (this.#entries.size === 0) return turns;
    return turns.map((turn, index) =>
      turn.role === 'assistant' && isBare(turn) ? this.#recalled(accountId, maker, digest.before(index), turn) : turn,
    );
  }

  #recalled(accountId: string, maker: string, precedent: string, turn: Turn): Turn {
    const given = new Set<Kept>();
    const parts: Part[] = [];
    for (const part of turn.parts) {
      const entry = part.kind === 'tool-call' ? this.#entry(keyOf(accountId, precedent, part), maker) : undefined;
      if (entry?.kept === undefined) {
        parts.push(part);
        continue;
      }
      const { kept, opaqueState } = entry;
      if (!given.has(kept)) {
        // The first reasoning belongs to the whole turn, a later one (of joined answers) to its call.
        if (given.size === 0) parts.unshift(...kept.reasoning);
        else parts.push(...kept.reasoning);
        given.add(kept);
      }
      parts.push(opaqueState === undefined ? part : { ...(part as ToolCallPart), opaqueState });
    }
    if (given.size === 0) return turn;
    const hasReasoning = parts.some((part) => part.kind === 'reasoning' && part.opaqueState !== undefined);
    // The client's unsigned copy of the same reasoning would be a duplicate.
    const kept = hasReasoning ? parts.filter((part) => part.kind !== 'reasoning' || !turn.parts.includes(part)) : parts;
    return { ...turn, parts: kept };
  }

  #entry(key: string, maker: string): Entry | undefined {
    const entries = this.#entries.get(key);
    // It may be the answer without reasoning that goes on.
    if (entries?.some(isEmpty) === true) return undefined;
    return entries?.find((entry) => entry.maker === maker) ?? (entries?.length === 1 ? entries[0] : undefined);
  }
}

/** Whether the answer had nothing to remember: opaque state that is given for it would be another answer's. */
function isEmpty({ kept, opaqueState }: Entry): boolean {
  return opaqueState === undefined && kept?.reasoning.length === 0;
}

function by(maker: string, opaqueState: OpaqueState | undefined): { opaqueState?: OpaqueState } {
  return opaqueState === undefined ? {} : { opaqueState: { maker, value: opaqueState.value } };
}

function isBare({ parts }: Turn): boolean {
  let hasCalls = false;
  for (const part of parts) {
    if (part.kind === 'tool-call') hasCalls = true;
    if ('opaqueState' in part && part.opaqueState !== undefined) return false;
  }
  return hasCalls;
}

/**
 * The call in the form that every client sends back: its id possibly made legal, its arguments possibly reformatted.
 */
function keyOf(accountId: string, precedent: string, { id, name, input }: ToolCallPart): string {
  const digest = createHash('sha256').update(plainInput(input)).digest('base64');
  return [accountId, precedent, legalCallId(id, 'messages'), name, digest].join('\0');
}

interface OpenBlock {
  readonly part: Part;
  texts: string[];
}

/** Collects the parts for `SignatureCache` from events; texts and media are ignored. */
export class SignatureCollector {
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
        this.#close(event.block, event.choice, event.opaqueState, event.type === 'reasoning-end' && event.redacted);
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
    const joined = open.texts.join('');
    const opaqueState = value === undefined ? {} : { opaqueState: { maker: '', value } };
    const part: Part =
      open.part.kind === 'tool-call'
        ? { ...open.part, input: joined, ...opaqueState }
        : { kind: 'reasoning', text: joined, ...opaqueState, ...(redacted ? { redacted } : {}) };
    const parts = this.#choices.get(choice);
    if (parts === undefined) this.#choices.set(choice, [part]);
    else parts.push(part);
  }
}
