/** The protocols in which clients ask for tools of the gateway, by the operations of their endpoints. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { Opening, Talk } from '../talk.ts';
import { type Wanted, wantedTools } from '../wanted.ts';
import { ResponsesTalk } from './responses.ts';

export interface Dialect {
  /** Servers of the gateway that the request names. Throws invalid_request. */
  wanted(json: JsonObject, host: string | undefined): readonly Wanted[];
  /** Names of the client's own functions. */
  functions(json: JsonObject): ReadonlySet<string>;
  begin(opening: Opening): Talk;
  /** Members of the query by which a turn's stream is one of server-sent events. */
  readonly query?: Readonly<Record<string, string>>;
}

const responses: Dialect = {
  wanted: ({ tools }, host) => wantedTools(tools, host, 'always'),
  functions: ({ tools }) => namesOf(tools, (tool) => tool['name']),
  begin: (opening) => new ResponsesTalk(opening),
};

export const dialects: ReadonlyMap<string, Dialect> = new Map([['responses', responses]]);

function namesOf(tools: unknown, name: (tool: JsonObject) => unknown): Set<string> {
  return new Set(listOf(tools).flatMap((tool) => (isObject(tool) ? [String(name(tool))] : [])));
}
