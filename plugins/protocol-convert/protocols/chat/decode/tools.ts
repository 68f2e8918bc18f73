/** Decodes the tools and the tool choice of a chat request. Pure. */

import { isObject, type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DroppedParameters } from '../../../../common/canonical/dropped-parameters.ts';
import type {
  CustomTool,
  FunctionTool,
  HostedTool,
  Prompt,
  Tool,
  ToolChoice,
} from '../../../../common/canonical/prompt.ts';
import { invalid } from '../../../request/checks.ts';
import { booleanMember, listMember, objectMember, present, textMember } from '../../../request/members.ts';
import { validatedChoice } from '../../../request/validated-choice.ts';
import { cacheMark } from './parts.ts';

/** Throws invalid_request that names the invalid tool and member. */
export function decodeTools(
  json: JsonObject,
  dropped: DroppedParameters,
): Pick<Prompt, 'tools'> & { toolChoice?: ToolChoice; parallelTools?: boolean } {
  const tools = listMember(json, 'tools').map((tool, index) => decodeTool(tool, `tools[${index}]`, dropped));
  for (const [index, tool] of listMember(json, 'functions').entries())
    tools.push(decodeFunction(tool, `functions[${index}]`, dropped));
  const search = objectMember(json, 'web_search_options');
  if (search !== undefined) tools.push(decodeSearch(search, 'web_search_options'));
  const choice =
    decodeChoice(json['tool_choice'], 'tool_choice') ?? decodeChoice(json['function_call'], 'function_call');
  return {
    tools,
    ...present({ toolChoice: choice, parallelTools: booleanMember(json, 'parallel_tool_calls') }),
  };
}

function decodeTool(value: unknown, field: string, dropped: DroppedParameters): Tool {
  if (!isObject(value)) throw invalid(`The field "${field}" must be an object.`, field);
  const type = textOf(value['type']) ?? 'function';
  if (type === 'custom') return decodeCustom(value, field);
  if (isObject(value['function'])) {
    const cache = cacheMark(value);
    const tool = decodeFunction(value['function'], `${field}.function`, dropped);
    return cache === undefined ? tool : { ...tool, cache };
  }
  if (type === 'function')
    return decodeFunction(value, value['name'] === undefined ? `${field}.function` : field, dropped);
  if (/^web_search|^browser_search/.test(type)) return decodeSearch(value, type);
  return { kind: 'hosted', tool: 'other', name: type, options: {} };
}

/** Nested as the protocol says, or flat as some clients send it, with the schema under another protocol's member name. */
function decodeFunction(value: unknown, field: string, dropped: DroppedParameters): FunctionTool {
  const body = objectOf(value) ?? {};
  const name = nameOf(body, field);
  const schema = objectMember(body, 'parameters', `${field}.parameters`) ?? objectOf(body['input_schema']);
  if (body['defer_loading'] === true) dropped.dropField(`${field}.defer_loading`);
  return {
    kind: 'function',
    name,
    ...present({
      description: textMember(body, 'description', `${field}.description`),
      schema,
      strict: booleanMember(body, 'strict', `${field}.strict`),
      cache: cacheMark(body),
    }),
  };
}

function decodeCustom(value: JsonObject, field: string): CustomTool {
  const isNested = isObject(value['custom']);
  const body = isNested ? (value['custom'] as JsonObject) : value;
  const at = isNested ? `${field}.custom` : field;
  const format = objectOf(body['format']) ?? {};
  // Flat in the responses protocol, one level deeper here.
  const grammar = objectOf(format['grammar']) ?? format;
  const syntax = textOf(grammar['syntax']);
  const definition = textOf(grammar['definition']);
  const isGrammar = format['type'] === 'grammar' && syntax !== undefined && definition !== undefined;
  return {
    kind: 'custom',
    name: nameOf(body, at),
    ...present({ description: textMember(body, 'description', `${at}.description`) }),
    ...(isGrammar ? { grammar: { syntax, definition } } : {}),
  };
}

function decodeSearch(options: JsonObject, name: string): HostedTool {
  const place = objectOf(options['user_location']);
  const filters = objectOf(options['filters']) ?? options;
  return {
    kind: 'hosted',
    tool: 'web_search',
    name,
    options: present({
      contextSize: textOf(options['search_context_size']),
      location: place === undefined ? undefined : (objectOf(place['approximate']) ?? place),
      allowedDomains: domains(filters['allowed_domains']),
      blockedDomains: domains(filters['blocked_domains']),
    }),
  };
}

function domains(value: unknown): string[] | undefined {
  const names = Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
  return names.length > 0 ? names : undefined;
}

function nameOf(body: JsonObject, field: string): string {
  const name = textOf(body['name']);
  if (name === undefined)
    throw invalid(`The field "${field}.name" must be a string that is not empty.`, `${field}.name`);
  return name;
}

/** undefined: the model decides. */
function decodeChoice(value: unknown, field: string): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return modeChoice(value, field);
  if (!isObject(value)) throw invalid(`The field "${field}" must be a string or an object.`, field);
  const type = textOf(value['type']);
  if (type === 'allowed_tools') return allowedTools(value, field);
  const name = nameIn(value);
  if (name !== undefined) return { mode: 'required', names: [name] };
  if (type !== undefined && /^web_search/.test(type)) return { mode: 'required', names: ['web_search'] };
  if (type === undefined) throw invalid(`The field "${field}.name" is missing.`, `${field}.name`);
  return modeChoice(type, `${field}.type`);
}

function modeChoice(mode: string, field: string): ToolChoice {
  if (mode === 'auto' || mode === 'none' || mode === 'required') return { mode };
  if (mode === 'any') return { mode: 'required' };
  if (mode === validatedChoice) return { mode: 'auto', validated: true };
  throw invalid(`The field "${field}" must be none, auto, required or a tool.`, field);
}

function allowedTools(value: JsonObject, field: string): ToolChoice {
  const isNested = isObject(value['allowed_tools']);
  const body = isNested ? (value['allowed_tools'] as JsonObject) : value;
  const at = isNested ? `${field}.allowed_tools` : field;
  const names = listMember(body, 'tools', `${at}.tools`).map((tool, index) => {
    const name = isObject(tool) ? nameIn(tool) : undefined;
    if (name !== undefined) return name;
    throw invalid(`The field "${at}.tools[${index}]" does not name a tool.`, `${at}.tools[${index}]`);
  });
  return { mode: body['mode'] === 'required' ? 'required' : 'auto', names };
}

/** The name in a choice of one tool, nested or flat. */
function nameIn(value: JsonObject): string | undefined {
  return (
    textOf(objectOf(value['function'])?.['name']) ??
    textOf(objectOf(value['custom'])?.['name']) ??
    textOf(value['name'])
  );
}
