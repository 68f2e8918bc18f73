/** Tools of a prompt for upstreams that know functions alone; the tool choice as far as such an upstream can express it. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { EncodeContext } from '../canonical/codec.ts';
import type { CustomTool, FunctionTool, HostedTool, Prompt, ToolChoice } from '../canonical/prompt.ts';
import { rootObject, withoutMembers } from './schema-repair.ts';
import type { ToolNamer } from './tool-names.ts';

export interface DeclaredFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters: JsonObject;
}

export interface FunctionTools {
  readonly functions: readonly DeclaredFunction[];
  /** Texts for the system prompt. */
  readonly instructions: readonly string[];
  /** undefined: the client made no choice, or none that is left. */
  readonly mode: ToolChoice['mode'] | undefined;
}

/** `canForce`: the upstream can be made to call a tool; else it is asked to. */
export function functionTools(
  prompt: Prompt,
  context: EncodeContext,
  namer: ToolNamer,
  { canForce }: { readonly canForce: boolean },
): FunctionTools {
  const { dropped } = context;
  const own = prompt.tools.filter((tool) => tool.kind !== 'hosted' || withoutHosted(tool, prompt, context));
  const functions = own.flatMap((tool) =>
    tool.kind === 'hosted' || namer.isDeclared(tool) ? [] : declare(tool, context, namer),
  );
  if (functions.length === 0) return { functions, instructions: [], mode: undefined };
  if (prompt.parallelTools === false) dropped.drop('parallelTools');
  const { mode, names } = prompt.toolChoice ?? {};
  const hosted = new Set<string>(prompt.tools.flatMap((tool) => (tool.kind === 'hosted' ? tool.tool : [])));
  const named = names?.filter((name) => !hosted.has(name)).map((name) => namer.nameFor(name)) ?? [];
  const allowed = named.length === 0 ? functions : functions.filter(({ name }) => named.includes(name));
  if (mode !== 'required' || canForce) return { functions: allowed, instructions: [], mode };
  dropped.drop('toolChoice');
  return { functions: allowed, instructions: [forcedText(named)], mode: 'auto' };
}

/** A tool that only its vendor has: refused where the answer depends on it, else left out. */
function withoutHosted(tool: HostedTool, { tools, toolChoice }: Prompt, { dropped }: EncodeContext): false {
  const isForced = toolChoice?.mode === 'required' && (toolChoice.names ?? []).includes(tool.tool);
  if (isForced || tools.length === 1) dropped.refuse('tools', `has no tool of its own like "${tool.name}"`);
  dropped.drop('tools');
  return false;
}

function declare(tool: FunctionTool | CustomTool, { dropped }: EncodeContext, namer: ToolNamer): DeclaredFunction {
  if (tool.kind === 'custom') return wrappedFunction(tool, namer);
  const { description, strict, cache } = tool;
  if (strict === true) dropped.drop('strictTools');
  if (cache !== undefined) dropped.drop('cacheMarks');
  const schema = strict === true ? withoutMembers(rootObject(tool.schema)) : rootObject(tool.schema);
  return { name: namer.declare(tool), ...(description === undefined ? {} : { description }), parameters: schema };
}

/** A free-text tool as a function of one string. */
export function wrappedFunction(tool: CustomTool, namer: ToolNamer): DeclaredFunction {
  const { description, grammar } = tool;
  const rule =
    grammar === undefined ? [] : [`The input must follow this ${grammar.syntax} grammar:\n${grammar.definition}`];
  const text = [...(description === undefined ? [] : [description]), ...rule].join('\n\n');
  return {
    name: namer.declare(tool, { wrapped: true }),
    ...(text === '' ? {} : { description: text }),
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description: "The tool's whole input, as raw text." } },
      required: ['input'],
      additionalProperties: false,
    },
  };
}

/** For models that cannot be forced to call a tool. */
export function forcedText(names: readonly string[]): string {
  if (names.length === 0) return 'Call one of the tools now; do not answer with text.';
  return `Call ${names.map((name) => `the tool "${name}"`).join(' or ')} now; do not answer with text.`;
}
