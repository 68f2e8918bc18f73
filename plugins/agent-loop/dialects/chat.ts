/** Runs in the protocol of chat completions: the texts of all turns as one message, with the tools that were run. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import { Sources } from '../search/sources.ts';
import type { End, Opening, Talk, ToolDone, Turn } from '../talk.ts';
import { invalid } from '../wanted.ts';
import { annotationsOf, ChatFrames, executed } from './chat-frames.ts';
import { isFilesTool } from './responses-files.ts';
import { summed } from './sums.ts';

/** What a model may need of its own turn beside text and calls. */
const keptMembers = ['role', 'content', 'tool_calls', 'reasoning', 'reasoning_content', 'reasoning_details'];
const cuts = new Set(['length', 'content_filter']);

export class ChatTalk implements Talk {
  readonly keepsCalls = false;
  readonly approved = [];
  readonly frames: ChatFrames;
  readonly #opening: Opening;
  readonly #request: JsonObject;
  readonly #messages: unknown[];
  readonly #made: JsonObject[] = [];
  readonly #sources = new Sources();
  #content: string | undefined;
  #reasoning: string | undefined;
  #hasCalled = false;
  #last: JsonObject = {};
  #usage: unknown;

  constructor(opening: Opening) {
    this.#opening = opening;
    const { json, offered } = opening;
    if (typeof json['n'] === 'number' && json['n'] > 1) throw invalid('A run with tools gives one answer.', 'n');
    this.#messages = [...listOf(json['messages'])];
    const others = listOf(json['tools']).filter(
      (tool) => !isObject(tool) || !(offered.hasLabel(tool['server_label']) || isFilesTool(tool, offered)),
    );
    const own = offered.all.map(({ name, description, schema }) => ({
      ...{ type: 'function', function: { name, description, parameters: schema } },
    }));
    const { web_search_options: options, ...rest } = json;
    const kept = offered.search === undefined && options !== undefined ? { web_search_options: options } : {};
    this.#request = { ...rest, ...kept, tools: [...others, ...own] };
    this.frames = new ChatFrames((name) => offered.has(name), this.#sources);
  }

  approvedDone(): void {}

  body(): JsonObject {
    const choice = this.#request['tool_choice'];
    // What had to be called was called.
    const isForced = this.#hasCalled && choice !== undefined && choice !== 'none';
    return { ...this.#request, messages: this.#messages, ...(isForced ? { tool_choice: 'auto' } : {}) };
  }

  take(answer: JsonObject): Turn {
    this.#last = answer;
    this.#usage = summed(this.#usage, answer['usage']);
    const choice = choiceOf(answer);
    const message = messageOf(choice);
    this.#content = joined(this.#content, message['content']);
    this.#reasoning = joined(this.#reasoning, message['reasoning_content']);
    const calls = listOf(message['tool_calls']).filter(isObject);
    const own = calls.filter((call) => this.#isOwn(call));
    return {
      own: own.map((call) => {
        const { name, arguments: given } = functionIn(call);
        return { id: String(call['id']), name: String(name), arguments: textOf(given) ?? '{}' };
      }),
      hasOthers: own.length < calls.length,
      isCut: cuts.has(String(choice['finish_reason'])),
    };
  }

  add(done: readonly ToolDone[]): void {
    this.#hasCalled = true;
    this.#sources.add(done);
    const message = messageOf(choiceOf(this.#last));
    const kept = keptMembers.flatMap((name) => (message[name] == null ? [] : [[name, message[name]] as const]));
    this.#messages.push({ role: 'assistant', content: null, ...Object.fromEntries(kept) });
    for (const { id, output } of done) this.#messages.push({ role: 'tool', tool_call_id: id, content: output });
    this.#made.push(...done.map(executed));
  }

  ask(): void {}

  whole(end: End): JsonObject {
    const choice = choiceOf(this.#last);
    const { tool_calls: calls, ...message } = messageOf(choice);
    const others = listOf(calls).filter((call) => isObject(call) && !this.#isOwn(call));
    const made = {
      ...message,
      content: this.#content ?? null,
      ...(this.#reasoning === undefined ? {} : { reasoning_content: this.#reasoning }),
      ...annotationsOf(this.#content ?? '', this.#sources, message['annotations']),
      ...(others.length === 0 ? {} : { tool_calls: others }),
      ...(this.#made.length === 0 ? {} : { executed_tools: this.#made.map((one, index) => ({ index, ...one })) }),
    };
    const finish = end === 'bound' ? 'length' : choice['finish_reason'];
    return {
      ...this.#last,
      choices: [{ ...choice, message: made, finish_reason: finish }],
      usage: this.#usage ?? null,
    };
  }

  #isOwn(call: JsonObject): boolean {
    return this.#opening.offered.has(functionIn(call)['name']);
  }
}

const choiceOf = ({ choices }: JsonObject): JsonObject => listOf(choices).find(isObject) ?? {};
const messageOf = ({ message }: JsonObject): JsonObject => (isObject(message) ? message : {});
const functionIn = (call: JsonObject): JsonObject => (isObject(call['function']) ? call['function'] : {});

function joined(before: string | undefined, text: unknown): string | undefined {
  if (typeof text !== 'string' || text === '') return before;
  return before === undefined ? text : `${before}\n\n${text}`;
}
