/** Decodes the client's tools and the tool choice. Pure. */
import { table } from '../../../../../core/contract/table.ts';
import { isObject, type JsonObject, textOf } from '../../../../../core/json/json.ts';
import { notTranslatable } from '../../../../common/canonical/dropped-parameters.ts';
import type { FunctionTool, HostedOptions, HostedTool, Tool, ToolChoice } from '../../../../common/canonical/prompt.ts';
import { lowerCaseTypes } from '../../../encoding/schemas.ts';
import type { RequestDecoder } from './request-members.ts';

const hosted: Readonly<Record<string, HostedTool['tool']>> = table({
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  urlContext: 'web_fetch',
  codeExecution: 'code_execution',
});

/** Hosted tools without a counterpart elsewhere are dropped, and refused if the request has no other tools. */
export function decodeTools(request: JsonObject, decoder: RequestDecoder): Tool[] {
  const tools: Tool[] = [];
  const foreign: string[] = [];
  for (const [index, tool] of decoder.list(request, 'tools', 'tools').entries()) {
    const path = `tools[${index}]`;
    if (!isObject(tool)) throw decoder.fault(path, 'be an object');
    for (const name of Object.keys(tool))
      if (!addTools(tools, tool, name, `${path}.${name}`, decoder)) foreign.push(`${path}.${name}`);
  }
  if (foreign.length > 0 && tools.length === 0) {
    const field = decoder.name(foreign[0]!);
    throw notTranslatable(`The field "${field}" cannot be honoured: this model has no such tool.`, field);
  }
  for (const path of foreign) decoder.dropped.dropField(decoder.name(path));
  return tools;
}

/** Adds the tools of one member of an entry of `tools`; false for a hosted tool without a counterpart. */
function addTools(tools: Tool[], entry: JsonObject, name: string, path: string, decoder: RequestDecoder): boolean {
  const value = entry[name];
  const kind = hosted[name];
  if (value === null || value === false) return true;
  if (name === 'functionDeclarations') {
    for (const [at, declaration] of decoder.list(entry, name, path).entries())
      tools.push(functionTool(declaration, `${path}[${at}]`, decoder));
    return true;
  }
  if (kind !== undefined) tools.push(hostedTool(kind, name, value, path, decoder));
  return kind !== undefined;
}

function functionTool(declaration: unknown, path: string, decoder: RequestDecoder): FunctionTool {
  if (!isObject(declaration)) throw decoder.fault(path, 'be an object');
  const name = textOf(declaration['name']);
  if (name === undefined) throw decoder.fault(`${path}.name`, 'be the name of the function');
  const description = decoder.text(declaration, 'description', `${path}.description`);
  const json = decoder.object(declaration, 'parametersJsonSchema', `${path}.parametersJsonSchema`);
  const openApi = decoder.object(declaration, 'parameters', `${path}.parameters`);
  const schema = json ?? (openApi === undefined ? undefined : lowerCaseTypes(openApi));
  for (const member of ['response', 'responseJsonSchema', 'behavior'])
    decoder.drop(`${path}.${member}`, declaration[member]);
  return {
    kind: 'function',
    name,
    ...(description === undefined || description === '' ? {} : { description }),
    ...(schema === undefined ? {} : { schema }),
  };
}

function hostedTool(
  tool: HostedTool['tool'],
  name: string,
  value: unknown,
  path: string,
  decoder: RequestDecoder,
): HostedTool {
  const { excludeDomains, ...others } = isObject(value) ? value : {};
  const blocked = Array.isArray(excludeDomains) ? excludeDomains.filter((domain) => typeof domain === 'string') : [];
  for (const [member, requested] of Object.entries(others)) decoder.drop(`${path}.${member}`, requested);
  const options: HostedOptions = blocked.length === 0 ? {} : { blockedDomains: blocked };
  return { kind: 'hosted', tool, name, options };
}

/** The content of `toolConfig`: the choice, and whether calls must follow their schemas. */
export function decodeToolChoice(
  request: JsonObject,
  decoder: RequestDecoder,
): { readonly choice?: ToolChoice; readonly strict: boolean } {
  const config = decoder.object(request, 'toolConfig', 'toolConfig') ?? {};
  for (const [member, value] of Object.entries(config))
    if (member !== 'functionCallingConfig') decoder.drop(`toolConfig.${member}`, value);
  const path = 'toolConfig.functionCallingConfig';
  const calling = decoder.object(config, 'functionCallingConfig', path);
  if (calling === undefined) return { strict: false };
  decoder.drop(`${path}.streamFunctionCallArguments`, calling['streamFunctionCallArguments']);
  const requested = decoder.text(calling, 'mode', `${path}.mode`)?.toUpperCase() ?? 'AUTO';
  const mode = requested === '' || requested === 'MODE_UNSPECIFIED' ? 'AUTO' : requested;
  if (!['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(mode))
    throw decoder.fault(`${path}.mode`, 'be AUTO, ANY, NONE or VALIDATED');
  const named = decoder.list(calling, 'allowedFunctionNames', `${path}.allowedFunctionNames`);
  const names = named.filter((name) => typeof name === 'string' && name !== '') as string[];
  const choice: ToolChoice = {
    mode: mode === 'ANY' ? 'required' : mode === 'NONE' ? 'none' : 'auto',
    ...(names.length === 0 || mode === 'NONE' ? {} : { names }),
    ...(mode === 'VALIDATED' ? { validated: true } : {}),
  };
  return { choice, strict: mode === 'VALIDATED' };
}
