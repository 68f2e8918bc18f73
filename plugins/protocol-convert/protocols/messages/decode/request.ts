/** Decodes a request of the messages protocol into a Prompt. Pure. */
import { type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { DroppedParameters } from '../../../../common/canonical/dropped-parameters.ts';
import type { OutputForm, Prompt, ReasoningSettings } from '../../../../common/canonical/prompt.ts';
import { type Effort, efforts } from '../../../../common/domain/traits.ts';
import { countOf, invalid } from '../../../request/checks.ts';
import { listMember, numberMember, objectMember, present, textMember } from '../../../request/members.ts';
import { recordUnread } from '../../../request/shapes.ts';
import { type WrittenNames, writtenName } from '../../../request/written-names.ts';
import { requestShape } from '../shapes.ts';
import { refuseCompaction } from './compaction.ts';
import { refuseThread } from './threads.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import { decodeConversation } from './turns.ts';

/** Members that are decoded here or elsewhere, or that request nothing. */
const readMembers = new Set([
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'tools', 'tool_choice', 'thinking', 'output_config'],
  ...['output_format', 'metadata', 'stop_sequences', 'temperature', 'top_p', 'top_k', 'service_tier', 'speed'],
  ...[
    'cache_control',
    'context_management',
    'mcp_servers',
    'anthropic_version',
    'anthropic_beta',
    'betas',
    'thread',
    'compaction',
  ],
]);

/** Members that affect the form or routing of an answer and nothing that the model sees. */
const softParameters = new Set([
  ...['container', 'inference_geo', 'diagnostics', 'fallbacks', 'fallback_credit_token', 'billing_policy'],
  ...['user_profile_id', 'workspace_id'],
]);

const writtenNames: WrittenNames = {
  thinking: { names: ['thinking', 'output_config.effort'] },
  service_tier: { names: ['service_tier', 'speed'] },
  'output_config.format': { names: ['output_config.format', 'output_format'] },
};

/** Throws invalid_request that names the field, and `unsupported` for features of this protocol's vendor alone. */
export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  const { dropped } = context;
  dropped.spellWith((name) => writtenName(json, writtenNames, name));
  if (listMember(json, 'mcp_servers').length > 0)
    dropped.refuse('tools', 'cannot call the tools of other servers by itself', 'mcp_servers');
  refuseThread(json, false);
  const { turns, toolChanges, effort } = decodeConversation(json, context);
  const maxOutputTokens = countOf(json, 'max_tokens', 0);
  // A request without this bound is a count, which is of the conversation as it is.
  if (maxOutputTokens !== undefined) refuseCompaction(json, false);
  if (maxOutputTokens === 0) dropped.refuse('maxOutputTokens', 'always answers; a bound of 0 fills no cache of it');
  const stop = stopOf(json['stop_sequences']);
  const reasoning = reasoningOf(json, effort);
  const output = outputOf(json);
  const user = textMember(objectMember(json, 'metadata') ?? {}, 'user_id', 'metadata.user_id');
  const serviceTier = serviceTierOf(json, dropped);
  dropRest(json, dropped);
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

/**
 * `thinking` gives the mode and the budget, `output_config.effort` the effort; a later system message may have changed the
 * effort.
 */
function reasoningOf(json: JsonObject, latestEffort: string | undefined): ReasoningSettings | undefined {
  const config = objectMember(json, 'output_config') ?? {};
  const requested = latestEffort ?? textOf(config['effort']);
  const effort = efforts.find((known) => known === requested);
  if (requested !== undefined && effort === undefined)
    throw invalid('The field "output_config.effort" must be low, medium, high, xhigh or max.', 'output_config.effort');
  const thinking = objectMember(json, 'thinking');
  if (thinking === undefined) return effort === undefined ? undefined : { effort };
  return decodeThinkingSettings(thinking, effort);
}

function decodeThinkingSettings(thinking: JsonObject, effort: Effort | undefined): ReasoningSettings {
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

/** `auto` is the default, and so is the standard speed. */
function serviceTierOf(json: JsonObject, dropped: DroppedParameters): string | undefined {
  const speed = textOf(json['speed']);
  if (speed === 'fast') return 'fast';
  if (speed !== undefined && speed !== 'standard') dropped.dropField('speed');
  const tier = textMember(json, 'service_tier');
  if (tier === 'standard' || tier === 'standard_only') return 'default';
  return tier === 'auto' ? undefined : tier;
}

/** Records every member that no other vendor supports. */
function dropRest(json: JsonObject, dropped: DroppedParameters): void {
  const management = objectMember(json, 'context_management') ?? {};
  const edits = listMember(management, 'edits', 'context_management.edits');
  if (edits.some((edit) => !keepsEverything(edit))) dropped.dropField('context_management');
  recordUnread(json, requestShape, dropped);
  for (const [member, value] of Object.entries(json))
    if (!readMembers.has(member)) dropped.unknown(member, value, softParameters);
}

/** An edit that clears nothing; some clients send it explicitly. */
function keepsEverything(edit: unknown): boolean {
  return objectOf(edit)?.['keep'] === 'all';
}
