/** Decodes the tools and the tool choice of a messages request. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { HostedOptions, HostedTool, Tool, ToolChoice } from '../../../../common/canonical/prompt.ts';
import { invalid } from '../../../request/checks.ts';
import { booleanMember, textMember } from '../../../request/members.ts';
import { cacheMarkOf, requiredText } from './blocks.ts';
import type { ToolChange } from './turns.ts';
import { knownTool } from './typed-tools.ts';

/** Tools that the vendor runs, by the prefix of their type. */
const hostedPrefixes: readonly (readonly [prefix: string, tool: HostedTool['tool']])[] = [
  ['web_search_', 'web_search'],
  ['web_fetch_', 'web_fetch'],
  ['code_execution_', 'code_execution'],
];

/** Placeholders that clients declare so that at least one tool is deferred; they cannot be called. */
const placeholders = new Set<unknown>(['DeferredToolPlaceholder']);

/** The tools at the end of the conversation. Throws invalid_request that names the field. */
export function decodeTools(tools: unknown, changes: readonly ToolChange[], context: DecodeContext): Tool[] {
  if (tools !== undefined && tools !== null && !Array.isArray(tools))
    throw invalid('The field "tools" must be a list.', 'tools');
  let decoded = listOf(tools).flatMap((tool, index) => decodeTool(tool, `tools[${index}]`, context));
  for (const change of changes) {
    if (change.change === 'define') decoded.push(...decodeTool(change.definition, change.field, context));
    else if (change.change === 'remove') decoded = decoded.filter((tool) => nameOf(tool) !== change.name);
    else decoded = decoded.map((tool) => (nameOf(tool) === change.name ? loaded(tool) : tool));
  }
  return decoded;
}

function nameOf(tool: Tool): string {
  return tool.kind === 'hosted' ? tool.tool : tool.name;
}

function loaded(tool: Tool): Tool {
  if (tool.kind !== 'function') return tool;
  const { deferred: _deferred, ...rest } = tool;
  return rest;
}

function decodeTool(tool: unknown, field: string, context: DecodeContext): Tool[] {
  if (!isObject(tool)) throw invalid(`The field "${field}" must be an object.`, field);
  const type = textOf(tool['type']) ?? 'custom';
  if (tool['defer_loading'] === true && placeholders.has(tool['name'])) return [];
  if (type === 'custom') return [decodeFunction(tool, field, context)];
  // Tool search is needed only where some tools are hidden; other vendors receive all tools.
  if (type.startsWith('tool_search_tool_')) return [];
  const hosted = hostedPrefixes.find(([prefix]) => type.startsWith(prefix))?.[1];
  if (hosted !== undefined)
    return [{ kind: 'hosted', tool: hosted, name: type, options: hostedOptions(tool, type, context) }];
  const known = knownTool(type, tool);
  if (known === undefined) return [{ kind: 'hosted', tool: 'other', name: type, options: {} }];
  const { description, schema } = known;
  return [{ kind: 'function', name: requiredText(tool, 'name', field), description, schema, ...marksOf(tool) }];
}

function decodeFunction(tool: JsonObject, field: string, { dropped }: DecodeContext): Tool {
  const schema = tool['input_schema'];
  if (schema !== undefined && schema !== null && !isObject(schema))
    throw invalid(`The field "${field}.input_schema" must be an object.`, `${field}.input_schema`);
  if (listOf(tool['input_examples']).length > 0) dropped.dropField('input_examples');
  noteCallers(tool, dropped);
  const description = textMember(tool, 'description', `${field}.description`);
  return {
    kind: 'function',
    name: requiredText(tool, 'name', field),
    ...(description === undefined ? {} : { description }),
    ...(isObject(schema) ? { schema } : {}),
    ...marksOf(tool),
  };
}

function marksOf(tool: JsonObject) {
  return {
    ...(typeof tool['strict'] === 'boolean' ? { strict: tool['strict'] } : {}),
    ...cacheMarkOf(tool),
    ...(tool['defer_loading'] === true ? { deferred: true } : {}),
  };
}

const hostedMembers = new Set([
  ...['type', 'name', 'allowed_domains', 'blocked_domains', 'max_uses', 'user_location'],
  ...['cache_control', 'allowed_callers', 'defer_loading'],
]);

function hostedOptions(tool: JsonObject, type: string, { dropped }: DecodeContext): HostedOptions {
  for (const [member, value] of Object.entries(tool))
    if (!hostedMembers.has(member) && value !== null) dropped.dropField(`${type}.${member}`);
  if (isObject(tool['cache_control'])) dropped.drop('cacheMarks');
  noteCallers(tool, dropped);
  const allowed = domainsOf(tool['allowed_domains']);
  const blocked = domainsOf(tool['blocked_domains']);
  const { type: _type, ...location } = objectOf(tool['user_location']) ?? {};
  const uses = tool['max_uses'];
  return {
    ...(allowed.length === 0 ? {} : { allowedDomains: allowed }),
    ...(blocked.length === 0 ? {} : { blockedDomains: blocked }),
    ...(typeof uses === 'number' ? { maxUses: uses } : {}),
    ...(Object.keys(location).length === 0 ? {} : { location }),
  };
}

/** Other protocols support calls from the model alone, not from code that it wrote. */
function noteCallers(tool: JsonObject, dropped: DecodeContext['dropped']): void {
  if (listOf(tool['allowed_callers']).some((caller) => caller !== 'direct')) dropped.dropField('allowed_callers');
}

function domainsOf(value: unknown): string[] {
  return listOf(value).filter((domain) => typeof domain === 'string');
}

const modes = { auto: 'auto', any: 'required', tool: 'required', none: 'none' } as const;

/** Absent: no choice was sent. Throws invalid_request that names the field. */
export function decodeToolChoice(value: unknown): { toolChoice?: ToolChoice; parallelTools?: boolean } {
  if (value === undefined || value === null) return {};
  const choice = objectOf(value);
  const type = textOf(choice?.['type']);
  if (choice === undefined || type === undefined || !Object.hasOwn(modes, type))
    throw invalid('The field "tool_choice.type" must be auto, any, tool or none.', 'tool_choice.type');
  const mode = modes[type as keyof typeof modes];
  const member = 'disable_parallel_tool_use';
  const disabled = booleanMember(choice, member, `tool_choice.${member}`);
  return {
    toolChoice: type === 'tool' ? { mode, names: [requiredText(choice, 'name', 'tool_choice')] } : { mode },
    ...(disabled === undefined ? {} : { parallelTools: !disabled }),
  };
}
