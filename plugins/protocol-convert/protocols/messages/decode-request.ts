/** Reads a request of the messages protocol into a Prompt. Pure. */
import { type Effort, efforts } from '../../../../core/traits.ts';
import type { OutputForm, Prompt, ReasoningWish } from '../../canon.ts';
import { countOf, invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { Losses } from '../../losses.ts';
import { listMember, numberMember, objectMember, present, textMember } from '../../members.ts';
import { decodeToolChoice, decodeTools } from './decode-tools.ts';
import { decodeConversation } from './decode-turns.ts';

/** Members that are read here or elsewhere, or that ask for nothing. */
const readMembers = new Set([
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'tools', 'tool_choice', 'thinking', 'output_config'],
  ...['output_format', 'metadata', 'stop_sequences', 'temperature', 'top_p', 'top_k', 'service_tier', 'speed'],
  ...['cache_control', 'context_management', 'mcp_servers', 'anthropic_version', 'anthropic_beta', 'betas'],
]);

/** Throws invalid_request that names the field, and `unsupported` for what only this protocol's vendor can do. */
export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  const { losses } = context;
  if (listMember(json, 'mcp_servers').length > 0)
    losses.refuse('tools', 'cannot call the tools of other servers by itself', 'mcp_servers');
  const { turns, toolChanges, effort } = decodeConversation(json, context);
  const maxOutputTokens = countOf(json, 'max_tokens', 0);
  if (maxOutputTokens === 0) losses.refuse('maxOutputTokens', 'always answers; a bound of 0 fills no cache of it');
  const stop = stopOf(json['stop_sequences']);
  const reasoning = reasoningOf(json, effort, losses);
  const output = outputOf(json);
  const user = textMember(objectMember(json, 'metadata') ?? {}, 'user_id', 'metadata.user_id');
  const serviceTier = serviceTierOf(json, losses);
  dropRest(json, losses);
  return {
    turns,
    tools: decodeTools(json['tools'], toolChanges, context),
    ...decodeToolChoice(json['tool_choice']),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...present({
      temperature: numberMember(json, 'temperature', 0, 1),
      topP: numberMember(json, 'top_p', 0, 1),
      topK: countOf(json, 'top_k', 0),
    }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(output === undefined ? {} : { output }),
    ...(user === undefined ? {} : { user }),
    ...(serviceTier === undefined ? {} : { serviceTier }),
  };
}

function stopOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const texts = listOf(value);
  if (!Array.isArray(value) || texts.some((text) => typeof text !== 'string'))
    throw invalid('The field "stop_sequences" must be a list of strings.', 'stop_sequences');
  return (texts as readonly string[]).filter((text) => text !== '');
}

/** `thinking` says whether and how far, `output_config.effort` how much; a system message may have changed that on the way. */
function reasoningOf(json: JsonObject, latestEffort: string | undefined, losses: Losses): ReasoningWish | undefined {
  const config = objectMember(json, 'output_config') ?? {};
  for (const member of Object.keys(config))
    if (!['effort', 'format'].includes(member) && (config[member] ?? undefined) !== undefined)
      losses.dropField(`output_config.${member}`);
  const asked = latestEffort ?? textOf(config['effort']);
  const effort = efforts.find((known) => known === asked);
  if (asked !== undefined && effort === undefined)
    throw invalid('The field "output_config.effort" must be low, medium, high, xhigh or max.', 'output_config.effort');
  const thinking = objectMember(json, 'thinking');
  if (thinking === undefined) return effort === undefined ? undefined : { effort };
  return thinkingWish(thinking, effort);
}

function thinkingWish(thinking: JsonObject, effort: Effort | undefined): ReasoningWish {
  const type = textOf(thinking['type']);
  if (type === 'disabled') return { effort: 'none' };
  if (type !== 'enabled' && type !== 'adaptive' && type !== 'between_tools')
    throw invalid('The field "thinking.type" must be enabled, disabled, adaptive or between_tools.', 'thinking.type');
  const budgetTokens = countOf(thinking, 'budget_tokens', 0, 'thinking.budget_tokens');
  return {
    ...(effort === undefined ? {} : { effort }),
    ...(budgetTokens === undefined ? {} : { budgetTokens }),
    visible: thinking['display'] !== 'omitted',
  };
}

function outputOf(json: JsonObject): OutputForm | undefined {
  const format =
    objectMember(objectOf(json['output_config']) ?? {}, 'format', 'output_config.format') ??
    objectMember(json, 'output_format');
  if (format === undefined) return undefined;
  const schema = objectOf(format['schema']);
  if (format['type'] !== 'json_schema' || schema === undefined)
    throw invalid('The field "output_config.format" must be a json_schema with its schema.', 'output_config.format');
  return { form: 'schema', name: undefined, schema, strict: true };
}

/** `auto` is what everybody gets who says nothing, and so is the usual speed. */
function serviceTierOf(json: JsonObject, losses: Losses): string | undefined {
  const speed = textOf(json['speed']);
  if (speed === 'fast') return 'fast';
  if (speed !== undefined && speed !== 'standard') losses.dropField('speed');
  const tier = textMember(json, 'service_tier');
  if (tier === 'standard' || tier === 'standard_only') return 'default';
  return tier === 'auto' ? undefined : tier;
}

/** Notes every member that asks for something nobody else has. */
function dropRest(json: JsonObject, losses: Losses): void {
  const management = objectMember(json, 'context_management') ?? {};
  const edits = listMember(management, 'edits', 'context_management.edits');
  if (edits.some((edit) => !keepsEverything(edit))) losses.dropField('context_management');
  for (const [member, value] of Object.entries(json)) {
    if (readMembers.has(member) || value === undefined || value === null) continue;
    const isEmpty = Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
    if (!isEmpty) losses.dropField(member);
  }
}

/** An edit that clears nothing: clients send it to say so. */
function keepsEverything(edit: unknown): boolean {
  return objectOf(edit)?.['keep'] === 'all';
}
