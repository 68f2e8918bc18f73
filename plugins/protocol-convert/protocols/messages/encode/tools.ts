/** Encodes the tools and the tool choice of a Prompt for an upstream of the messages protocol. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CustomTool, FunctionTool, HostedTool, Prompt, Tool } from '../../../../common/canonical/prompt.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { closedSchema, plainRoot } from '../../../encoding/schemas.ts';
import { marked } from './blocks.ts';

export const toolNameLimits = { allowed: /[a-zA-Z0-9_-]/, maxLength: 64 };

/** Versions of the vendor's own tools that its oldest active models accept too. */
const hostedTypes: { readonly [K in HostedTool['tool']]?: string } = {
  web_search: 'web_search_20250305',
  web_fetch: 'web_fetch_20250910',
  code_execution: 'code_execution_20250825',
};

export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly choice: EncodedChoice | undefined;
}
/** `tool`: the name at the upstream. */
export type EncodedChoice =
  | { readonly type: 'auto' | 'any' | 'none' }
  | { readonly type: 'tool'; readonly name: string };

/** Throws what `DroppedParameters.refuse` throws. */
export function encodeTools(prompt: Prompt, namer: ToolNamer, context: EncodeContext): EncodedTools {
  const { toolChoice } = prompt;
  const names = toolChoice?.names;
  // The protocol cannot restrict the choice to some tools: the other tools are not declared.
  const allowed = prompt.tools.filter(
    (tool) => names === undefined || names.length < 2 || names.includes(nameOf(tool)),
  );
  const tools = allowed.flatMap((tool) => encodeTool(tool, prompt, namer, context));
  const only = names?.length === 1 ? names[0] : undefined;
  if (toolChoice === undefined || (tools.length === 0 && only === undefined)) return { tools, choice: undefined };
  if (toolChoice.mode !== 'required')
    return { tools: onlyNamed(tools, toolChoice.mode, only, namer), choice: { type: toolChoice.mode } };
  if (only === undefined) return { tools, choice: { type: 'any' } };
  const name = isHostedName(only, prompt.tools) ? only : namer.nameFor(only);
  if (!tools.some((tool) => tool['name'] === name))
    context.dropped.refuse('toolChoice', 'cannot call a tool that is not declared to it');
  return { tools, choice: { type: 'tool', name } };
}

/** One tool is allowed, but not forced: the others are not declared. */
function onlyNamed(
  tools: JsonObject[],
  mode: 'auto' | 'none',
  only: string | undefined,
  namer: ToolNamer,
): JsonObject[] {
  if (mode === 'none' || only === undefined) return tools;
  const name = namer.nameFor(only);
  return tools.filter((tool) => tool['name'] === name || tool['name'] === only);
}

function nameOf(tool: Tool): string {
  return tool.kind === 'hosted' ? tool.tool : tool.name;
}

function isHostedName(name: string, tools: readonly Tool[]): boolean {
  return tools.some((tool) => tool.kind === 'hosted' && tool.tool === name);
}

function encodeTool(tool: Tool, prompt: Prompt, namer: ToolNamer, context: EncodeContext): JsonObject[] {
  if (tool.kind === 'hosted') return encodeHosted(tool, prompt, context);
  if (namer.isDeclared(tool)) return [];
  return [tool.kind === 'function' ? encodeFunction(tool, namer, context) : encodeCustom(tool, namer)];
}

function encodeFunction(tool: FunctionTool, namer: ToolNamer, { traits, dropped }: EncodeContext): JsonObject {
  const schema = plainRoot(tool.schema);
  const isStrict = tool.strict === true && (traits.strict_tools ?? true);
  if (tool.strict === true && !isStrict) dropped.drop('strictTools');
  return {
    name: namer.declare(tool),
    ...(tool.description === undefined ? {} : { description: tool.description }),
    input_schema: isStrict ? closedSchema(schema) : schema,
    ...(isStrict ? { strict: true } : {}),
    ...marked(tool.cache),
  };
}

/** Free text becomes the only member of an object; the description states the grammar. */
function encodeCustom(tool: CustomTool, namer: ToolNamer): JsonObject {
  const { grammar, description } = tool;
  const rule = grammar && `The input must follow this ${grammar.syntax} grammar:\n${grammar.definition}`;
  const text = [description, rule].filter((text) => text !== undefined && text !== '').join('\n\n');
  return {
    name: namer.declare(tool, { wrapped: true }),
    ...(text === '' ? {} : { description: text }),
    input_schema: {
      type: 'object',
      properties: { input: { type: 'string', description: 'The whole input, as plain text.' } },
      required: ['input'],
    },
  };
}

/** A tool that the upstream does not have is a required parameter if the answer depends on it: forced, or the only one. */
function encodeHosted(tool: HostedTool, prompt: Prompt, { traits, dropped }: EncodeContext): JsonObject[] {
  const type = hostedTypes[tool.tool];
  const isOffered = traits.hosted_tools === undefined || (traits.hosted_tools as readonly string[]).includes(tool.tool);
  if (type === undefined || !isOffered) {
    const isNeeded = prompt.toolChoice?.names?.includes(tool.tool) === true || prompt.tools.length === 1;
    if (isNeeded) dropped.refuse('tools', `has no tool "${tool.name}" of its own`);
    dropped.dropField(tool.name);
    return [];
  }
  const { allowedDomains, blockedDomains, maxUses, contextSize, location } = tool.options;
  if (contextSize !== undefined) dropped.dropField('search_context_size');
  if (allowedDomains !== undefined && blockedDomains !== undefined) dropped.dropField('blocked_domains');
  const isSearch = tool.tool === 'web_search';
  const blocked = allowedDomains === undefined ? blockedDomains : undefined;
  return [
    {
      type,
      name: tool.tool,
      ...(maxUses === undefined ? {} : { max_uses: maxUses }),
      ...(allowedDomains === undefined ? {} : { allowed_domains: allowedDomains }),
      ...(blocked === undefined ? {} : { blocked_domains: blocked }),
      ...(isSearch && location !== undefined ? { user_location: { type: 'approximate', ...location } } : {}),
    },
  ];
}

/**
 * Declarations of the tools that the history calls, for a request without tools: upstreams require a declaration for each
 * call.
 */
export function stubTools(prompt: Prompt, namer: ToolNamer): JsonObject[] {
  const names = new Set<string>();
  for (const turn of prompt.turns) {
    for (const part of turn.parts) if (part.kind === 'tool-call') names.add(namer.nameFor(part.name, part.namespace));
  }
  return [...names].map((name) => ({ name, input_schema: { type: 'object', properties: {} } }));
}
