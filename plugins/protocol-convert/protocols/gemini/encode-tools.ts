/** Words tools and their choice for an upstream. Pure. */
import type { CustomTool, FunctionTool, HostedTool, Prompt, Tool, ToolChoice } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { openApiSubset, rootObject, withoutConst } from '../../wording/schemas.ts';
import type { ToolNamer } from '../../wording/tool-names.ts';

/** A legal name has letters, digits and `_.:-`, at most 64, and begins with a letter or `_`. */
export const nameLimits = { allowed: /[A-Za-z0-9_.:-]/, first: /[A-Za-z_]/, maxLength: 64 };

const hostedWords: { readonly [K in HostedTool['tool']]?: string } = {
  web_search: 'googleSearch',
  web_fetch: 'urlContext',
  code_execution: 'codeExecution',
};

export interface WordedTools {
  readonly tools: readonly JsonObject[];
  readonly toolConfig?: JsonObject;
  readonly hasFunctions: boolean;
  /** An image tool was offered: images are a kind of answer here. */
  readonly makesImages: boolean;
}

export function encodeTools(prompt: Prompt, namer: ToolNamer, context: EncodeContext): WordedTools {
  const declarations: JsonObject[] = [];
  const hosted = prompt.tools.filter((tool) => tool.kind === 'hosted');
  for (const tool of prompt.tools) {
    if (tool.kind === 'hosted' || namer.isDeclared(tool)) continue;
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
  if (prompt.parallelTools === false && hasFunctions) context.losses.drop('parallelTools');
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
  if (tool.strict === true) context.losses.drop('strictTools');
  if (tool.cache !== undefined) context.losses.drop('cacheMarks');
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
  // An object without properties is refused: such a function takes nothing.
  const takesNothing = Object.keys(subset['properties'] ?? {}).length === 0;
  return takesNothing ? {} : { parameters: subset };
}

function hostedTools(
  tools: readonly HostedTool[],
  prompt: Prompt,
  hasFunctions: boolean,
  context: EncodeContext,
): JsonObject[] {
  const { losses, traits } = context;
  const words = new Set<string>();
  for (const tool of tools) {
    if (tool.tool === 'image_generation') continue;
    const word = hostedWords[tool.tool];
    const isKnown = tool.tool !== 'other' && (traits.hosted_tools?.includes(tool.tool) ?? true);
    const fits = !hasFunctions || traits.hosted_with_functions !== false;
    if (word !== undefined && isKnown && fits) {
      checkOptions(tool, context);
      words.add(word);
    } else if (isNeeded(tool, prompt)) losses.refuse('tools', `has no tool "${tool.name}"`);
    else losses.dropField(`${losses.nameOf('tools')} (${tool.name})`);
  }
  return [...words].map((word) => ({ [word]: {} }));
}

/** Nothing else is offered, or the choice names it. */
function isNeeded(tool: HostedTool, { tools, toolChoice }: Prompt): boolean {
  const isForced = toolChoice?.mode === 'required' && (toolChoice.names?.includes(tool.tool) ?? false);
  return isForced || tools.every((other: Tool) => other === tool);
}

/** Where a search may look is a promise; how much it finds is a hint. */
function checkOptions({ name, options }: HostedTool, { losses }: EncodeContext): void {
  if ((options.allowedDomains?.length ?? 0) > 0 || (options.blockedDomains?.length ?? 0) > 0)
    losses.refuse('tools', `cannot confine "${name}" to domains`);
  for (const hint of ['maxUses', 'contextSize', 'location'] as const)
    if (options[hint] !== undefined) losses.dropField(`${losses.nameOf('tools')} (${name}: ${hint})`);
}

/** Allowed names go with ANY and VALIDATED alone. undefined: nothing was asked, or cannot be. */
function callingConfig(prompt: Prompt, namer: ToolNamer, context: EncodeContext): JsonObject | undefined {
  const { toolChoice: choice } = prompt;
  if (choice === undefined) return undefined;
  if (choice.mode === 'none') return { mode: 'NONE' };
  const names = allowedNames(choice, prompt, namer);
  const allowed = names === undefined ? {} : { allowedFunctionNames: names };
  if (choice.mode === 'auto')
    return names === undefined || names.length === 0 ? { mode: 'AUTO' } : { mode: 'VALIDATED', ...allowed };
  if (context.traits.forced_tools === false || names?.length === 0) {
    context.losses.drop('toolChoice');
    return undefined;
  }
  return { mode: 'ANY', ...allowed };
}

/** Upstream names of the functions that the choice allows; undefined: all. */
function allowedNames(choice: ToolChoice, { tools }: Prompt, namer: ToolNamer): string[] | undefined {
  if (choice.names === undefined) return undefined;
  const functions = tools.filter((tool) => tool.kind !== 'hosted');
  const named = functions.filter(
    ({ name, namespace }) =>
      choice.names!.includes(name) || (namespace !== undefined && choice.names!.includes(`${namespace}__${name}`)),
  );
  return [...new Set(named.map((tool) => namer.nameFor(tool.name, tool.namespace)))];
}
