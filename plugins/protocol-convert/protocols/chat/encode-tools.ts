/** Words tools and the choice among them for a chat upstream. */
import type { CustomTool, FunctionTool, HostedTool, Prompt, ToolChoice } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import { type JsonObject, objectOf, textOf } from '../../json.ts';
import { isStrict, rootObject } from '../../wording/schemas.ts';
import type { ToolNamer } from '../../wording/tool-names.ts';
import { cacheMember } from './encode-parts.ts';

export interface EncodedTools {
  /** `tools`, `tool_choice`, `parallel_tool_calls`, `web_search_options`, as far as there are any. */
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

/** A tool of the vendor's own: a search where the upstream has one; refused where the answer hangs on it. */
function hosted(tool: HostedTool, prompt: Prompt, { traits, losses }: EncodeContext): HostedTool | undefined {
  if (tool.tool === 'web_search' && traits.hosted_tools?.includes('web_search') === true) return tool;
  const { toolChoice } = prompt;
  const isForced = toolChoice?.mode === 'required' && (toolChoice.names ?? []).includes(tool.tool);
  if (isForced || prompt.tools.length === 1) losses.refuse('tools', `has no tool of its own like "${tool.name}"`);
  losses.drop('tools');
  return undefined;
}

/** Where a search may look is a promise; how often it looks is a hint. */
function searchOptions({ name, options }: HostedTool, { losses }: EncodeContext): JsonObject {
  if (options.allowedDomains !== undefined || options.blockedDomains !== undefined)
    losses.refuse('tools', `cannot confine "${name}" to domains`);
  if (options.maxUses !== undefined) losses.dropField('max_uses');
  return {
    ...(options.contextSize === undefined ? {} : { search_context_size: options.contextSize }),
    ...(options.location === undefined
      ? {}
      : { user_location: { type: 'approximate', approximate: approximate(options.location) } }),
  };
}

/** The place alone: its kind is said one level higher. */
function approximate({ type: _, ...place }: JsonObject): JsonObject {
  return place;
}

function declare(tool: FunctionTool | CustomTool, context: EncodeContext, namer: ToolNamer): JsonObject {
  if (tool.kind === 'custom') return declareWrapped(tool, namer);
  const { description } = tool;
  const schema = rootObject(tool.schema);
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

/** Servers refuse a strict tool whose schema leaves anything open. */
function strictMember({ strict }: FunctionTool, schema: JsonObject, { traits, losses }: EncodeContext): JsonObject {
  if (strict === undefined) return {};
  const isTaken = traits.strict_tools !== false;
  if (!strict) return isTaken ? { strict: false } : {};
  if (isTaken && isStrict(schema)) return { strict: true };
  losses.drop('strictTools');
  return {};
}

/** Compatible servers know functions alone: free text goes as a function of one string. */
function declareWrapped(tool: CustomTool, namer: ToolNamer): JsonObject {
  const { description, grammar } = tool;
  const rule =
    grammar === undefined ? [] : [`The input must follow this ${grammar.syntax} grammar:\n${grammar.definition}`];
  const text = [...(description === undefined ? [] : [description]), ...rule].join('\n\n');
  return {
    type: 'function',
    function: {
      name: namer.declare(tool, { wrapped: true }),
      ...(text === '' ? {} : { description: text }),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: "The tool's whole input, as raw text." } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  };
}

function nameOf(declared: JsonObject): string {
  return textOf(objectOf(declared['function'])?.['name']) ?? '';
}

/** The choice without the vendor's own tools: chat has no word for them there. */
function ownChoice({ tools, toolChoice }: Prompt, { losses }: EncodeContext): ToolChoice | undefined {
  if (toolChoice?.names === undefined) return toolChoice;
  const hostedTools = new Set(tools.filter(({ kind }) => kind === 'hosted').map((tool) => (tool as HostedTool).tool));
  const names = toolChoice.names.filter((name) => !hostedTools.has(name as HostedTool['tool']));
  if (names.length < toolChoice.names.length && toolChoice.mode === 'required') losses.drop('toolChoice');
  return names.length === 0 ? undefined : { mode: toolChoice.mode, names };
}

interface EncodedChoice {
  readonly choice: unknown;
  readonly instructions: readonly string[];
  /** The tools that are declared; undefined: all. */
  readonly allowed?: readonly string[];
}

function encodeChoice(
  choice: ToolChoice | undefined,
  { traits, losses }: EncodeContext,
  namer: ToolNamer,
): EncodedChoice {
  if (choice === undefined) return { choice: undefined, instructions: [] };
  const names = choice.names?.map((name) => namer.nameFor(name)) ?? [];
  if (choice.mode === 'required' && traits.forced_tools === false) {
    losses.drop('toolChoice');
    return { choice: 'auto', instructions: [forcedText(names)] };
  }
  if (names.length === 0 || choice.mode === 'none') return { choice: choice.mode, instructions: [] };
  const tools = names.map((name) => ({ type: 'function', function: { name } }));
  if (tools.length === 1 && choice.mode === 'required') return { choice: tools[0], instructions: [] };
  // Few servers know such a choice: the others are not shown the rest of the tools.
  if (traits.allowed_tools !== true) return { choice: choice.mode, instructions: [], allowed: names };
  return { choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } }, instructions: [] };
}

/** For models that cannot be forced. */
export function forcedText(names: readonly string[]): string {
  if (names.length === 0) return 'Call one of the tools now; do not answer with text.';
  return `Call ${names.map((name) => `the tool "${name}"`).join(' or ')} now; do not answer with text.`;
}
