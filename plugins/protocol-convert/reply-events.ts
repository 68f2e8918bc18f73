/** Makes legal event streams of whatever an upstream sends: what every decoder tells its findings to. Pure. */
import type { Citation, MediaPart, SearchPart, TokenLogprob } from './canon.ts';
import type { Sink, StopReason } from './reply.ts';

/** How a tool was declared by the client, by its name at the upstream. */
export interface DeclaredTool {
  readonly name: string;
  readonly namespace?: string;
  readonly custom?: boolean;
}
export type ToolNames = ReadonlyMap<string, DeclaredTool>;

/** What may be told of a tool call, as it becomes known. Empty strings count as absent. */
export interface CallFragment {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  /** More of the arguments, or of the raw input. */
  readonly input?: string | undefined;
  readonly custom?: boolean | undefined;
}

interface OpenCall {
  readonly choice: number;
  id: string;
  name: string;
  block: number;
  /** What came before the name, and of custom tools in a wrapper until the end. */
  held: string;
  length: number;
  custom: boolean;
  ended: boolean;
}

interface ChoiceState {
  /** Open text, refusal or reasoning block. */
  open: 'text' | 'refusal' | 'reasoning' | undefined;
  block: number;
  /** Of the open text block, told at its end: some vendors cite before they write the words that the place is counted by. */
  cited: Citation[];
  calls: Map<string | number, OpenCall>;
  last: OpenCall | undefined;
  callCount: number;
  stopped: boolean;
}

/**
 * Opens, grows and closes blocks so that the rules of `Event` hold, whatever the upstream does: a block closes when its
 * choice goes on with something else, a call starts when its name is known, ids are made up where none came, each end and
 * each `stop` is told once, nothing comes after it, and a `stop` with calls becomes `tool-calls`.
 */
export class ReplyEvents {
  readonly #sink: Sink;
  readonly #names: ToolNames;
  /** Made-up ids begin with it: the same answer gets the same ids. */
  readonly #idSeed: string;
  readonly #choices = new Map<number, ChoiceState>();
  /**
   * Why there is no answer although the upstream says that it is complete: a sentence for the client. Set by decoders in
   * place of a `stop`; what was told before it is of no use alone.
   */
  failure: string | undefined;
  #blocks = 0;
  #started = false;

  constructor(sink: Sink, options: { readonly names: ToolNames; readonly idSeed: string }) {
    this.#sink = sink;
    this.#names = options.names;
    this.#idSeed = options.idSeed;
  }

  /** Something was told of this choice: text, a call, anything. */
  get hasContent(): boolean {
    return this.#blocks > 0;
  }

  /** Some choice has told why it ended. */
  get hasStopped(): boolean {
    return [...this.#choices.values()].some((choice) => choice.stopped);
  }

  /** Tells the stops that are missing: for `end()` of decoders. */
  stopAll(reason: StopReason): void {
    if (this.#choices.size === 0) return;
    for (const [choice, state] of this.#choices) if (!state.stopped) this.stop(choice, reason);
  }

  /** Told once; later calls change nothing. */
  start(id?: string, createdAt?: number, serviceTier?: string): void {
    if (this.#started) return;
    this.#started = true;
    this.#sink({ type: 'reply-start', id, createdAt, serviceTier });
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

  /** `''` opens the block and says nothing: some models only sign. */
  reasoning(choice: number, text: string): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    const block = this.#enter(choice, state, 'reasoning');
    if (text !== '') this.#sink({ type: 'reasoning-delta', block, choice, text });
  }

  /** To the open text block, or to one that is opened for it. */
  citation(choice: number, citation: Citation): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#enter(choice, state, 'text');
    state.cited.push(citation);
  }

  /** Ends the open block; `keepsake` goes with a text or reasoning block. Nothing open: nothing happens. */
  close(choice: number, keepsake?: string): void {
    const state = this.#state(choice);
    const { open, block } = state;
    state.open = undefined;
    if (open === 'text') {
      for (const citation of state.cited.splice(0)) this.#sink({ type: 'citation', block, choice, citation });
      this.#sink({ type: 'text-end', block, choice, keepsake });
    } else if (open === 'refusal') this.#sink({ type: 'refusal-end', block, choice });
    else if (open === 'reasoning') this.#sink({ type: 'reasoning-end', block, choice, keepsake, redacted: false });
  }

  /** A reasoning block of which only the keepsake is known. */
  redacted(choice: number, keepsake: string): void {
    if (this.#isStopped(choice)) return;
    this.close(choice);
    const block = this.#begin();
    this.#sink({ type: 'reasoning-start', block, choice });
    this.#sink({ type: 'reasoning-end', block, choice, keepsake, redacted: true });
  }

  /** `key` tells the calls of one choice apart: an index, an item's place. */
  call(choice: number, key: string | number, fragment: CallFragment): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#closeOpen(choice, state);
    let call = state.calls.get(key);
    if (call === undefined) {
      call = { choice, id: '', name: '', block: -1, held: '', length: 0, custom: false, ended: false };
      state.calls.set(key, call);
      state.last = call;
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

  /** Ends one call. `input`: the whole of its arguments, of which only what has not come yet is told. */
  endCall(
    choice: number,
    key: string | number,
    options: { input?: string; keepsake?: string; isCut?: boolean } = {},
  ): void {
    const call = this.#state(choice).calls.get(key);
    if (call !== undefined) this.#endCall(call, options);
  }

  /** The key of the call that was spoken of last, for upstreams that name none. */
  lastCallKey(choice: number): string | number | undefined {
    const state = this.#choices.get(choice);
    if (state?.last === undefined) return undefined;
    for (const [key, call] of state.calls) if (call === state.last) return key;
    return undefined;
  }

  hasCalls(choice: number): boolean {
    return (this.#choices.get(choice)?.callCount ?? 0) > 0;
  }

  media(choice: number, media: MediaPart): void {
    if (this.#isStopped(choice)) return;
    this.#closeOpen(choice, this.#state(choice));
    this.#sink({ type: 'media', block: this.#begin(), choice, media });
  }

  search(choice: number, search: SearchPart): void {
    if (this.#isStopped(choice)) return;
    this.#closeOpen(choice, this.#state(choice));
    this.#sink({ type: 'search', block: this.#begin(), choice, search });
  }

  /** Closes what is open. With `length`, calls that have not ended are cut off. */
  stop(choice: number, reason: StopReason, sequence?: string): void {
    const state = this.#state(choice);
    if (state.stopped) return;
    this.#closeOpen(choice, state);
    for (const call of state.calls.values()) this.#endCall(call, { isCut: reason === 'length' });
    state.stopped = true;
    const told = state.callCount > 0 && (reason === 'stop' || reason === 'pause') ? 'tool-calls' : reason;
    this.#sink({ type: 'stop', choice, reason: told, sequence });
  }

  /** What comes after the reason to stop belongs to nobody. */
  #isStopped(choice: number): boolean {
    return this.#choices.get(choice)?.stopped ?? false;
  }

  #state(choice: number): ChoiceState {
    this.start();
    let state = this.#choices.get(choice);
    if (state === undefined) {
      state = {
        ...{ open: undefined, block: -1, cited: [], calls: new Map() },
        ...{ last: undefined, callCount: 0, stopped: false },
      };
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
    if (call.id === '') call.id = `call_${this.#idSeed}_${state.callCount}`;
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

  #growCall(call: OpenCall, text: string): void {
    call.length += text.length;
    this.#sink({ type: 'tool-delta', block: call.block, choice: call.choice, text });
  }

  #endCall(
    call: OpenCall,
    { input, keepsake, isCut = false }: { input?: string; keepsake?: string; isCut?: boolean },
  ): void {
    if (call.ended) return;
    call.ended = true;
    // A call that never got a name cannot be carried out by anybody.
    if (call.block === -1) return;
    if (input !== undefined && input.length > call.length) this.#growCall(call, input.slice(call.length));
    if (call.length === 0 && !isCut && !call.custom) this.#growCall(call, '{}');
    this.#sink({ type: 'tool-end', block: call.block, choice: call.choice, keepsake, isCut });
  }
}
