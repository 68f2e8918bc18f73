/** A client's own search for tools (`tool_search`), which other protocols get as a function: both directions. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import { parseExact } from '../../encoding/exact-json.ts';

/** The search is a function of this name and namespace. No client can name an empty namespace, so no tool of a client is this one. */
export const toolSearch = { name: 'tool_search', namespace: '' } as const;

/** Whether the client runs it; otherwise the vendor does, and models of other protocols have none. */
export function isClientSearch(tool: JsonObject): boolean {
  return tool['type'] === 'tool_search' && tool['execution'] === 'client';
}

/** What the model reads as the result. The tools are declared with all that is said about them, so a line each is enough here. */
export function foundText(tools: unknown): string {
  const lines = listOf(tools).flatMap((tool) => linesOf(objectOf(tool) ?? {}, ''));
  return lines.length === 0 ? 'No tools were found.' : `Tools loaded:\n${lines.join('\n')}`;
}

/** Names as the model calls them: a tool of a namespace is flattened. */
function linesOf(tool: JsonObject, prefix: string): string[] {
  const name = textOf(tool['name']);
  if (name === undefined) return [];
  const line = `- ${prefix}${name}${about(textOf(tool['description']))}`;
  if (tool['type'] !== 'namespace') return [line];
  const inner = listOf(tool['tools']).flatMap((one) => linesOf(objectOf(one) ?? {}, `${name}__`));
  return inner.length === 0 ? [] : [`${name}${about(textOf(tool['description']))}`, ...inner];
}

const longestLine = 200;

function about(description: string | undefined): string {
  const line = description?.trim().split('\n', 1)[0] ?? '';
  if (line === '') return '';
  return `: ${line.length > longestLine ? `${line.slice(0, longestLine)}…` : line}`;
}

/** The item of a call. Clients read its arguments as an object; a text that is none stays a text, which they refuse by their own words. */
export function searchCallItem(head: { readonly id: string; readonly callId: string }, input: string, status: string) {
  return {
    ...{ id: head.id, type: 'tool_search_call', status, call_id: head.callId, execution: 'client' },
    arguments: input === '' ? {} : argumentsOf(input),
  };
}

function argumentsOf(input: string): unknown {
  try {
    const parsed = parseExact(input);
    return isObject(parsed) ? parsed : input;
  } catch {
    return input;
  }
}
