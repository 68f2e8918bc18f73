/** Runs in the protocol of messages: its own blocks of MCP, and servers by `mcp_servers`. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { Sources } from '../search/sources.ts';
import type { End, Opening, Talk, ToolDone, Turn } from '../talk.ts';
import { type Here, invalid, namesIn, namesTool, type Wanted, wantedAt } from '../wanted.ts';
import { MessagesFrames } from './messages-frames.ts';
import { isSearchTool, withCitations, withSearches } from './messages-search.ts';
import { readTurns, resultBlock, useBlock } from './messages-turns.ts';
import { summed } from './sums.ts';

/** Servers of the gateway, with the tools that a toolset or the server's own settings leave. Throws invalid_request. */
export function wantedServers(json: JsonObject, here: Here): Wanted[] {
  return listOf(json['mcp_servers']).flatMap((server, index): Wanted[] => {
    if (!isObject(server)) return [];
    const field = `mcp_servers[${index}]`;
    const found = wantedAt(
      { url: server['url'], label: server['name'], token: server['authorization_token'] },
      { url: `${field}.url`, label: `${field}.name`, token: `${field}.authorization_token`, headers: field },
      here,
      index,
    );
    if (found === undefined) return [];
    const toolset = listOf(json['tools']).find((tool) => isObject(tool) && isToolsetOf(tool, found.label));
    return [{ ...found, asks: () => false, allows: allowedBy(server, toolset, field) }];
  });
}

const isToolsetOf = (tool: JsonObject, name: string) =>
  tool['type'] === 'mcp_toolset' && tool['mcp_server_name'] === name;

function allowedBy({ tool_configuration: settings }: JsonObject, toolset: unknown, field: string): Wanted['allows'] {
  if (isObject(toolset)) {
    const byName = isObject(toolset['configs']) ? toolset['configs'] : {};
    const usual = isOn(toolset['default_config'], true);
    return (name) => {
      const own = Object.entries(byName).find(([known]) => namesTool(new Set([known]), name));
      return own === undefined ? usual : isOn(own[1], usual);
    };
  }
  if (!isObject(settings)) return () => true;
  if (settings['enabled'] === false)
    throw invalid('This server is switched off: leave it out.', `${field}.tool_configuration`);
  const names = namesIn(settings['allowed_tools'], `${field}.tool_configuration.allowed_tools`);
  return (name) => names === undefined || namesTool(names, name);
}

function isOn(settings: unknown, usual: boolean): boolean {
  const value = isObject(settings) ? settings['enabled'] : undefined;
  return typeof value === 'boolean' ? value : usual;
}

export class MessagesTalk implements Talk {
  readonly keepsCalls = false;
  readonly approved = [];
  readonly frames: MessagesFrames;
  readonly #opening: Opening;
  readonly #request: JsonObject;
  readonly #messages: unknown[];
  readonly #content: JsonObject[] = [];
  readonly #sources = new Sources();
  #hasCalled = false;
  #last: JsonObject = {};
  #usage: unknown;

  constructor(opening: Opening) {
    this.#opening = opening;
    const { json, offered } = opening;
    this.#messages = readTurns(listOf(json['messages']), offered);
    const servers = listOf(json['mcp_servers']).filter((one) => !isObject(one) || !offered.hasLabel(one['name']));
    const others = listOf(json['tools']).filter(
      (tool) =>
        !isObject(tool) ||
        !(isSearchTool(tool, offered) || offered.servers.some(({ label }) => isToolsetOf(tool, label))),
    );
    const own = offered.all.map(({ name, description, schema }) => ({ name, description, input_schema: schema }));
    const { mcp_servers: _all, ...rest } = json;
    this.#request = { ...rest, ...(servers.length === 0 ? {} : { mcp_servers: servers }), tools: [...others, ...own] };
    this.frames = new MessagesFrames(offered, this.#sources);
  }

  approvedDone(): void {}

  body(): JsonObject {
    const choice = this.#request['tool_choice'];
    const isForced = this.#hasCalled && isObject(choice) && (choice['type'] === 'any' || choice['type'] === 'tool');
    // What had to be called was called.
    return { ...this.#request, messages: this.#messages, ...(isForced ? { tool_choice: { type: 'auto' } } : {}) };
  }

  take(answer: JsonObject): Turn {
    this.#last = answer;
    this.#usage = summed(this.#usage, answer['usage']);
    const blocks = listOf(answer['content']).filter(isObject);
    const others = blocks.filter((block) => !this.#isOwn(block));
    this.#content.push(...others.map((block) => withCitations(block, this.#sources)));
    const calls = blocks.filter(({ type }) => type === 'tool_use');
    const own = calls.filter((block) => this.#isOwn(block));
    return {
      own: own.map(({ id, name, input }) => ({
        id: String(id),
        name: String(name),
        arguments: JSON.stringify(input ?? {}),
      })),
      hasOthers: own.length < calls.length,
      isCut: answer['stop_reason'] !== 'tool_use' && own.length > 0,
    };
  }

  add(done: readonly ToolDone[]): void {
    this.#hasCalled = true;
    this.#sources.add(done);
    const results = done.map(({ id, output, isError }) => ({
      ...{ type: 'tool_result', tool_use_id: id, content: output === '' ? [] : output, is_error: isError },
    }));
    this.#messages.push({ role: 'assistant', content: this.#last['content'] }, { role: 'user', content: results });
    for (const one of done) this.#content.push(useBlock(one, this.#opening.offered), resultBlock(one));
  }

  ask(): void {}

  whole(end: End): JsonObject {
    const reason = end === 'bound' ? { stop_reason: 'pause_turn', stop_sequence: null } : {};
    return {
      ...this.#last,
      ...reason,
      content: this.#content,
      usage: withSearches(this.#usage ?? null, this.#sources.queries.length),
    };
  }

  #isOwn({ type, name }: JsonObject): boolean {
    return type === 'tool_use' && this.#opening.offered.has(name);
  }
}
