/** Reads the tools that a client offers, and how they may be chosen. Pure. */
import type { FunctionTool, HostedOptions, HostedTool, Tool, ToolChoice } from '../../canon.ts';
import { isObject, type JsonObject, textOf } from '../../json.ts';
import { notTranslatable } from '../../losses.ts';
import { lowerCaseTypes } from '../../wording/schemas.ts';
import type { Reading } from './reading.ts';

const hosted: Readonly<Record<string, HostedTool['tool']>> = {
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  urlContext: 'web_fetch',
  codeExecution: 'code_execution',
};

/** Tools that only their vendor has are left out, and refused where nothing else is offered. */
export function decodeTools(request: JsonObject, reading: Reading): Tool[] {
  const tools: Tool[] = [];
  const foreign: string[] = [];
  for (const [index, tool] of reading.list(request, 'tools', 'tools').entries()) {
    const path = `tools[${index}]`;
    if (!isObject(tool)) throw reading.fault(path, 'be an object');
    for (const [name, value] of Object.entries(tool)) {
      const kind = hosted[name];
      if (value === null || value === false) continue;
      if (name === 'functionDeclarations') {
        for (const [at, declaration] of reading.list(tool, name, `${path}.${name}`).entries())
          tools.push(functionTool(declaration, `${path}.${name}[${at}]`, reading));
      } else if (kind !== undefined) tools.push(hostedTool(kind, name, value, `${path}.${name}`, reading));
      else foreign.push(`${path}.${name}`);
    }
  }
  if (foreign.length > 0 && tools.length === 0) {
    const field = reading.name(foreign[0]!);
    throw notTranslatable(`The field "${field}" cannot be honoured: this model has no such tool.`, field);
  }
  for (const path of foreign) reading.losses.dropField(reading.name(path));
  return tools;
}

function functionTool(declaration: unknown, path: string, reading: Reading): FunctionTool {
  if (!isObject(declaration)) throw reading.fault(path, 'be an object');
  const name = textOf(declaration['name']);
  if (name === undefined) throw reading.fault(`${path}.name`, 'be the name of the function');
  const description = reading.text(declaration, 'description', `${path}.description`);
  const json = reading.object(declaration, 'parametersJsonSchema', `${path}.parametersJsonSchema`);
  const openApi = reading.object(declaration, 'parameters', `${path}.parameters`);
  const schema = json ?? (openApi === undefined ? undefined : lowerCaseTypes(openApi));
  for (const member of ['response', 'responseJsonSchema', 'behavior'])
    reading.drop(`${path}.${member}`, declaration[member]);
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
  reading: Reading,
): HostedTool {
  const { excludeDomains, ...others } = isObject(value) ? value : {};
  const blocked = Array.isArray(excludeDomains) ? excludeDomains.filter((domain) => typeof domain === 'string') : [];
  for (const [member, asked] of Object.entries(others)) reading.drop(`${path}.${member}`, asked);
  const options: HostedOptions = blocked.length === 0 ? {} : { blockedDomains: blocked };
  return { kind: 'hosted', tool, name, options };
}

/** What `toolConfig` says: the choice, and whether calls must follow their schemas. */
export function decodeToolChoice(
  request: JsonObject,
  reading: Reading,
): { readonly choice?: ToolChoice; readonly strict: boolean } {
  const config = reading.object(request, 'toolConfig', 'toolConfig') ?? {};
  for (const [member, value] of Object.entries(config))
    if (member !== 'functionCallingConfig') reading.drop(`toolConfig.${member}`, value);
  const path = 'toolConfig.functionCallingConfig';
  const calling = reading.object(config, 'functionCallingConfig', path);
  if (calling === undefined) return { strict: false };
  reading.drop(`${path}.streamFunctionCallArguments`, calling['streamFunctionCallArguments']);
  const asked = reading.text(calling, 'mode', `${path}.mode`)?.toUpperCase() ?? 'AUTO';
  const mode = asked === '' || asked === 'MODE_UNSPECIFIED' ? 'AUTO' : asked;
  if (!['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(mode))
    throw reading.fault(`${path}.mode`, 'be AUTO, ANY, NONE or VALIDATED');
  const named = reading.list(calling, 'allowedFunctionNames', `${path}.allowedFunctionNames`);
  const names = named.filter((name) => typeof name === 'string' && name !== '') as string[];
  const choice: ToolChoice = {
    mode: mode === 'ANY' ? 'required' : mode === 'NONE' ? 'none' : 'auto',
    ...(names.length === 0 || mode === 'NONE' ? {} : { names }),
  };
  return { choice, strict: mode === 'VALIDATED' };
}
