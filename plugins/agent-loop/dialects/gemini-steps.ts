/** Steps of a run as parts of generate-content, for clients that ask to see what is run for them, and as a model reads them later. Pure. */
import { isObject, type JsonObject, listOf, objectOf, tryParse } from '../../../core/json/json.ts';
import { filesName } from '../files/found.ts';
import type { Offered } from '../offered.ts';
import { searchName } from '../search/found.ts';
import type { ToolDone } from '../talk.ts';

/** By which the gateway knows its own steps again. */
const mark = 'gateway_';
const filesType = 'FILE_SEARCH';
const flags = ['includeServerSideToolInvocations', 'include_server_side_tool_invocations'] as const;

export function showsSteps({ toolConfig, tool_config }: JsonObject): boolean {
  const settings = objectOf(toolConfig ?? tool_config) ?? {};
  return flags.some((name) => settings[name] === true);
}

/** The settings of a request to a model that runs no tool itself. */
export function withoutFlag(settings: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(settings).filter(([name]) => !flags.includes(name as (typeof flags)[number])),
  );
}

/** A call with its result, in the form of those of the vendor's own tools. */
export function stepParts(
  { id, name, output, isError, found, files, ...use }: ToolDone,
  offered: Offered,
): JsonObject[] {
  const query = found?.query ?? files?.query;
  const search = files === undefined ? 'GOOGLE_SEARCH_WEB' : filesType;
  const of = { id: mark + id, toolType: query === undefined ? 'TOOL_TYPE_UNSPECIFIED' : search };
  const server = offered.find(name)?.wanted.label ?? '';
  const plain = { server, name, arguments: tryParse(use.arguments) ?? {} };
  const response = isError ? { error: output } : { result: output };
  return [
    { toolCall: { ...of, args: query === undefined ? plain : { queries: [query] } } },
    { toolResponse: { ...of, response } },
  ];
}

interface Step {
  readonly role: 'model' | 'user';
  readonly part: JsonObject;
}

/** Steps of earlier runs are calls of functions, and results from the user. */
export function readSteps(contents: readonly unknown[]): unknown[] {
  const names = new Map<string, string>();
  return contents.flatMap((content): unknown[] => {
    const parts = isObject(content) ? listOf(content['parts']) : [];
    const steps = parts.map((part) => (isObject(part) ? stepIn(part, names) : undefined));
    if (!isObject(content) || steps.every((step) => step === undefined)) return [content];
    const turns: { role: unknown; parts: unknown[] }[] = [];
    for (const [index, part] of parts.entries()) {
      const role = steps[index]?.role ?? content['role'];
      if (turns.at(-1)?.role !== role) turns.push({ role, parts: [] });
      turns.at(-1)!.parts.push(steps[index]?.part ?? part);
    }
    return turns;
  });
}

/** undefined: a part of another kind, or a vendor's own. */
function stepIn({ toolCall, toolResponse }: JsonObject, names: Map<string, string>): Step | undefined {
  const step = objectOf(toolCall ?? toolResponse) ?? {};
  const { id } = step;
  if (typeof id !== 'string' || !id.startsWith(mark)) return undefined;
  if (toolCall === undefined) {
    const name = names.get(id) ?? searchNameOf(step);
    return { role: 'user', part: { functionResponse: { id, name, response: objectOf(step['response']) ?? {} } } };
  }
  const given = objectOf(step['args']) ?? {};
  const { name } = given;
  names.set(id, typeof name === 'string' ? name : searchNameOf(step));
  const args =
    typeof name === 'string' ? (objectOf(given['arguments']) ?? {}) : { query: listOf(given['queries'])[0] ?? '' };
  return { role: 'model', part: { functionCall: { id, name: names.get(id), args } } };
}

const searchNameOf = ({ toolType }: JsonObject): string => (toolType === filesType ? filesName : searchName);
