/** Normalisation of an upstream's output into legal event streams, called by every decoder. Pure. */
import type { Citation, MediaPart, SearchPart, TokenLogprob } from './prompt.ts';
import type { Sink, StopReason } from './reply.ts';

/** How the client declared a tool, by its name at the upstream. */
export interface DeclaredTool {
  readonly name: string;
  readonly namespace?: string;
  readonly custom?: boolean;
}
export type ToolNames = ReadonlyMap<string, DeclaredTool>;

/** Data of a tool call as it becomes known. Empty strings count as absent. */
export interface CallFragment {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  /** More of the arguments, or of the raw input. */
  readonly input?: string | undefined;
  readonly custom?: boolean | undefined;
}

/** Choices from this number on are ignored; no request asks for so many. */
const maxChoices = 1024;

/** Whether an upstream's number may be that of a choice. */
export function isChoice(index: number): boolean {
  return Number.isSafeInteger(index) && index >= 0 && index < maxChoices;
}

interface OpenCall {
  readonly choice: number;
  id: string;
  name: string;
  block: number;
  /** Arguments before the name is known, or arguments that may be a mere `null`. */
  held: string;
  length: number;
  custom: boolean;
  ended: boolean;
}

interface ChoiceState {
  /** Open text, refusal or reasoning block. */
  open: 'text' | 'refusal' | 'reasoning' | undefined;
  block: number;
  /** Citations of the open text block, sent at its end: some vendors send a citation before the text that its position refers to. */
  cited: Citation[];
  calls: Map<string | number, OpenCall>;
  callCount: number;
  stopped: boolean;
}

/**
 * Opens, extends and closes blocks so that the rules of `Event` hold for every upstream: a block closes when its
 * choice continues with another part, a call starts when its name is known, missing ids are generated, each end and
 * each `stop` is sent once, nothing follows it, and a `stop` with calls becomes `tool-calls`.
 */
interface ReplyEventsOptions {
  readonly names: ToolNames;
  readonly idSeed: string;
  readonly audioAsText?: boolean | undefined;
  readonly mediaAsText?: ((media: MediaPart) => string | undefined) | undefined;
}

/** What an answer says, in the order of the canonical format: a decoder calls it, and events with ids, indexes and block ends come of it. */
export class ReplyEvents {
  readonly #sink: Sink;
  readonly #names: ToolNames;
  /** Prefix of generated ids: the same answer gets the same ids. */
  readonly #idSeed: string;
  readonly #choices = new Map<number, ChoiceState>();
  /**
   * Why there is no answer although the upstream reports completion: a sentence for the client. Set by decoders in
   * place of a `stop`; earlier events are of no use alone.
   */
  failure: string | undefined;
  /** The client's protocol has no audio (`Codec.audioAsText`). */
  readonly audioAsText: boolean;
  readonly #mediaAsText: ReplyEventsOptions['mediaAsText'];
  #callIds: Set<string> | undefined;
  #blocks = 0;
  #started = false;

  constructor(sink: Sink, options: ReplyEventsOptions) {
    this.#sink = sink;
    this.audioAsText = options.audioAsText ?? false;
    this.#names = options.names;
    this.#idSeed = options.idSeed;
    this.#mediaAsText = options.mediaAsText;
  }

  /** This choice has some output: text, a call, anything. */
  get hasContent(): boolean {
    return this.#blocks > 0;
  }

  /** Some choice has a reason to stop. */
  get hasStopped(): boolean {
    return [...this.#choices.values()].some((choice) => choice.stopped);
  }

  /** Sent once; later calls change nothing. */
  start(id?: string, createdAt?: number, serviceTier?: string): void {
    if (this.#started) return;
    this.#started = true;
    const created = createdAt === undefined ? undefined : Math.floor(createdAt);
    this.#sink({ type: 'reply-start', id, createdAt: created, serviceTier });
  }

  text(choice: number, text: string, logprobs?: readonly TokenLogprob[]): void {
    if (text === '' && logprobs === undefined) return;
    const state = this.#state(choice);
    if (state.stopped) return;
    const block = this.#enter(choice, state, 'text');
    this.#sink({ type: 'text-delta', block, choice, text, logprobs });
  }

  refusal(choice: number, text: string): void {
    if (text === '') return;
    const state = this.#state(choice);
    if (state.stopped) return;
    const block = this.#enter(choice, state, 'refusal');
    this.#sink({ type: 'refusal-delta', block, choice, text });
  }

  /** `''` opens the block without text: some models send a signature alone. */
  reasoning(choice: number, text: string): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    const block = this.#enter(choice, state, 'reasoning');
    if (text !== '') this.#sink({ type: 'reasoning-delta', block, choice, text });
  }

  /** Adds to the open text block, or to a new one. */
  citation(choice: number, citation: Citation): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#enter(choice, state, 'text');
    state.cited.push(citation);
  }

  /** Ends the open block; `opaqueState` belongs to a text or reasoning block. Without an open block nothing happens. */
  close(choice: number, opaqueState?: string): void {
    const state = this.#state(choice);
    const { open, block } = state;
    state.open = undefined;
    if (open === 'text') {
      for (const citation of state.cited.splice(0)) this.#sink({ type: 'citation', block, choice, citation });
      this.#sink({ type: 'text-end', block, choice, opaqueState });
    } else if (open === 'refusal') this.#sink({ type: 'refusal-end', block, choice });
    else if (open === 'reasoning') this.#sink({ type: 'reasoning-end', block, choice, opaqueState, redacted: false });
  }

  /** A reasoning block with opaque state only. */
  redacted(choice: number, opaqueState: string): void {
    if (this.#isStopped(choice)) return;
    this.close(choice);
    const block = this.#begin();
    this.#sink({ type: 'reasoning-start', block, choice });
    this.#sink({ type: 'reasoning-end', block, choice, opaqueState, redacted: true });
  }

  /** `key` identifies a call within its choice: an index or a position. */
  call(choice: number, key: string | number, fragment: CallFragment): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#closeOpen(choice, state);
    let call = state.calls.get(key);
    if (call === undefined) {
      call = { choice, id: '', name: '', block: -1, held: '', length: 0, custom: false, ended: false };
      state.calls.set(key, call);
    }
    if (call.ended) return;
    if (call.id === '' && fragment.id) call.id = fragment.id;
    if (call.name === '' && fragment.name) call.name = fragment.name;
    const input = fragment.input ?? '';
    if (call.block === -1) {
      call.held += input;
      if (call.name !== '') this.#startCall(state, call, fragment.custom);
    } else if (input !== '') this.#growCall(call, input);
  }

  /** Whether a tool's name begins with this text; without known tools every text may. */
  beginsToolName(text: string): boolean {
    if (this.#names.size === 0) return true;
    for (const name of this.#names.keys()) if (name.startsWith(text)) return true;
    return false;
  }

  /** Whether this is a tool's name, and not also the beginning of a longer one. */
  isWholeToolName(text: string): boolean {
    if (!this.#names.has(text)) return false;
    for (const name of this.#names.keys()) if (name.length > text.length && name.startsWith(text)) return false;
    return true;
  }

  /** Ends one call. `input`: all of its arguments, of which only the missing rest is sent. */
  endCall(
    choice: number,
    key: string | number,
    options: { input?: string; opaqueState?: string; isCut?: boolean } = {},
  ): void {
    const call = this.#state(choice).calls.get(key);
    if (call !== undefined) this.#endCall(call, options);
  }

  hasCalls(choice: number): boolean {
    return (this.#choices.get(choice)?.callCount ?? 0) > 0;
  }

  media(choice: number, media: MediaPart): void {
    if (this.#isStopped(choice)) return;
    const text = this.#mediaAsText?.(media);
    if (text !== undefined) this.text(choice, text);
    else {
      this.#closeOpen(choice, this.#state(choice));
      this.#sink({ type: 'media', block: this.#begin(), choice, media });
    }
  }

  /** A search without query and results is left out. */
  search(choice: number, search: SearchPart): void {
    if (this.#isStopped(choice) || (search.queries.length === 0 && search.results.length === 0)) return;
    this.#closeOpen(choice, this.#state(choice));
    this.#sink({ type: 'search', block: this.#begin(), choice, search });
  }

  /** Closes open blocks. With `length`, calls that have not ended are cut off. The reason agrees with whether there are calls. */
  stop(choice: number, reason: StopReason, sequence?: string): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#closeOpen(choice, state);
    for (const call of state.calls.values()) this.#endCall(call, { isCut: reason === 'length' });
    state.stopped = true;
    const withCalls = reason === 'stop' || reason === 'pause' ? 'tool-calls' : reason;
    const withoutCalls = reason === 'tool-calls' ? 'stop' : reason;
    this.#sink({ type: 'stop', choice, reason: state.callCount > 0 ? withCalls : withoutCalls, sequence });
  }

  /** Output after the reason to stop is ignored. */
  #isStopped(choice: number): boolean {
    return this.#choices.get(choice)?.stopped ?? false;
  }

  #state(choice: number): ChoiceState {
    this.start();
    let state = this.#choices.get(choice);
    if (state === undefined) {
      state = { open: undefined, block: -1, cited: [], calls: new Map(), callCount: 0, stopped: false };
      this.#choices.set(choice, state);
    }
    return state;
  }

  #begin(): number {
    return this.#blocks++;
  }

  #enter(choice: number, state: ChoiceState, kind: 'text' | 'refusal' | 'reasoning'): number {
    if (state.open === kind) return state.block;
    this.#closeOpen(choice, state);
    state.open = kind;
    state.block = this.#begin();
    this.#sink({ type: `${kind}-start`, block: state.block, choice });
    return state.block;
  }

  #closeOpen(choice: number, state: ChoiceState): void {
    if (state.open !== undefined) this.close(choice);
  }

  #startCall(state: ChoiceState, call: OpenCall, custom: boolean | undefined): void {
    const declared = this.#names.get(call.name);
    if (call.id === '' || this.#callIds?.has(call.id) === true) call.id = this.#unusedId(state.callCount);
    this.#callIds ??= new Set();
    this.#callIds.add(call.id);
    state.callCount++;
    call.block = this.#begin();
    const { choice, block, id } = call;
    const name = declared?.name ?? call.name;
    call.custom = custom ?? declared?.custom ?? false;
    const { namespace } = declared ?? {};
    this.#sink({ type: 'tool-start', block, choice, id, name, namespace, custom: call.custom });
    const held = call.held;
    call.held = '';
    if (held !== '') this.#growCall(call, held);
  }

  /** Some upstreams send one id for several calls; clients could not match their results. */
  #unusedId(callIndex: number): string {
    const base = `call_${this.#idSeed}_${callIndex}`;
    let id = base;
    for (let repeat = 1; this.#callIds?.has(id) === true; repeat++) id = `${base}_${repeat}`;
    return id;
  }

  /** Arguments are an object: `null` in their place, possibly in pieces, means none. */
  #growCall(call: OpenCall, text: string): void {
    let more = text;
    if (call.length === 0 && !call.custom) {
      more = call.held + text;
      call.held = '';
      if (isNullSoFar(more)) {
        call.held = more;
        return;
      }
    }
    call.length += more.length;
    this.#sink({ type: 'tool-delta', block: call.block, choice: call.choice, text: more });
  }

  /** A beginning of `null` that did not become one is sent as it came. */
  #emitHeld(call: OpenCall): void {
    const { held, block, choice } = call;
    call.held = '';
    if (held.trim() === '' || held.trim() === 'null') return;
    call.length += held.length;
    this.#sink({ type: 'tool-delta', block, choice, text: held });
  }

  #endCall(
    call: OpenCall,
    { input, opaqueState, isCut = false }: { input?: string; opaqueState?: string; isCut?: boolean },
  ): void {
    if (call.ended) return;
    call.ended = true;
    // A call that never got a name cannot be executed.
    if (call.block === -1) return;
    if (input !== undefined && input.length > call.length) {
      call.held = '';
      this.#growCall(call, input.slice(call.length));
    }
    this.#emitHeld(call);
    if (call.length === 0 && !isCut && !call.custom) this.#growCall(call, '{}');
    this.#sink({ type: 'tool-end', block: call.block, choice: call.choice, opaqueState, isCut });
  }
}

/** Whether a text is `null` or may still become it. */
function isNullSoFar(text: string): boolean {
  return text.length < 40 && 'null'.startsWith(text.trim());
}
