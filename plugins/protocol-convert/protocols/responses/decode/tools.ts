/** Decodes a client's tools and tool choice. Throws invalid_request that names the field. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type {
  CustomTool,
  FunctionTool,
  HostedOptions,
  HostedTool,
  Tool,
  ToolChoice,
} from '../../../../common/canonical/prompt.ts';
import { invalid } from '../../../request/checks.ts';
import { booleanMember, textMember } from '../../../request/members.ts';
import { validatedChoice } from '../../../request/validated-choice.ts';
import { isClientSearch, toolSearch } from '../tool-search.ts';

/** Namespaces are flattened: each of their tools records its namespace. `field`: `tools`, `input[0].tools`. */
export function decodeTools(value: unknown, field: string): Tool[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a list.`, field);
  return value.flatMap((tool: unknown, index) => decodeTool(tool, `${field}[${index}]`));
}

function decodeTool(value: unknown, field: string): Tool[] {
  const tool = objectOf(value);
  if (tool === undefined) throw invalid(`The field "${field}" must be an object.`, field);
  const type = textOf(tool['type']);
  switch (type) {
    case undefined:
      throw invalid(`The field "${field}.type" is missing.`, `${field}.type`);
    case 'function':
      return [decodeFunction(tool, field)];
    case 'custom':
      return [decodeCustom(tool, field)];
    case 'namespace': {
      const namespace = nameOf(tool, field);
      const tools = decodeTools(tool['tools'], `${field}.tools`);
      return tools.map((inner) => (inner.kind === 'hosted' || isSearch(inner) ? inner : { ...inner, namespace }));
    }
    case 'tool_search':
      return [isClientSearch(tool) ? decodeSearch(tool, field) : decodeHosted(type, tool)];
    default:
      return [decodeHosted(type, tool)];
  }
}

function isSearch(tool: Tool): boolean {
  return tool.kind === 'function' && tool.namespace === toolSearch.namespace;
}

function decodeSearch({ description, parameters }: JsonObject, field: string): FunctionTool {
  return {
    ...decodeFunction({ name: toolSearch.name, description, parameters }, field),
    namespace: toolSearch.namespace,
  };
}

function decodeFunction(tool: JsonObject, field: string): FunctionTool {
  const description = textMember(tool, 'description', `${field}.description`);
  const schema = tool['parameters'];
  if (schema !== undefined && schema !== null && !isObject(schema)) {
    throw invalid(`The field "${field}.parameters" must be an object.`, `${field}.parameters`);
  }
  const strict = booleanMember(tool, 'strict', `${field}.strict`);
  return {
    kind: 'function',
    name: nameOf(tool, field),
    ...(description === undefined ? {} : { description }),
    ...(isObject(schema) ? { schema } : {}),
    ...(strict === undefined ? {} : { strict }),
    ...(tool['defer_loading'] === true ? { deferred: true } : {}),
  };
}

function decodeCustom(tool: JsonObject, field: string): CustomTool {
  const description = textOf(tool['description']);
  const format = objectOf(tool['format']);
  const definition = textOf(format?.['definition']);
  const syntax = textOf(format?.['syntax']) ?? 'lark';
  return {
    kind: 'custom',
    name: nameOf(tool, field),
    ...(description === undefined ? {} : { description }),
    ...(definition === undefined ? {} : { grammar: { syntax, definition } }),
  };
}

function decodeHosted(type: string, tool: JsonObject): HostedTool {
  const kind = hostedKind(type);
  // Without external access the vendor searches its own copy of the web, which no other vendor has.
  const isClosed = kind === 'web_search' && tool['external_web_access'] === false;
  return {
    kind: 'hosted',
    tool: isClosed ? 'other' : kind,
    name: type,
    options: isClosed ? {} : searchOptions(kind, tool),
  };
}

function hostedKind(type: string): HostedTool['tool'] {
  // `web_search_2025_08_26`, `web_search_preview_2025_03_11`, …
  if (type.startsWith('web_search')) return 'web_search';
  if (type === 'code_interpreter') return 'code_execution';
  return type === 'image_generation' ? 'image_generation' : 'other';
}

function searchOptions(kind: HostedTool['tool'], tool: JsonObject): HostedOptions {
  if (kind !== 'web_search') return {};
  const filters = objectOf(tool['filters']) ?? {};
  const allowedDomains = textsOf(filters['allowed_domains']);
  const blockedDomains = textsOf(filters['blocked_domains']);
  const contextSize = textOf(tool['search_context_size']);
  const place = objectOf(tool['user_location']);
  const location = place === undefined ? undefined : placeOf(place);
  return {
    ...(allowedDomains.length === 0 ? {} : { allowedDomains }),
    ...(blockedDomains.length === 0 ? {} : { blockedDomains }),
    ...(contextSize === undefined ? {} : { contextSize }),
    ...(location === undefined ? {} : { location }),
  };
}

function placeOf(place: JsonObject): JsonObject | undefined {
  const known = ['country', 'region', 'city', 'timezone'].filter((member) => textOf(place[member]) !== undefined);
  return known.length === 0 ? undefined : Object.fromEntries(known.map((member) => [member, place[member]]));
}

function textsOf(value: unknown): string[] {
  return listOf(value).filter((text) => typeof text === 'string');
}

function nameOf(tool: JsonObject, field: string): string {
  const name = textOf(tool['name']);
  if (name === undefined) throw invalid(`The field "${field}.name" is missing.`, `${field}.name`);
  return name;
}

const modes = new Set(['auto', 'none', 'required']);

/** undefined: not requested. `tools`: those of the request. */
export function decodeToolChoice(value: unknown, tools: readonly Tool[]): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined;
  const field = 'tool_choice';
  if (value === validatedChoice) return { mode: 'auto', validated: true };
  if (typeof value === 'string' && modes.has(value)) return { mode: value as ToolChoice['mode'] };
  const choice = objectOf(value);
  const type = textOf(choice?.['type']);
  if (choice === undefined || type === undefined) {
    throw invalid(`The field "${field}" must be auto, none, required or an object with a type.`, field);
  }
  if (type !== 'allowed_tools') return { mode: 'required', names: [chosenName(choice, field, tools)] };
  const names = listOf(choice['tools']).map((tool, index) => {
    const name = `${field}.tools[${index}]`;
    const chosen = objectOf(tool);
    if (chosen === undefined) throw invalid(`The field "${name}" must be an object.`, name);
    return chosenName(chosen, name, tools);
  });
  return { mode: choice['mode'] === 'required' ? 'required' : 'auto', names };
}

function chosenName(choice: JsonObject, field: string, tools: readonly Tool[]): string {
  const type = textOf(choice['type']) ?? 'function';
  if (type === 'tool_search' && tools.some(isSearch)) return toolSearch.name;
  return type === 'function' || type === 'custom' ? nameOf(choice, field) : hostedKind(type);
}
