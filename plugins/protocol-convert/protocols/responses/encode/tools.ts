/** Encodes tools and the tool choice for a responses upstream. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CustomTool, FunctionTool, HostedTool, Prompt, Tool } from '../../../../common/canonical/prompt.ts';
import { withoutMembers } from '../../../../common/encoding/schema-repair.ts';
import { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { isStrict, plainRoot } from '../../../encoding/schemas.ts';

/** Hosted tools of this protocol, by canonical name. */
const hostedTypes: Partial<Readonly<Record<HostedTool['tool'], string>>> = {
  web_search: 'web_search',
  code_execution: 'code_interpreter',
  image_generation: 'image_generation',
};

/** Options of the image tool that upstreams accept. */
const imageOptions = ['size', 'quality', 'background', 'output_format', 'output_compression', 'moderation', 'model'];

/** The encoded tools, and the meaning of their names. */
export class ToolList {
  readonly tools: JsonObject[] = [];
  readonly namer = new ToolNamer({ allowed: /[a-zA-Z0-9_-]/, maxLength: 64 });
  readonly #prompt: Prompt;
  readonly #context: EncodeContext;
  readonly #custom = new Set<string>();
  readonly #hosted = new Set<string>();

  /** Throws if the upstream does not have the only tool, or one that must be used. */
  constructor(prompt: Prompt, context: EncodeContext) {
    this.#prompt = prompt;
    this.#context = context;
    for (const tool of prompt.tools) this.#add(tool);
    if (prompt.outputKinds?.includes('image') === true && !this.#hosted.has('image_generation')) {
      this.#addHosted({ kind: 'hosted', tool: 'image_generation', name: 'image_generation', options: {} });
    }
    if (prompt.imageOptions !== undefined && !this.#hosted.has('image_generation'))
      context.dropped.drop('imageOptions');
  }

  /** `tool_choice`; undefined: not requested, or there is nothing left to choose from. */
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
    const { traits, dropped } = this.#context;
    const plain = plainRoot(tool.schema);
    const parameters = tool.strict === true ? withoutMembers(plain) : plain;
    // Upstreams refuse the whole request for a strict tool with a schema that allows additional or optional members.
    const strict = tool.strict === true && traits.strict_tools !== false && isStrict(parameters);
    if (tool.strict === true && !strict) dropped.drop('strictTools');
    if (tool.cache !== undefined) dropped.drop('cacheMarks');
    this.tools.push({
      type: 'function',
      name: this.namer.declare(tool),
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters,
      // Without it, upstreams assume true and refuse most schemas.
      strict,
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

  /** A tool among others may be dropped, unless it must be used. */
  #leaveOut({ tool, name }: HostedTool): void {
    const { tools, toolChoice } = this.#prompt;
    const isForced = toolChoice?.mode === 'required' && (toolChoice.names?.includes(tool) ?? false);
    if (isForced || tools.length === 1) this.#context.dropped.refuse('tools', `does not have the tool "${name}"`);
    this.#context.dropped.dropField(`tools.${name}`);
  }

  #options({ tool, options }: HostedTool): JsonObject {
    const { dropped } = this.#context;
    if (tool === 'code_execution') return { container: { type: 'auto' } };
    if (tool === 'image_generation') {
      const wanted = this.#prompt.imageOptions ?? {};
      if (Object.keys(wanted).some((name) => !imageOptions.includes(name))) dropped.drop('imageOptions');
      return Object.fromEntries(imageOptions.flatMap((name) => (name in wanted ? [[name, wanted[name]]] : [])));
    }
    const { allowedDomains, blockedDomains, maxUses, contextSize, location } = options;
    if (blockedDomains !== undefined) dropped.refuse('tools', 'cannot keep a web search away from single domains');
    if (maxUses !== undefined) dropped.dropField('max_uses');
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
