/** Encodes the tools and the tool choice for an upstream. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type {
  CustomTool,
  FunctionTool,
  HostedTool,
  Prompt,
  Tool,
  ToolChoice,
} from '../../../../common/canonical/prompt.ts';
import { rootObject } from '../../../../common/encoding/schema-repair.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { openApiSubset, withoutConst } from '../../../encoding/schemas.ts';

/** A valid name has letters, digits and `_.:-`, at most 64, and starts with a letter or `_`. */
export const nameLimits = { allowed: /[A-Za-z0-9_.:-]/, first: /[A-Za-z_]/, maxLength: 64 };

const hostedWords: { readonly [K in HostedTool['tool']]?: string } = {
  web_search: 'googleSearch',
  web_fetch: 'urlContext',
  code_execution: 'codeExecution',
};

export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly toolConfig?: JsonObject;
  readonly hasFunctions: boolean;
  /** The request has an image tool, which is an output kind in this protocol. */
  readonly makesImages: boolean;
}

export function encodeTools(prompt: Prompt, namer: ToolNamer, context: EncodeContext): EncodedTools {
  const declarations: JsonObject[] = [];
  const hosted = prompt.tools.filter((tool) => tool.kind === 'hosted');
  for (const tool of prompt.tools) {
    if (tool.kind === 'hosted' || namer.isDeclared(tool)) continue;
    if (tool.kind === 'function' && tool.strict === true && prompt.toolChoice?.validated !== true)
      context.dropped.drop('strictTools');
    declarations.push(declaration(tool, namer, context));
  }
  const run = hostedTools(hosted, prompt, declarations.length > 0, context);
  const hasFunctions = declarations.length > 0;
  const calling = hasFunctions ? callingConfig(prompt, namer, context) : undefined;
  const isMixed = hasFunctions && run.length > 0;
  const config = {
    ...(calling === undefined ? {} : { functionCallingConfig: calling }),
    ...(isMixed ? { includeServerSideToolInvocations: true } : {}),
  };
  if (prompt.parallelTools === false && hasFunctions) context.dropped.drop('parallelTools');
  return {
    tools: [...(hasFunctions ? [{ functionDeclarations: declarations }] : []), ...run],
    ...(Object.keys(config).length === 0 ? {} : { toolConfig: config }),
    hasFunctions,
    makesImages: hosted.some((tool) => tool.tool === 'image_generation'),
  };
}

function declaration(tool: FunctionTool | CustomTool, namer: ToolNamer, context: EncodeContext): JsonObject {
  if (tool.kind === 'custom') {
    const input = { type: 'string', description: 'The whole input of the tool, as plain text.' };
    const schema = { type: 'object', properties: { input }, required: ['input'] };
    const name = namer.declare(tool, { wrapped: true });
    return { name, description: customDescription(tool), ...parameters(schema, context) };
  }
  if (tool.cache !== undefined) context.dropped.drop('cacheMarks');
  return {
    name: namer.declare(tool),
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...parameters(rootObject(tool.schema), context),
  };
}

function customDescription({ description, grammar }: CustomTool): string {
  const rules =
    grammar === undefined ? '' : `The input must follow this ${grammar.syntax} grammar:\n${grammar.definition}`;
  return [description ?? '', rules].filter((text) => text !== '').join('\n\n');
}

function parameters(schema: JsonObject, { traits }: EncodeContext): JsonObject {
  if (traits.json_schema_tools !== false) return { parametersJsonSchema: withoutConst(schema) };
  const subset = openApiSubset(schema);
  // An object without properties is refused: such a function has no parameters.
  const takesNothing = Object.keys(subset['properties'] ?? {}).length === 0;
  return takesNothing ? {} : { parameters: subset };
}

function hostedTools(
  tools: readonly HostedTool[],
  prompt: Prompt,
  hasFunctions: boolean,
  context: EncodeContext,
): JsonObject[] {
  const { dropped, traits } = context;
  const toolTypes = new Set<string>();
  for (const tool of tools) {
    if (tool.tool === 'image_generation') continue;
    const toolType = hostedWords[tool.tool];
    const isKnown = tool.tool !== 'other' && (traits.hosted_tools?.includes(tool.tool) ?? true);
    const fits = !hasFunctions || traits.hosted_with_functions !== false;
    if (toolType !== undefined && isKnown && fits) {
      checkOptions(tool, context);
      toolTypes.add(toolType);
    } else if (isNeeded(tool, prompt)) dropped.refuse('tools', `has no tool "${tool.name}"`);
    else dropped.dropField(`${dropped.nameOf('tools')} (${tool.name})`);
  }
  return [...toolTypes].map((toolType) => ({ [toolType]: {} }));
}

/** The request has no other tool, or the choice names it. */
function isNeeded(tool: HostedTool, { tools, toolChoice }: Prompt): boolean {
  const isForced = toolChoice?.mode === 'required' && (toolChoice.names?.includes(tool.tool) ?? false);
  return isForced || tools.every((other: Tool) => other === tool);
}

/** The searched domains are a required parameter; the amount of results is a soft one. */
function checkOptions({ name, options }: HostedTool, { dropped }: EncodeContext): void {
  if ((options.allowedDomains?.length ?? 0) > 0 || (options.blockedDomains?.length ?? 0) > 0)
    dropped.refuse('tools', `cannot confine "${name}" to domains`);
  for (const option of ['maxUses', 'contextSize', 'location'] as const)
    if (options[option] !== undefined) dropped.dropField(`${dropped.nameOf('tools')} (${name}: ${option})`);
}

/** Allowed names are valid only with ANY and VALIDATED. undefined: not requested, or not expressible. */
function callingConfig(prompt: Prompt, namer: ToolNamer, context: EncodeContext): JsonObject | undefined {
  const { toolChoice: choice } = prompt;
  if (choice === undefined) return undefined;
  if (choice.mode === 'none') return { mode: 'NONE' };
  const names = allowedNames(choice, prompt, namer);
  const allowed = names === undefined ? {} : { allowedFunctionNames: names };
  if (choice.mode === 'auto')
    return choice.validated === true || (names?.length ?? 0) > 0
      ? { mode: 'VALIDATED', ...(names?.length === 0 ? {} : allowed) }
      : { mode: 'AUTO' };
  if (context.traits.forced_tools === false || names?.length === 0) {
    context.dropped.drop('toolChoice');
    return undefined;
  }
  return { mode: 'ANY', ...allowed };
}

/** Upstream names of the allowed functions; undefined: all. */
function allowedNames(choice: ToolChoice, { tools }: Prompt, namer: ToolNamer): string[] | undefined {
  if (choice.names === undefined) return undefined;
  const functions = tools.filter((tool) => tool.kind !== 'hosted');
  const named = functions.filter(
    ({ name, namespace }) =>
      choice.names!.includes(name) || (namespace !== undefined && choice.names!.includes(`${namespace}__${name}`)),
  );
  return [...new Set(named.map((tool) => namer.nameFor(tool.name, tool.namespace)))];
}
