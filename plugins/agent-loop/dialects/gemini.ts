/** Runs in the protocol of generate-content: servers by `mcpServers` of a tool. Pure. */
import { isObject, type JsonObject, listOf, tryParse } from '../../../core/json/json.ts';
import { Sources } from '../search/sources.ts';
import type { End, Opening, Talk, ToolDone, Turn } from '../talk.ts';
import { type Here, type Wanted, wantedAt } from '../wanted.ts';
import { GeminiFrames } from './gemini-frames.ts';
import { candidateOf, partsOf, textIn } from './gemini-parts.ts';
import { groundingOf, withoutSearch } from './gemini-search.ts';
import { readSteps, showsSteps, stepParts, withoutFlag } from './gemini-steps.ts';
import { summed } from './sums.ts';

/** Members are written in two ways. */
const memberOf = (json: JsonObject, name: string, other: string): unknown => json[name] ?? json[other];
const serversOf = (tool: unknown): readonly unknown[] =>
  isObject(tool) ? listOf(memberOf(tool, 'mcpServers', 'mcp_servers')) : [];
const declarationsOf = (tool: JsonObject): readonly unknown[] =>
  listOf(memberOf(tool, 'functionDeclarations', 'function_declarations'));

/** Throws invalid_request. */
export function wantedServers({ tools }: JsonObject, here: Here): Wanted[] {
  return listOf(tools).flatMap((tool, at) =>
    serversOf(tool).flatMap((server, index): Wanted[] => {
      if (!isObject(server)) return [];
      const transport = memberOf(server, 'streamableHttpTransport', 'streamable_http_transport');
      const { url, headers } = isObject(transport) ? transport : {};
      const field = `tools[${at}].mcpServers[${index}]`;
      const of = `${field}.streamableHttpTransport`;
      const found = wantedAt(
        { url, label: server['name'], headers },
        { url: `${of}.url`, label: `${field}.name`, headers: `${of}.headers`, token: `${of}.headers` },
        here,
        at * 100 + index,
      );
      return found === undefined ? [] : [{ ...found, asks: () => false, allows: () => true }];
    }),
  );
}

export function functionNames({ tools }: JsonObject): Set<string> {
  const declared = listOf(tools).filter(isObject).flatMap(declarationsOf);
  return new Set(declared.flatMap((one) => (isObject(one) ? [String(one['name'])] : [])));
}

const cuts = new Set(['MAX_TOKENS', 'SAFETY', 'MALFORMED_FUNCTION_CALL']);

export class GeminiTalk implements Talk {
  readonly keepsCalls = false;
  readonly approved = [];
  readonly frames: GeminiFrames;
  readonly #opening: Opening;
  readonly #request: JsonObject;
  readonly #contents: unknown[];
  readonly #parts: JsonObject[] = [];
  readonly #sources = new Sources();
  /** What the client sees of a call. */
  readonly #stepsOf: (done: ToolDone) => JsonObject[];
  #hasCalled = false;
  #last: JsonObject = {};
  #usage: unknown;
  #ids = 0;

  constructor(opening: Opening) {
    this.#opening = opening;
    const { json, offered, isArray } = opening;
    const { contents } = json;
    this.#contents = readSteps(isObject(contents) ? [contents] : listOf(contents));
    const showsRun = showsSteps(json);
    this.#stepsOf = (done) => (showsRun ? stepParts(done, offered) : []);
    const own = offered.all.map(({ name, description, schema }) => ({
      name,
      description,
      parametersJsonSchema: schema,
    }));
    const others = listOf(json['tools']).flatMap((tool) => otherTools(tool, opening));
    this.#request = { ...json, ...settingsOf(json, others), tools: [...others, { functionDeclarations: own }] };
    const isOwn = (part: JsonObject) => this.#isOwn(part);
    this.frames = new GeminiFrames({ isOwn, isArray, sources: this.#sources, stepsOf: this.#stepsOf });
  }

  approvedDone(): void {}

  body(): JsonObject {
    const settings = memberOf(this.#request, 'toolConfig', 'tool_config');
    // What had to be called was called.
    const relaxed = this.#hasCalled && isObject(settings) ? { toolConfig: withAuto(settings) } : {};
    const { tool_config: _same, ...request } = this.#request;
    return { ...('toolConfig' in relaxed ? request : this.#request), ...relaxed, contents: this.#contents };
  }

  take(answer: JsonObject): Turn {
    this.#last = answer;
    this.#usage = summed(this.#usage, answer['usageMetadata']);
    const parts = partsOf(answer);
    this.#parts.push(...parts.filter((part) => !this.#isOwn(part)));
    const calls = parts.filter((part) => isObject(part['functionCall']));
    const own = calls.filter((part) => this.#isOwn(part));
    return {
      own: own.map(({ functionCall }) => {
        const { id, name, args } = functionCall as JsonObject;
        return {
          id: typeof id === 'string' ? id : `call ${this.#ids++}`,
          name: String(name),
          arguments: JSON.stringify(args ?? {}),
        };
      }),
      hasOthers: own.length < calls.length,
      isCut: cuts.has(String(candidateOf(answer)['finishReason'])),
    };
  }

  add(done: readonly ToolDone[]): void {
    this.#hasCalled = true;
    this.#sources.add(done);
    this.#parts.push(...done.flatMap(this.#stepsOf));
    const parts = done.map(({ id, name, output, isError }) => ({
      functionResponse: {
        ...(id.startsWith('call ') ? {} : { id }),
        ...{ name, response: isError ? { error: output } : responseOf(output) },
      },
    }));
    this.#contents.push({ role: 'model', parts: partsOf(this.#last) }, { role: 'user', parts });
  }

  ask(): void {}

  whole(end: End): JsonObject {
    const candidate = candidateOf(this.#last);
    const finish = end === 'bound' ? { finishReason: 'TOO_MANY_TOOL_CALLS' } : {};
    const content = { role: 'model', parts: this.#parts };
    const grounding = groundingOf(this.#parts.map(textIn), this.#sources);
    return {
      ...this.#last,
      candidates: [{ ...candidate, content, ...grounding, ...finish }],
      usageMetadata: this.#usage ?? {},
    };
  }

  #isOwn({ functionCall: called }: JsonObject): boolean {
    return isObject(called) && this.#opening.offered.has(called['name']);
  }
}

/** Where the model runs no tool itself, it is not asked to show such runs. */
function settingsOf(json: JsonObject, others: readonly unknown[]): JsonObject {
  const name = json['toolConfig'] === undefined ? 'tool_config' : 'toolConfig';
  const settings = json[name];
  const runsTools = others.some((tool) => isObject(tool) && declarationsOf(tool).length === 0);
  return runsTools || !isObject(settings) ? {} : { [name]: withoutFlag(settings) };
}

/** A tool without the search and the servers that are the gateway's; none where nothing is left of it. */
function otherTools(given: unknown, { offered }: Opening): unknown[] {
  const tool = isObject(given) ? withoutSearch(given, offered) : given;
  if (tool === undefined) return [];
  const servers = serversOf(tool);
  if (!isObject(tool) || servers.length === 0) return [tool];
  const { mcpServers: _one, mcp_servers: _other, ...rest } = tool;
  const left = servers.filter((server) => !isObject(server) || !offered.hasLabel(server['name']));
  if (left.length > 0) return [{ ...rest, mcpServers: left }];
  return Object.keys(rest).length === 0 ? [] : [rest];
}

function withAuto(settings: JsonObject): JsonObject {
  const { functionCallingConfig: one, function_calling_config: other, ...rest } = settings;
  const calling = one ?? other;
  if (!isObject(calling) || calling['mode'] !== 'ANY') return settings;
  return { ...rest, functionCallingConfig: { mode: 'AUTO' } };
}

/** A result that is an object is given as one. */
function responseOf(output: string): JsonObject {
  const json = tryParse(output);
  return isObject(json) ? json : { result: output };
}
