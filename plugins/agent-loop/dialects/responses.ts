/** Runs in the protocol of responses: its own items of MCP, approvals, and answers that clients continue. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import { Sources } from '../search/sources.ts';
import type { End, Opening, Talk, ToolDone, ToolUse, Turn } from '../talk.ts';
import { invalid } from '../wanted.ts';
import { isFilesTool, withoutFiles } from './responses-files.ts';
import { ResponsesFrames } from './responses-frames.ts';
import { readInput } from './responses-input.ts';
import { approvalItem, callItem, type ResponsesRun } from './responses-items.ts';
import { isSearchTool, withCitations, withoutSearches, withoutSources } from './responses-search.ts';
import { summed } from './sums.ts';

export class ResponsesTalk implements Talk, ResponsesRun {
  readonly keepsCalls = true;
  readonly approved: readonly ToolUse[];
  readonly frames: ResponsesFrames;
  readonly opening: Opening;
  /** The run's output, by place; a stream fills it by its events. */
  readonly output: JsonObject[] = [];
  readonly #input: unknown[];
  readonly #request: JsonObject;
  readonly #choice: unknown;
  readonly sources = new Sources();
  #isFirst = true;
  #last: JsonObject = {};
  #usage: unknown;

  constructor(opening: Opening) {
    this.opening = opening;
    const { json, offered } = opening;
    if (json['background'] === true)
      throw invalid('Tools of this gateway are not run in the background.', 'background');
    if (textOf(json['previous_response_id']) !== undefined)
      throw invalid('The vendor keeps this answer: send its items in "input" instead.', 'previous_response_id');
    const { items, approved } = readInput(json['input'], offered);
    this.#input = withoutFiles(withoutSearches(items, offered), offered);
    this.approved = approved;
    this.#request = withoutSources({ ...json, tools: [...this.#otherTools(), ...offered.all.map(functionOf)] });
    this.#choice = choiceOf(json['tool_choice'], offered);
    if (!listOf(json['input']).some((item) => isObject(item) && item['type'] === 'mcp_list_tools'))
      offered.servers.forEach((_server, index) => void this.output.push(this.#listItem(index)));
    this.frames = new ResponsesFrames(this);
  }

  approvedDone(done: readonly ToolDone[]): void {
    for (const one of done) {
      this.#input.push(outputOf(one));
      this.output.push(callItem(one, this.opening));
    }
  }

  body(): JsonObject {
    const choice = this.#isFirst ? this.#choice : relaxed(this.#choice);
    this.#isFirst = false;
    return { ...this.#request, input: this.#input, ...(choice === undefined ? {} : { tool_choice: choice }) };
  }

  take(answer: JsonObject): Turn {
    this.#last = answer;
    this.#usage = summed(this.#usage, answer['usage']);
    const calls = listOf(answer['output']).filter(isObject);
    const own = calls.filter((item) => this.isOwn(item));
    const others = calls.filter((item) => !this.isOwn(item));
    if (!this.opening.streams) this.output.push(...others.map((item) => withCitations(item, this.sources)));
    return {
      own: own.map((item) => ({
        ...{ id: String(item['call_id']), name: String(item['name']), arguments: textOf(item['arguments']) ?? '{}' },
      })),
      hasOthers: calls.some((item) => isClientCall(item) && !this.isOwn(item)),
      isCut: answer['status'] !== 'completed',
    };
  }

  add(done: readonly ToolDone[]): void {
    this.sources.add(done);
    this.#input.push(...listOf(this.#last['output']), ...done.map(outputOf));
    if (!this.opening.streams) this.output.push(...done.map((one) => callItem(one, this.opening)));
  }

  ask(calls: readonly ToolUse[]): void {
    if (!this.opening.streams) this.output.push(...calls.map((one) => approvalItem(one, this.opening)));
  }

  whole(end: End): JsonObject {
    const bound = end === 'bound' ? { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } } : {};
    return { ...this.echo(this.#last), ...bound, output: this.output, usage: this.#usage ?? null };
  }

  /** A turn's response object as that of the run. */
  echo(response: JsonObject): JsonObject {
    const { clientJson, id } = this.opening;
    return {
      ...response,
      ...{ id: `resp_${id}`, tools: clientJson['tools'] ?? [] },
      tool_choice: clientJson['tool_choice'] ?? 'auto',
      previous_response_id: clientJson['previous_response_id'] ?? null,
    };
  }

  isOwn(item: JsonObject): boolean {
    return item['type'] === 'function_call' && this.opening.offered.has(item['name']);
  }

  #listItem(index: number): JsonObject {
    const { offered, id } = this.opening;
    const server = offered.servers[index]!;
    return {
      ...{ id: `mcpl_${id}_${index}`, type: 'mcp_list_tools', server_label: server.label },
      tools: offered.of(server).map(({ name, description, schema, annotations }) => ({
        ...{ name, description, input_schema: schema },
        ...(annotations === null ? {} : { annotations }),
      })),
    };
  }

  #otherTools(): readonly unknown[] {
    const { json, offered } = this.opening;
    return listOf(json['tools']).filter(
      (tool) =>
        !isObject(tool) ||
        !(tool['type'] === 'mcp'
          ? offered.hasLabel(tool['server_label'])
          : isSearchTool(tool, offered) || isFilesTool(tool, offered)),
    );
  }
}

/** A call that the client may have to answer. */
const isClientCall = ({ type, execution }: JsonObject) =>
  type === 'function_call' || type === 'custom_tool_call' || (type === 'tool_search_call' && execution === 'client');

const functionOf = ({ name, description, schema }: { name: string; description: string; schema: JsonObject }) => ({
  ...{ type: 'function', name, description, parameters: schema, strict: false },
});

const outputOf = ({ id, output }: ToolDone) => ({ type: 'function_call_output', call_id: id, output });

/** A server that must be called is one of its functions that must. Throws invalid_request. */
function choiceOf(choice: unknown, offered: Opening['offered']): unknown {
  if (isObject(choice) && isSearchTool(choice, offered)) return { type: 'function', name: offered.search!.name };
  if (isObject(choice) && isFilesTool(choice, offered)) return { type: 'function', name: offered.files!.name };
  if (isObject(choice) && choice['type'] === 'allowed_tools')
    return { ...choice, tools: listOf(choice['tools']).map((tool) => choiceOf(tool, offered)) };
  if (!isObject(choice) || choice['type'] !== 'mcp' || !offered.hasLabel(choice['server_label'])) return choice;
  const { name } = choice;
  if (name === undefined || name === null) return 'required';
  if (!offered.has(name)) throw invalid('There is no such tool that this key may use.', 'tool_choice.name');
  return { type: 'function', name };
}

/** What had to be called was called. */
function relaxed(choice: unknown): unknown {
  if (isObject(choice) && choice['type'] === 'allowed_tools') return { ...choice, mode: 'auto' };
  return choice === 'required' || isObject(choice) ? 'auto' : choice;
}
