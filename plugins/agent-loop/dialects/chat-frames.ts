/** A run as one stream of chat completions. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import type { Sources } from '../search/sources.ts';
import type { End, Frames, ToolDone } from '../talk.ts';
import { summed } from './sums.ts';

interface GrowingCall {
  readonly id: unknown;
  readonly name: string;
  readonly isOwn: boolean;
  /** Its place among the calls that the client gets. */
  readonly place: number;
  arguments: string;
}

export class ChatFrames implements Frames {
  readonly #isOwn: (name: unknown) => boolean;
  readonly #sources: Sources;
  /** Members of every chunk. */
  #head: JsonObject | undefined;
  #turn = newTurn();
  #usage: unknown;
  /** The answer as the client has it. */
  #text = '';
  #turns = 0;
  #shown = 0;
  #made = 0;
  #finish: unknown = null;

  constructor(isOwn: (name: unknown) => boolean, sources: Sources) {
    this.#isOwn = isOwn;
    this.#sources = sources;
  }

  frame(_event: string | undefined, data: JsonObject | undefined): string {
    if (data === undefined) return '';
    if ('error' in data) {
      this.#turn.hasFailed = true;
      return formatFrame(JSON.stringify(data));
    }
    const { choices, usage, ...head } = data;
    this.#head ??= head;
    if (isObject(usage)) this.#turn.usage = usage;
    const choice = listOf(choices).find(isObject);
    if (choice === undefined) return '';
    if (choice['finish_reason'] != null) this.#turn.finish = choice['finish_reason'];
    const delta = this.#delta(isObject(choice['delta']) ? choice['delta'] : {});
    return Object.keys(delta).length === 0 ? '' : this.#chunk({ ...choice, delta, finish_reason: null });
  }

  answer(): JsonObject | undefined {
    const { content, reasoning, calls, finish, usage, hasFailed, extras } = this.#turn;
    this.#turn = newTurn();
    this.#turns += 1;
    this.#usage = summed(this.#usage, usage);
    this.#finish = finish;
    if (hasFailed) return undefined;
    const tool_calls = [...calls.values()].map((call) => ({
      ...{ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } },
    }));
    const message = {
      ...{ role: 'assistant', content: content === '' ? null : content, ...extras },
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(tool_calls.length === 0 ? {} : { tool_calls }),
    };
    return { ...this.#head, choices: [{ index: 0, message, finish_reason: finish }], usage: usage ?? null };
  }

  called(): string {
    return '';
  }

  done(done: ToolDone): string {
    const delta = { executed_tools: [{ index: this.#made++, ...executed(done) }] };
    return this.#chunk({ index: 0, delta, finish_reason: null });
  }

  asked(): string {
    return '';
  }

  end(end: End): string {
    const delta = annotationsOf(this.#text, this.#sources, undefined);
    const cited = Object.keys(delta).length === 0 ? '' : this.#chunk({ index: 0, delta, finish_reason: null });
    const last = this.#chunk({ index: 0, delta: {}, finish_reason: end === 'bound' ? 'length' : this.#finish });
    const usage = isObject(this.#usage)
      ? formatFrame(JSON.stringify({ ...this.#head, choices: [], usage: this.#usage }))
      : '';
    return `${cited}${last}${usage}${formatFrame('[DONE]')}`;
  }

  /** What the client gets of a chunk's delta, which is added to the turn. */
  #delta({ role, content, tool_calls: calls, ...others }: JsonObject): JsonObject {
    const shown: Record<string, unknown> = {};
    if (role !== undefined && this.#turns === 0) shown['role'] = role;
    if (typeof content === 'string' && content !== '') {
      const isBehindText = this.#text !== '' && this.#turn.content === '';
      this.#turn.content += content;
      const said = isBehindText ? `\n\n${content}` : content;
      this.#text += said;
      shown['content'] = said;
    } else if (content !== undefined && this.#turns === 0) shown['content'] = content;
    if (typeof others['reasoning_content'] === 'string') this.#turn.reasoning += others['reasoning_content'];
    if (Array.isArray(others['reasoning_details'])) this.#keepDetails(others['reasoning_details']);
    const theirs = listOf(calls)
      .filter(isObject)
      .flatMap((call) => this.#call(call));
    if (theirs.length > 0) shown['tool_calls'] = theirs;
    const present = Object.entries(others).filter(([, value]) => value != null);
    return { ...shown, ...Object.fromEntries(present) };
  }

  #keepDetails(details: readonly unknown[]): void {
    this.#turn.extras['reasoning_details'] = [...listOf(this.#turn.extras['reasoning_details']), ...details];
  }

  #call(call: JsonObject): JsonObject[] {
    const { index } = call;
    const given = isObject(call['function']) ? call['function'] : {};
    let known = this.#turn.calls.get(index);
    if (known === undefined) {
      const isOwn = this.#isOwn(given['name']);
      known = { id: call['id'], name: String(given['name']), isOwn, place: isOwn ? -1 : this.#shown++, arguments: '' };
      this.#turn.calls.set(index, known);
    }
    if (typeof given['arguments'] === 'string') known.arguments += given['arguments'];
    return known.isOwn ? [] : [{ ...call, index: known.place }];
  }

  #chunk(choice: JsonObject): string {
    return formatFrame(JSON.stringify({ ...this.#head, choices: [choice] }));
  }
}

function newTurn() {
  return {
    ...{ content: '', reasoning: '', finish: null as unknown, usage: undefined as unknown, hasFailed: false },
    ...{ calls: new Map<unknown, GrowingCall>(), extras: {} as Record<string, unknown> },
  };
}

/** A tool that was run, in the form that answers with tools of a vendor have. */
export function executed({ name, output, isError, found, files, ...use }: ToolDone): JsonObject {
  const search = files === undefined ? 'web_search' : 'file_search';
  const type = found === undefined && files === undefined ? 'mcp' : search;
  return { type, name, arguments: use.arguments, output, ...(isError ? { is_error: true } : {}) };
}

/** Pages that the text cites, behind annotations that the model has given; no member where there are none. */
export function annotationsOf(text: string, sources: Sources, given: unknown): JsonObject {
  const cited = sources.cited(text).map(({ start, end, page: { url, title } }) => ({
    ...{ type: 'url_citation', url_citation: { start_index: start, end_index: end, url, title } },
  }));
  return cited.length === 0 ? {} : { annotations: [...listOf(given), ...cited] };
}
