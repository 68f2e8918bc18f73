/** Decodes answers of the messages protocol, streamed or whole, into ReplyEvents. */
import { table } from '../../../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../../../core/json/json.ts';
import type { ReplyDecoder } from '../../../../common/canonical/codec.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { StopReason } from '../../../../common/canonical/reply.ts';
import { fenced } from '../../../encoding/fenced.ts';
import { decodeAnswerCitation, decodeQueries, decodeSearchResults, keepAsWritten } from '../citations.ts';

/** Any other reason counts as a plain end. */
const stopReasons: Readonly<Record<string, StopReason>> = table({
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refusal',
  pause_turn: 'pause',
});

/** Tools that the vendor runs and that other protocols can report. */
const serverTools: Readonly<Record<string, OpenBlock['kind']>> = table({
  web_search: 'search',
  code_execution: 'code',
  bash_code_execution: 'code',
});

/** The open block of the stream. */
interface OpenBlock {
  readonly kind: 'text' | 'thinking' | 'tool' | 'search' | 'code' | 'other';
  /** Numbered here: upstreams may omit their own index. */
  readonly number: number;
  /** Id of a search. */
  readonly id: string;
  signature: string | undefined;
  /** JSON of the input of a tool or search from the start of the block. */
  given: string;
  /** JSON of the input from deltas. */
  json: string;
}

/** The protocol has one answer. */
const choice = 0;

export class MessagesDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  /** Queries of searches without results so far, by id. */
  #searches: Map<string, string[]> | undefined;
  #open: OpenBlock | undefined;
  #count = 0;
  /** A call with a stopped block and arguments that are not JSON: complete if anything follows it, cut off otherwise. */
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

  /** Starts a block; some kinds are complete at their start. A new block also ends a block that the upstream did not stop. */
  startBlock(value: unknown): void {
    this.stopBlock();
    this.#endDoubtful();
    const block = objectOf(value) ?? {};
    switch (block['type']) {
      case 'text':
        this.#enter('text');
        for (const citation of listOf(block['citations']))
          if (isObject(citation)) this.#events.citation(choice, decodeAnswerCitation(citation));
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
    else if (open.kind === 'search') this.#searched(open.id, decodeQueries(tryParse(open.json || open.given)));
    else if (open.kind === 'code') this.#ran(codeText(tryParse(open.json || open.given)));
    else if (open.kind === 'tool') this.#stopCall(open);
  }

  stopMessage(delta: JsonObject): void {
    const named = textOf(delta['stop_reason']);
    if (named === undefined || this.#stopped) return;
    this.#stopped = true;
    this.stopBlock();
    for (const id of this.#searches?.keys() ?? []) this.#found(id, undefined);
    const explanation = textOf(objectOf(delta['stop_details'])?.['explanation']);
    if (named === 'refusal' && explanation !== undefined) this.#events.refusal(choice, explanation);
    this.#events.stop(choice, stopReasons[named] ?? 'stop', textOf(delta['stop_sequence']));
  }

  #delta(value: unknown): void {
    if (!isObject(value)) return;
    switch (value['type']) {
      case 'text_delta':
        this.#continue('text');
        if (typeof value['text'] === 'string') this.#events.text(choice, value['text']);
        break;
      case 'thinking_delta':
        this.#continue('thinking');
        if (typeof value['thinking'] === 'string') this.#events.reasoning(choice, value['thinking']);
        break;
      case 'input_json_delta':
        if (typeof value['partial_json'] === 'string') this.#input(value['partial_json']);
        break;
      case 'signature_delta':
        // A signature outside of a thinking block signs nothing.
        if (this.#open?.kind === 'thinking') this.#open.signature = textOf(value['signature']);
        break;
      case 'citations_delta':
        if (isObject(value['citation'])) this.#events.citation(choice, decodeAnswerCitation(value['citation']));
    }
  }

  #input(text: string): void {
    const open = this.#open;
    if (open === undefined || text === '') return;
    if (open.kind === 'tool') this.#events.call(choice, open.number, { input: text });
    else if (open.kind !== 'search' && open.kind !== 'code') return;
    open.json += text;
  }

  /** A delta of another kind than its block's ends the block, even if the upstream did not send the stop. */
  #continue(kind: 'text' | 'thinking'): void {
    if (this.#open?.kind === kind) return;
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
    else if (open.json === '' && !isNothing(open.given)) this.#events.failure = 'the input of a call is no object';
    else this.#doubtful = open.number;
  }

  #endDoubtful(): void {
    if (this.#doubtful !== undefined) this.#events.endCall(choice, this.#doubtful);
    this.#doubtful = undefined;
  }

  /** Code that the vendor ran, and its output, in a separate block. */
  #ran(text: string): void {
    if (text === '') return;
    this.#events.text(choice, text);
    this.#events.close(choice);
  }

  #searched(id: string, queries: string[]): void {
    this.#searches ??= new Map();
    this.#searches.set(id, queries);
  }

  #found(id: string, content: unknown): void {
    const queries = this.#searches?.get(id) ?? [];
    this.#searches?.delete(id);
    this.#events.search(choice, { kind: 'search', id, queries, results: decodeSearchResults(content, keepAsWritten) });
  }
}

function isNothing(input: string): boolean {
  return ['', 'null', '[]', '""'].includes(input.trim());
}

/** Streams start with an empty input and send it in deltas; whole answers contain all of it. */
function inputJson(input: unknown): string {
  // Some vendors write the object as a text.
  if (typeof input === 'string') return input;
  return isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
}

/** Decodes a whole answer. Pure. */
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

/** Code from the input of a code tool; '' if it is incomplete. */
function codeText(input: unknown): string {
  if (!isObject(input)) return '';
  const command = textOf(input['command']);
  const code = textOf(input['code']);
  if (command !== undefined) return fenced('sh', command);
  return code === undefined ? '' : fenced('python', code);
}

/** Output from a result's content; '' if there is none, or if the run failed. */
function printedText(content: unknown): string {
  const result = objectOf(content) ?? {};
  const printed = (textOf(result['stdout']) ?? '') + (textOf(result['stderr']) ?? '');
  return printed === '' ? '' : fenced('', printed);
}
