/** Encodes the tools and the tool choice for a chat upstream. */

import { type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CustomTool, FunctionTool, HostedTool, Prompt, ToolChoice } from '../../../../common/canonical/prompt.ts';
import { forcedText, wrappedFunction } from '../../../../common/encoding/function-tools.ts';
import { rootObject, withoutMembers } from '../../../../common/encoding/schema-repair.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { isStrict } from '../../../encoding/schemas.ts';
import { cacheMember } from './parts.ts';

export interface EncodedTools {
  /** `tools`, `tool_choice`, `parallel_tool_calls` and `web_search_options`, each only if present. */
  readonly members: JsonObject;
  readonly instructions: readonly string[];
}

export function encodeTools(prompt: Prompt, context: EncodeContext, namer: ToolNamer): EncodedTools {
  const declared: JsonObject[] = [];
  let search: HostedTool | undefined;
  for (const tool of prompt.tools) {
    if (tool.kind === 'hosted') search = hosted(tool, prompt, context) ?? search;
    else if (!namer.isDeclared(tool)) declared.push(declare(tool, context, namer));
  }
  const searching = search === undefined ? {} : { web_search_options: searchOptions(search, context) };
  if (declared.length === 0) return { members: searching, instructions: [] };
  const { choice, instructions, allowed } = encodeChoice(ownChoice(prompt, context), context, namer);
  const tools = allowed === undefined ? declared : declared.filter((tool) => allowed.includes(nameOf(tool)));
  if (tools.length === 0) return { members: searching, instructions: [] };
  return {
    members: {
      tools,
      ...(choice === undefined ? {} : { tool_choice: choice }),
      ...(prompt.parallelTools === false ? { parallel_tool_calls: false } : {}),
      ...searching,
    },
    instructions,
  };
}

/** A hosted tool: a search if the upstream has one; refused where the answer depends on it. */
function hosted(tool: HostedTool, prompt: Prompt, { traits, dropped }: EncodeContext): HostedTool | undefined {
  if (tool.tool === 'web_search' && traits.hosted_tools?.includes('web_search') === true) return tool;
  const { toolChoice } = prompt;
  const isForced = toolChoice?.mode === 'required' && (toolChoice.names ?? []).includes(tool.tool);
  if (isForced || prompt.tools.length === 1) dropped.refuse('tools', `has no tool of its own like "${tool.name}"`);
  dropped.drop('tools');
  return undefined;
}

/** The searched domains are a required parameter; the number of searches is a soft one. */
function searchOptions({ name, options }: HostedTool, { dropped }: EncodeContext): JsonObject {
  if (options.allowedDomains !== undefined || options.blockedDomains !== undefined)
    dropped.refuse('tools', `cannot confine "${name}" to domains`);
  if (options.maxUses !== undefined) dropped.dropField('max_uses');
  return {
    ...(options.contextSize === undefined ? {} : { search_context_size: options.contextSize }),
    ...(options.location === undefined
      ? {}
      : { user_location: { type: 'approximate', approximate: approximate(options.location) } }),
  };
}

/** The location alone: its kind is one level higher. */
function approximate({ type: _, ...place }: JsonObject): JsonObject {
  return place;
}

function declare(tool: FunctionTool | CustomTool, context: EncodeContext, namer: ToolNamer): JsonObject {
  if (tool.kind === 'custom') return { type: 'function', function: wrappedFunction(tool, namer) };
  const { description } = tool;
  const schema = tool.strict === true ? withoutMembers(rootObject(tool.schema)) : rootObject(tool.schema);
  return {
    type: 'function',
    function: {
      name: namer.declare(tool),
      ...(description === undefined ? {} : { description }),
      parameters: schema,
      ...strictMember(tool, schema, context),
    },
    ...cacheMember(tool.cache, context),
  };
}

/** Servers refuse a strict tool with a schema that allows additional or optional members. */
function strictMember({ strict }: FunctionTool, schema: JsonObject, { traits, dropped }: EncodeContext): JsonObject {
  if (strict === undefined) return {};
  const isTaken = traits.strict_tools !== false;
  if (!strict) return isTaken ? { strict: false } : {};
  if (isTaken && isStrict(schema)) return { strict: true };
  dropped.drop('strictTools');
  return {};
}

function nameOf(declared: JsonObject): string {
  return textOf(objectOf(declared['function'])?.['name']) ?? '';
}

/** The choice without hosted tools: chat cannot name them there. */
function ownChoice({ tools, toolChoice }: Prompt, { dropped }: EncodeContext): ToolChoice | undefined {
  if (toolChoice?.names === undefined) return toolChoice;
  const hostedTools = new Set(tools.filter(({ kind }) => kind === 'hosted').map((tool) => (tool as HostedTool).tool));
  const names = toolChoice.names.filter((name) => !hostedTools.has(name as HostedTool['tool']));
  if (names.length < toolChoice.names.length && toolChoice.mode === 'required') dropped.drop('toolChoice');
  return names.length === 0 ? undefined : { mode: toolChoice.mode, names };
}

interface EncodedChoice {
  readonly choice: unknown;
  readonly instructions: readonly string[];
  /** The tools to declare; undefined: all. */
  readonly allowed?: readonly string[];
}

function encodeChoice(
  choice: ToolChoice | undefined,
  { traits, dropped }: EncodeContext,
  namer: ToolNamer,
): EncodedChoice {
  if (choice === undefined) return { choice: undefined, instructions: [] };
  const names = choice.names?.map((name) => namer.nameFor(name)) ?? [];
  if (choice.mode === 'required' && traits.forced_tools === false) {
    dropped.drop('toolChoice');
    return { choice: 'auto', instructions: [forcedText(names)] };
  }
  if (names.length === 0 || choice.mode === 'none') return { choice: choice.mode, instructions: [] };
  const tools = names.map((name) => ({ type: 'function', function: { name } }));
  if (tools.length === 1 && choice.mode === 'required') return { choice: tools[0], instructions: [] };
  // Few servers support such a choice: the other tools are not declared.
  if (traits.allowed_tools !== true) return { choice: choice.mode, instructions: [], allowed: names };
  return { choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } }, instructions: [] };
}
