/**
 * What a request may make a vendor run beside its own model: other models, tools that the vendor runs itself, routes, and objects that
 * the vendor keeps. The one rule for every protocol: each is metered, or the request is refused by the field's name. Pure.
 */
import { GatewayError } from '../../../core/contract/errors.ts';
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { Target } from '../domain/upstreams.ts';
import type { VendorId } from './protocols.ts';

/** Clients get the same error for unknown ids, expired ids and ids of other accounts. */
export function notFound({ id, kind, field }: Pick<VendorId, 'id' | 'kind' | 'field'>): GatewayError {
  const message = `${kind} with id '${id.slice(0, 200)}' not found.`;
  return new GatewayError('invalid_request', message, { field, code: 'resource_not_found' });
}

/** Throws resource_not_found for an id of a vendor's object that must not go to this target. */
export function refuseIds(
  ids: readonly Pick<VendorId, 'id' | 'kind' | 'field'>[],
  { upstream }: Pick<Target, 'upstream'>,
): void {
  const { uncheckedIds } = upstream;
  if (uncheckedIds?.all === true) return;
  const refused = ids.find(({ id }) => uncheckedIds?.shared.has(id) !== true);
  if (refused !== undefined) throw notFound(refused);
}

/** Names of the model that is charged: the client's and the vendor's. */
export type OwnNames = ReadonlySet<string>;

/** Members of a request that hold the conversation, or data of the client: a name in them runs nothing. Tools among them are read apart. */
const unread = new Set([
  ...['model', 'messages', 'input', 'contents', 'system', 'systemInstruction', 'system_instruction', 'instructions'],
  ...['tools', 'tool_choice', 'toolConfig', 'tool_config', 'functions', 'function_call', 'metadata', 'labels', 'user'],
  ...['response_format', 'text', 'output_format', 'prediction', 'stop', 'thinking', 'reasoning', 'stream_options'],
  ...['include', 'safetySettings', 'safety_settings', 'context_management', 'client_metadata', 'prompt', 'audio'],
  ...['documents', 'query', 'texts'],
]);
/** The same, deeper. */
const opaque = new Set(['schema', 'responseSchema', 'responseJsonSchema', 'response_schema', 'response_json_schema']);

/** Members that name models, at any depth. */
const modelMembers = new Set([
  ...['model', 'models', 'fallback', 'fallbacks', 'fallback_model', 'fallback_models', 'fallbackModel'],
  ...['fallbackModels', 'model_name', 'modelName', 'model_id', 'modelId'],
]);
/** Members that leave it to the vendor who serves the call, with what, and at which price. */
const routeMembers = new Set([
  ...['route', 'provider', 'providers', 'plugins', 'preset', 'routing', 'routingConfig', 'routing_config'],
  ...['modelSelectionConfig', 'model_selection_config'],
]);
/** Parts of `provider` that ask for privacy or for the request as it is, and for nothing that costs more. */
const harmlessChoices = new Set(['data_collection', 'zdr', 'require_parameters', 'enforce_distillable_text']);
/** Services of an attempt beside the first. */
const serviceMembers = new Set(['speed', 'service_tier', 'serviceTier', 'inference_geo']);

const deepest = 20;

/**
 * Throws invalid_request that names the field, unless everything that the request makes this vendor run is metered. `left`: top-level
 * members that are not sent to it.
 */
export function refuseUnmetered(protocol: string, json: JsonObject, own: OwnNames, left: readonly string[] = []): void {
  for (const key in json) if (!unread.has(key) && !left.includes(key)) refuseMember(key, json[key], key, own);
  if (left.includes('tools')) return;
  const read = (tools: unknown, field: string) => refuseTools(protocol, tools, field, own);
  read(json['tools'], 'tools');
  if (protocol === 'messages') readAdditions(json['messages'], read);
  if (protocol === 'responses') readItems(json['input'], read);
}

function refuseMember(name: string, value: unknown, field: string, own: OwnNames, depth = 0): void {
  if (value === null || value === undefined || value === false) return;
  if (routeMembers.has(name)) refuseRoute(field, value);
  else if (modelMembers.has(name)) refuseNames(value, field, own, depth);
  else if (typeof value === 'object') refuseWithin(value, field, own, depth);
}

/** A name, a list of names, or entries with one and settings of their own. */
function refuseNames(value: unknown, field: string, own: OwnNames, depth: number): void {
  if (typeof value === 'string') {
    if (value !== '' && !own.has(value.replace(/^models\//, ''))) throw otherModel(field, value);
  } else if (Array.isArray(value)) {
    value.forEach((entry, index) => {
      refuseNames(entry, `${field}[${index}]`, own, depth + 1);
    });
  } else if (isObject(value)) {
    // The surcharges of the call do not know them.
    const service = Object.keys(value).find((key) => serviceMembers.has(key) && !isStandard(value[key]));
    if (service !== undefined) throw unmetered(`${field}.${service}`, 'asks for a service');
    refuseWithin(value, field, own, depth);
  }
}

function isStandard(service: unknown): boolean {
  return service === null || service === 'standard';
}

function refuseWithin(value: object, field: string, own: OwnNames, depth: number): void {
  if (depth > deepest) throw unmetered(field, 'is nested too deep');
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++)
      refuseMember('', value[index], `${field}[${index}]`, own, depth + 1);
    return;
  }
  for (const [key, inner] of Object.entries(value))
    if (!opaque.has(key)) refuseMember(key, inner, `${field}.${key}`, own, depth + 1);
}

function refuseRoute(field: string, value: unknown): void {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return;
  if (isObject(value) && Object.keys(value).every((name) => harmlessChoices.has(name) || isFixed(name, value))) return;
  throw unmetered(field, 'leaves it to the vendor who serves the request, and at which price');
}

/** One host of the same model and no other, which the vendor's account could have been set to. */
function isFixed(name: string, choices: JsonObject): boolean {
  if (name === 'allow_fallbacks') return choices[name] === false;
  return (
    (name === 'order' || name === 'only') && choices['allow_fallbacks'] === false && listOf(choices[name]).length === 1
  );
}

type ReadTools = (tools: unknown, field: string) => void;

/** Tools that a turn adds. */
function readAdditions(messages: unknown, read: ReadTools): void {
  listOf(messages).forEach((turn, at) => {
    const content = objectOf(turn)?.['content'];
    if (Array.isArray(content)) readBlocks(content, `messages[${at}].content`, read);
  });
}

function readBlocks(blocks: readonly unknown[], field: string, read: ReadTools): void {
  for (let at = 0; at < blocks.length; at++) {
    const block = objectOf(blocks[at]);
    if (block?.['type'] === 'tool_addition') readAddition(block, `${field}[${at}]`, read);
    // What a compaction has kept of earlier turns.
    else if (Array.isArray(block?.['tool_changes']))
      readBlocks(block['tool_changes'], `${field}[${at}].tool_changes`, read);
  }
}

function readAddition({ tool }: JsonObject, field: string, read: ReadTools): void {
  const added = objectOf(tool);
  if (added === undefined || /_reference$/.test(textOf(added['type']) ?? '')) return;
  // The definition may stand in a member of its own.
  const definition = ['definition', 'tool'].find((name) => isObject(added[name]));
  if (definition === undefined) read(added, `${field}.tool`);
  else read(added[definition], `${field}.tool.${definition}`);
}

/** Items of a conversation that bring tools. */
function readItems(input: unknown, read: ReadTools): void {
  const items = listOf(input);
  for (let index = 0; index < items.length; index++) {
    const tools = objectOf(items[index])?.['tools'];
    // What a server lists of its own are descriptions.
    if (Array.isArray(tools) && objectOf(items[index])?.['type'] !== 'mcp_list_tools')
      read(tools, `input[${index}].tools`);
  }
}

/**
 * Tools by their type, or by their member for generate-content, of which every run is counted or has no price of its own: those of the
 * client, and the vendor's that the usage meters read.
 */
const meteredTools: Readonly<Record<string, RegExp>> = table({
  chat: /^(function|custom|namespace|computer.*|mcp|(\w+:)?web_search.*|web_fetch|x_search|code_interpreter|code_execution|file_search|retrieval|browser_search|builtin_function|image_generation|search_engine|\w+:datetime)$/,
  responses:
    /^(function|custom|namespace|local_shell|shell|apply_patch|computer.*|tool_search.*|programmatic_tool_calling|mcp|(\w+:)?web_search.*|x_search|code_interpreter|code_execution|file_search|document_search|collections_search|attachment_search|image_generation|\w+:datetime)$/,
  messages:
    /^(custom|function|bash_.*|text_editor_.*|computer_.*|browser_.*|memory_.*|tool_search_.*|mcp_.*|web_search_.*|web_fetch_.*|code_execution_.*|advisor_.*)$/,
  gemini:
    /^(function_?declarations|google_?search|google_?search_?retrieval|google_?maps|url_?context|code_?execution|file_?search|computer_?use|retrieval|enterprise_?web_?search|exa_?ai_?search|parallel_?ai_?search|mcp_?servers)$/i,
});

function refuseTools(protocol: string, tools: unknown, field: string, own: OwnNames): void {
  const known = meteredTools[protocol];
  if (known === undefined) return;
  if (!Array.isArray(tools)) {
    if (isObject(tools)) refuseTool(protocol, known, tools, field, own);
    return;
  }
  for (let index = 0; index < tools.length; index++) {
    const tool: unknown = tools[index];
    if (isObject(tool)) refuseTool(protocol, known, tool, `${field}[${index}]`, own);
  }
}

function refuseTool(protocol: string, known: RegExp, tool: JsonObject, field: string, own: OwnNames): void {
  if (protocol === 'gemini') {
    const unknown = Object.keys(tool).find((name) => !known.test(name));
    if (unknown !== undefined) throw unknownTool(`${field}.${unknown}`, unknown);
    return;
  }
  const { type } = tool;
  if (type === undefined || type === 'function' || type === 'custom') return;
  if (typeof type === 'string' && !known.test(type)) throw unknownTool(`${field}.type`, type);
  refuseTools(protocol, tool['tools'], `${field}.tools`, own);
  for (const name of modelMembers) refuseMember(name, tool[name], `${field}.${name}`, own);
}

function unknownTool(field: string, name: string): GatewayError {
  return unmetered(field, `names the tool "${name.slice(0, 100)}", of which no run can be counted`);
}

function otherModel(field: string, name: string): GatewayError {
  const shown = name.slice(0, 200);
  const message = `The field "${field}" names the model "${shown}": a request is answered and charged by the model of "model" alone. Leave it out.`;
  return new GatewayError('invalid_request', message, { field, code: 'other_model', shouldRetry: false });
}

function unmetered(field: string, why: string): GatewayError {
  const message = `The field "${field}" ${why}, so it cannot be charged here. Leave it out.`;
  return new GatewayError('invalid_request', message, { field, code: 'not_metered', shouldRetry: false });
}
