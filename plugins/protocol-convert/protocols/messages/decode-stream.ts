/** Reads answers of the messages protocol, streamed or whole, and tells them to ReplyEvents. */
import type { ReplyDecoder } from '../../codec.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../json.ts';
import type { StopReason } from '../../reply.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { keepAsWorded, readAnswerCitation, readQueries, readSearchResults } from './citations.ts';
import { codeText, printedText } from './executed-code.ts';

/** Reasons that are not in it end an answer like any other end. */
const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refusal',
  pause_turn: 'pause',
};

/** Tools that the vendor runs, of which clients of other protocols are told. */
const serverTools: Readonly<Record<string, OpenBlock['kind']>> = {
  web_search: 'search',
  code_execution: 'code',
  bash_code_execution: 'code',
};

/** The block that the stream is in. */
interface OpenBlock {
  readonly kind: 'text' | 'thinking' | 'tool' | 'search' | 'code' | 'other';
  /** Counted here: upstreams may forget their own. */
  readonly number: number;
  /** Of a search: its id. */
  readonly id: string;
  signature: string | undefined;
  /** JSON of a tool's or search's input that the block's start brought. */
  given: string;
  /** What came of it in deltas. */
  json: string;
}

/** The protocol gives one answer. */
const choice = 0;

export class MessagesDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  /** Queries of searches whose results have not come, by id. */
  readonly #searches = new Map<string, string[]>();
  #open: OpenBlock | undefined;
  #count = 0;
  /** A call whose block has stopped, though its arguments are no JSON: whole if anything follows it, cut off otherwise. */
  #doubtful: number | undefined;
  #stopped = false;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject, event: string | undefined): void {
    if (this.#stopped) return;
    switch (json['type'] ?? event) {
      case 'content_block_delta':
        this.#delta(json['delta']);
        break;
      case 'content_block_start':
        this.startBlock(json['content_block']);
        break;
      case 'content_block_stop':
        this.stopBlock();
        break;
      case 'message_start':
        this.startMessage(objectOf(json['message']) ?? {});
        break;
      case 'message_delta':
        this.stopMessage(objectOf(json['delta']) ?? {});
        break;
    }
  }

  end(): void {
    if (!this.#stopped) this.stopMessage({ stop_reason: 'end_turn' });
  }

  startMessage(message: JsonObject): void {
    const tier = textOf(objectOf(message['usage'])?.['service_tier']);
    this.#events.start(textOf(message['id']), undefined, tier === 'standard' ? 'default' : tier);
  }

  /** A block's beginning, which of some kinds is all of it. Upstreams that forget to stop a block stop it by the next one. */
  startBlock(value: unknown): void {
    this.stopBlock();
    this.#endDoubtful();
    const block = objectOf(value) ?? {};
    switch (block['type']) {
      case 'text':
        this.#enter('text');
        for (const citation of listOf(block['citations']))
          if (isObject(citation)) this.#events.citation(choice, readAnswerCitation(citation));
        this.#events.text(choice, textOf(block['text']) ?? '');
        break;
      case 'thinking':
        this.#enter('thinking').signature = textOf(block['signature']);
        this.#events.reasoning(choice, textOf(block['thinking']) ?? '');
        break;
      case 'redacted_thinking':
        this.#events.redacted(choice, textOf(block['data']) ?? '');
        break;
      case 'tool_use':
        this.#startCall(block);
        break;
      case 'server_tool_use':
        this.#enter(serverTools[textOf(block['name']) ?? ''] ?? 'other', textOf(block['id'])).given = inputJson(
          block['input'],
        );
        break;
      case 'code_execution_tool_result':
      case 'bash_code_execution_tool_result':
        this.#enter('other');
        this.#ran(printedText(block['content']));
        break;
      case 'web_search_tool_result':
        this.#found(textOf(block['tool_use_id']) ?? '', block['content']);
        break;
      default:
        this.#enter('other');
    }
  }

  stopBlock(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    if (open.kind === 'text') this.#events.close(choice);
    else if (open.kind === 'thinking') this.#events.close(choice, open.signature);
    else if (open.kind === 'search') this.#searches.set(open.id, readQueries(tryParse(open.json || open.given)));
    else if (open.kind === 'code') this.#ran(codeText(tryParse(open.json || open.given)));
    else if (open.kind === 'tool') this.#stopCall(open);
  }

  stopMessage(delta: JsonObject): void {
    const named = textOf(delta['stop_reason']);
    if (named === undefined || this.#stopped) return;
    this.#stopped = true;
    this.stopBlock();
    for (const id of this.#searches.keys()) this.#found(id, undefined);
    const explanation = textOf(objectOf(delta['stop_details'])?.['explanation']);
    if (named === 'refusal' && explanation !== undefined) this.#events.refusal(choice, explanation);
    const reason = stopReasons[named] ?? 'stop';
    const isCallless = reason === 'tool-calls' && !this.#events.hasCalls(choice);
    this.#events.stop(choice, isCallless ? 'stop' : reason, textOf(delta['stop_sequence']));
  }

  #delta(value: unknown): void {
    if (!isObject(value)) return;
    switch (value['type']) {
      case 'text_delta':
        if (this.#open?.kind !== 'text') this.#switchTo('text');
        if (typeof value['text'] === 'string') this.#events.text(choice, value['text']);
        break;
      case 'thinking_delta':
        if (this.#open?.kind !== 'thinking') this.#switchTo('thinking');
        if (typeof value['thinking'] === 'string') this.#events.reasoning(choice, value['thinking']);
        break;
      case 'input_json_delta':
        if (typeof value['partial_json'] === 'string') this.#input(value['partial_json']);
        break;
      case 'signature_delta':
        // Whoever sends it outside of a thinking block signs nothing.
        if (this.#open?.kind === 'thinking') this.#open.signature = textOf(value['signature']);
        break;
      case 'citations_delta':
        if (isObject(value['citation'])) this.#events.citation(choice, readAnswerCitation(value['citation']));
    }
  }

  #input(text: string): void {
    const open = this.#open;
    if (open === undefined || text === '') return;
    if (open.kind === 'tool') this.#events.call(choice, open.number, { input: text });
    else if (open.kind !== 'search' && open.kind !== 'code') return;
    open.json += text;
  }

  /** A delta of another kind than its block's: the block is over, whatever its upstream forgot to say. */
  #switchTo(kind: 'text' | 'thinking'): void {
    this.stopBlock();
    this.#endDoubtful();
    this.#enter(kind);
  }

  #enter(kind: OpenBlock['kind'], id = ''): OpenBlock {
    this.#open = { kind, number: this.#count++, id, signature: undefined, given: '', json: '' };
    return this.#open;
  }

  #startCall(block: JsonObject): void {
    const open = this.#enter('tool');
    open.given = inputJson(block['input']);
    this.#events.call(choice, open.number, { id: textOf(block['id']), name: textOf(block['name']) });
  }

  #stopCall(open: OpenBlock): void {
    const input = open.json || open.given;
    if (isObject(tryParse(input))) this.#events.endCall(choice, open.number, { input });
    else this.#doubtful = open.number;
  }

  #endDoubtful(): void {
    if (this.#doubtful !== undefined) this.#events.endCall(choice, this.#doubtful);
    this.#doubtful = undefined;
  }

  /** Code that the vendor ran, and what it printed, in a block of its own. */
  #ran(text: string): void {
    if (text === '') return;
    this.#events.text(choice, text);
    this.#events.close(choice);
  }

  #found(id: string, content: unknown): void {
    const queries = this.#searches.get(id) ?? [];
    this.#searches.delete(id);
    this.#events.search(choice, { kind: 'search', id, queries, results: readSearchResults(content, keepAsWorded) });
  }
}

/** Streams begin with an empty input and bring it in deltas; whole answers have all of it. */
function inputJson(input: unknown): string {
  return isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
}

/** Reads a whole answer. Pure. */
export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  const decoder = new MessagesDecoder(events);
  decoder.startMessage(json);
  for (const block of listOf(json['content'])) {
    decoder.startBlock(block);
    decoder.stopBlock();
  }
  decoder.stopMessage(json);
  decoder.end();
}
