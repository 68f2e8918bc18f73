/** The protocols in which clients ask for tools of the gateway, by the operations of their endpoints. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { Opening, Talk } from '../talk.ts';
import { invalid, type Wanted, wantedTools } from '../wanted.ts';
import { ChatTalk } from './chat.ts';
import { functionNames, GeminiTalk, wantedServers as geminiServers } from './gemini.ts';
import { MessagesTalk, wantedServers as messagesServers } from './messages.ts';
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

const chat: Dialect = {
  // The protocol has no way to ask for approval.
  wanted: ({ tools }, host) => {
    const servers = wantedTools(tools, host, 'never');
    const asking = servers.find(({ asks }) => asks(''));
    const field = asking?.field.replace('server_url', 'require_approval');
    if (field !== undefined) throw invalid('Chat completions have no approvals: say "never".', field);
    return servers;
  },
  functions: ({ tools }) =>
    namesOf(tools, (tool) => (isObject(tool['function']) ? tool['function']['name'] : undefined)),
  begin: (opening) => new ChatTalk(opening),
};

const messages: Dialect = {
  wanted: messagesServers,
  functions: ({ tools }) => namesOf(tools, (tool) => tool['name']),
  begin: (opening) => new MessagesTalk(opening),
};

const gemini: Dialect = {
  wanted: geminiServers,
  functions: functionNames,
  begin: (opening) => new GeminiTalk(opening),
  query: { alt: 'sse' },
};

export const dialects: ReadonlyMap<string, Dialect> = new Map([
  ['responses', responses],
  ['chat', chat],
  ['messages', messages],
  ['generate-content', gemini],
]);

function namesOf(tools: unknown, name: (tool: JsonObject) => unknown): Set<string> {
  return new Set(listOf(tools).flatMap((tool) => (isObject(tool) ? [String(name(tool))] : [])));
}
