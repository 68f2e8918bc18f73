/** Words tools and the choice among them for a responses upstream. */
import type { CustomTool, FunctionTool, HostedTool, Prompt, Tool } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { rootObject } from '../../wording/schemas.ts';
import { ToolNamer } from '../../wording/tool-names.ts';

/** The vendor's own tools, by what they are in the common tongue. */
const hostedTypes: Partial<Readonly<Record<HostedTool['tool'], string>>> = {
  web_search: 'web_search',
  code_execution: 'code_interpreter',
  image_generation: 'image_generation',
};

/** Options of the image tool that its upstreams know. */
const imageOptions = ['size', 'quality', 'background', 'output_format', 'output_compression', 'moderation', 'model'];

/** Tools as the upstream gets them, and what their names mean. */
export class ToolList {
  readonly tools: JsonObject[] = [];
  readonly namer = new ToolNamer({ allowed: /[a-zA-Z0-9_-]/, maxLength: 64 });
  readonly #prompt: Prompt;
  readonly #context: EncodeContext;
  readonly #custom = new Set<string>();
  readonly #hosted = new Set<string>();

  /** Throws where the only tool, or one that must be used, is not to be had. */
  constructor(prompt: Prompt, context: EncodeContext) {
    this.#prompt = prompt;
    this.#context = context;
    for (const tool of prompt.tools) this.#add(tool);
    if (prompt.outputKinds?.includes('image') === true && !this.#hosted.has('image_generation')) {
      this.#addHosted({ kind: 'hosted', tool: 'image_generation', name: 'image_generation', options: {} });
    }
  }

  /** `tool_choice`; undefined: nothing is asked for, or nothing is left to choose from. */
  get choice(): unknown {
    const { toolChoice } = this.#prompt;
    if (toolChoice === undefined || this.tools.length === 0) return undefined;
    const { mode, names } = toolChoice;
    if (mode === 'none' || names === undefined) return mode;
    const chosen = names.flatMap((name) => this.#chosen(name) ?? []);
    if (chosen.length === 1 && mode === 'required') return chosen[0];
    return chosen.length === 0 ? mode : { type: 'allowed_tools', mode, tools: chosen };
  }

  #add(tool: Tool): void {
    if (tool.kind === 'hosted') this.#addHosted(tool);
    else if (this.namer.isDeclared(tool)) return;
    else if (tool.kind === 'custom') this.#addCustom(tool);
    else this.#addFunction(tool);
  }

  #addFunction(tool: FunctionTool): void {
    const { traits, losses } = this.#context;
    const isStrict = tool.strict === true && traits.strict_tools !== false;
    if (tool.strict === true && !isStrict) losses.drop('strictTools');
    if (tool.cache !== undefined) losses.drop('cacheMarks');
    this.tools.push({
      type: 'function',
      name: this.namer.declare(tool),
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters: isStrict ? (tool.schema ?? rootObject(undefined)) : rootObject(tool.schema),
      // Left out, upstreams would take it for true and refuse most schemas.
      strict: isStrict,
    });
  }

  #addCustom(tool: CustomTool): void {
    const { description, grammar } = tool;
    const name = this.namer.declare(tool);
    this.#custom.add(tool.name);
    this.tools.push({
      type: 'custom',
      name,
      ...(description === undefined ? {} : { description }),
      ...(grammar === undefined ? {} : { format: { type: 'grammar', ...grammar } }),
    });
  }

  #addHosted(tool: HostedTool): void {
    const type = hostedTypes[tool.tool];
    const { hosted_tools: allowed } = this.#context.traits;
    const isKnown = type !== undefined && (allowed === undefined || allowed.some((name) => name === tool.tool));
    if (!isKnown && tool.tool !== 'image_generation') {
      this.#leaveOut(tool);
      return;
    }
    if (this.#hosted.has(tool.tool)) return;
    this.#hosted.add(tool.tool);
    this.tools.push({ type: type!, ...this.#options(tool) });
  }

  /** A tool that others stand beside can be done without, unless it must be used. */
  #leaveOut({ tool, name }: HostedTool): void {
    const { tools, toolChoice } = this.#prompt;
    const isForced = toolChoice?.mode === 'required' && (toolChoice.names?.includes(tool) ?? false);
    if (isForced || tools.length === 1) this.#context.losses.refuse('tools', `does not have the tool "${name}"`);
    this.#context.losses.dropField(`tools.${name}`);
  }

  #options({ tool, options }: HostedTool): JsonObject {
    const { losses } = this.#context;
    if (tool === 'code_execution') return { container: { type: 'auto' } };
    if (tool === 'image_generation') {
      const wanted = this.#prompt.imageOptions ?? {};
      if (Object.keys(wanted).some((name) => !imageOptions.includes(name))) losses.drop('imageOptions');
      return Object.fromEntries(imageOptions.flatMap((name) => (name in wanted ? [[name, wanted[name]]] : [])));
    }
    const { allowedDomains, blockedDomains, maxUses, contextSize, location } = options;
    if (blockedDomains !== undefined) losses.refuse('tools', 'cannot keep a web search away from single domains');
    if (maxUses !== undefined) losses.dropField('max_uses');
    return {
      ...(allowedDomains === undefined ? {} : { filters: { allowed_domains: allowedDomains } }),
      ...(contextSize === undefined ? {} : { search_context_size: contextSize }),
      ...(location === undefined ? {} : { user_location: { type: 'approximate', ...location } }),
    };
  }

  #chosen(name: string): JsonObject | undefined {
    if (this.#hosted.has(name)) return { type: hostedTypes[name as HostedTool['tool']] };
    const isTool = this.#prompt.tools.some((tool) => tool.kind !== 'hosted' && tool.name === name);
    if (!isTool) return undefined;
    return { type: this.#custom.has(name) ? 'custom' : 'function', name: this.namer.nameFor(name) };
  }
}
