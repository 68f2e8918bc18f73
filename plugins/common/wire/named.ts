/**
 * What a request may make a vendor run beside its own model: other models, tools that the vendor runs itself, routes, and objects that
 * the vendor keeps. The one rule for every protocol: each is metered, or the request is refused by the field's name. Pure.
 */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { Target } from '../domain/upstreams.ts';
import type { UsageClass } from '../domain/usage.ts';
import { asksSearch, chargeOf, mayHaveTools, namesIn, readTools, searchMembers } from './hosted-tools.ts';
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

/** The vendor's name of the model that is charged. */
export type OwnNames = Pick<ReadonlySet<string>, 'has'>;

/** Members of a request that hold the conversation, or data of the client: a name in them runs nothing. Tools among them are read apart. */
const unread = new Set([
  ...['model', 'messages', 'input', 'contents', 'system', 'systemInstruction', 'system_instruction', 'instructions'],
  ...['tools', 'tool_choice', 'functions', 'function_call', 'metadata', 'labels', 'user'],
  ...['response_format', 'text', 'output_format', 'stop'],
  ...['include', 'safetySettings', 'safety_settings', 'client_metadata', 'prompt', 'audio'],
  ...['documents', 'query', 'texts'],
]);
/** The same, deeper. */
const opaque = new Set(['schema', 'responseSchema', 'responseJsonSchema', 'response_schema', 'response_json_schema']);

/** Members that name models, at any depth: `model`, `fallbacks`, `draft_model`, `modelName` and the like. */
const modelMember =
  /(?:^|_)(?:models?|fallbacks?)(?:_(?:name|id))?$|^model(?:Name|Id)$|[a-z](?:Models?|Fallbacks?)(?:Name|Id)?$|^M(?:odels?|ODELS?)$/;
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

const toolMembers = ['tools', ...searchMembers];

/**
 * Throws invalid_request that names the field, unless everything that the request makes this vendor run is metered. `left`: top-level
 * members that are not sent to it.
 */
export function refuseUnmetered(protocol: string, json: JsonObject, own: OwnNames, left: readonly string[] = []): void {
  for (const key in json) if (!unread.has(key) && !left.includes(key)) refuseMember(key, json[key], key, own);
  if (left.includes('tools') || !asksForTools(protocol, json)) return;
  readTools(protocol, json, (tools, field) => {
    eachTool(tools, field, (tool, at) => refuseTool(protocol, tool, at, own));
  });
}

/** Whether a request may make the vendor run tools: by a member, or, in some protocols, by what a turn brings. */
export function asksForTools(protocol: string, json: JsonObject): boolean {
  if (protocol !== 'chat') return mayHaveTools(protocol, json);
  for (const name of toolMembers) if (json[name] !== undefined) return true;
  return false;
}

/** Whether a run that is counted by this class has a price, which may be 0. */
export type IsPriced = (name: UsageClass) => boolean;

/** Throws invalid_request, naming the field, for a tool that this vendor runs without a price. `left`: as above. */
export function refuseUnpriced(
  protocol: string,
  json: JsonObject,
  isPriced: IsPriced,
  left: readonly string[] = [],
): void {
  if (protocol === 'chat') {
    const name = searchMembers.find((member) => json[member] !== undefined && !left.includes(member));
    if (name !== undefined && asksSearch(json[name]) && !isPriced('web_search')) throw unpriced(name, name);
  }
  if (left.includes('tools') || !mayHaveTools(protocol, json)) return;
  readTools(protocol, json, (tools, field) => {
    eachTool(tools, field, (tool, at) => {
      for (const [name, place] of namesIn(protocol, tool, at)) {
        const charge = chargeOf(protocol, name, tool);
        if (charge !== undefined && charge !== 'tokens' && !isPriced(charge)) throw unpriced(place, name);
      }
    });
  });
}

/** As `refuseUnmetered` and `refuseUnpriced` throw for settings of a session, at `field`; undefined: all is charged. */
export function unmeteredMember(protocol: string, settings: JsonObject, own: OwnNames, field: string) {
  return refusalAt(field, () => refuseUnmetered(protocol, settings, own));
}

export function unpricedTool(protocol: string, settings: JsonObject, isPriced: IsPriced, field: string) {
  return refusalAt(field, () => refuseUnpriced(protocol, settings, isPriced));
}

function refusalAt(within: string, check: () => void): GatewayError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { kind, message, field, code, shouldRetry } = error;
    const place = `${within}.${field}`;
    const shown = message.replace(`"${field}"`, `"${place}"`);
    return new GatewayError(kind, shown, {
      field: place,
      ...(code && { code }),
      ...(shouldRetry === false && { shouldRetry }),
    });
  }
}

/** Reads each tool, also those within others. */
function eachTool(tools: unknown, field: string, read: (tool: JsonObject, field: string) => void, depth = 0): void {
  if (depth > deepest) throw unmetered(field, 'is nested too deep');
  if (!Array.isArray(tools)) {
    if (isObject(tools)) read(tools, field);
    return;
  }
  for (let index = 0; index < tools.length; index++) {
    const tool: unknown = tools[index];
    if (!isObject(tool)) continue;
    read(tool, `${field}[${index}]`);
    const { type } = tool;
    if (type !== undefined && type !== 'function' && type !== 'custom')
      eachTool(tool['tools'], `${field}[${index}].tools`, read, depth + 1);
  }
}

function refuseMember(name: string, value: unknown, field: string, own: OwnNames, depth = 0): void {
  if (value === null || value === undefined || value === false) return;
  if (routeMembers.has(name)) refuseRoute(field, value);
  else if (modelMember.test(name)) refuseNames(value, field, own, depth);
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

function refuseTool(protocol: string, tool: JsonObject, field: string, own: OwnNames): void {
  const unknown = namesIn(protocol, tool, field).find(([name]) => chargeOf(protocol, name, tool) === undefined);
  if (unknown !== undefined) throw unknownTool(unknown[1], unknown[0]);
  const { type } = tool;
  if (protocol !== 'gemini' && (type === undefined || type === 'function' || type === 'custom')) return;
  refuseModelsOf(tool, field, own);
}

/** Descriptions of functions, and tools that are read apart. */
const described = new Set([
  ...['tools', 'parameters', 'input_schema', 'functionDeclarations', 'function_declarations', 'headers'],
]);

/** Models in the settings of a tool, at any depth. */
function refuseModelsOf(settings: object, field: string, own: OwnNames, depth = 0): void {
  if (depth > deepest) throw unmetered(field, 'is nested too deep');
  for (const [key, value] of Object.entries(settings)) {
    const place = Array.isArray(settings) ? `${field}[${key}]` : `${field}.${key}`;
    if (described.has(key) || value === null) continue;
    if (modelMember.test(key)) refuseNames(value, place, own, depth);
    else if (typeof value === 'object') refuseModelsOf(value, place, own, depth + 1);
  }
}

function unknownTool(field: string, name: string): GatewayError {
  return unmetered(field, `names the tool "${name.slice(0, 100)}", of which no run can be counted`);
}

function otherModel(field: string, name: string): GatewayError {
  const shown = name.slice(0, 200);
  const message = `The field "${field}" names the model "${shown}": a request is answered and charged by the model of "model" alone. Leave it out.`;
  return new GatewayError('invalid_request', message, { field, code: 'other_model', shouldRetry: false });
}

function unpriced(field: string, name: string): GatewayError {
  const message = `The field "${field}" names the tool "${name.slice(0, 100)}", which the vendor runs, and of which a run has no price for this model. Leave it out.`;
  return new GatewayError('invalid_request', message, { field, code: 'tool_not_priced', shouldRetry: false });
}

function unmetered(field: string, why: string): GatewayError {
  const message = `The field "${field}" ${why}, so it cannot be charged here. Leave it out.`;
  return new GatewayError('invalid_request', message, { field, code: 'not_metered', shouldRetry: false });
}
