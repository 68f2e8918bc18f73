/** The protocols in which clients ask for tools of the gateway, by the operations of their endpoints. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import type { AskedStores } from '../../common/domain/stored-files.ts';
import { filesTool, geminiFilesTool } from '../files/asked.ts';
import { geminiSearchTool, messagesSearch, responsesSearch, type SearchMember, searchTool } from '../search/asked.ts';
import type { Opening, Talk } from '../talk.ts';
import { type Here, invalid, type Wanted, wantedTools } from '../wanted.ts';
import { ChatTalk } from './chat.ts';
import { functionNames, GeminiTalk, wantedServers as geminiServers } from './gemini.ts';
import { MessagesTalk, wantedServers as messagesServers } from './messages.ts';
import { hasSearched } from './messages-search.ts';
import { ResponsesTalk } from './responses.ts';

export interface Dialect {
  /** Servers of the gateway that the request names. Throws invalid_request. */
  wanted(json: JsonObject, here: Here): readonly Wanted[];
  /** The member that asks for searches of the web. */
  search(json: JsonObject): SearchMember | undefined;
  /** The member that asks for searches of files in stores of the gateway; absent: the protocol has none. Throws invalid_request. */
  files?(json: JsonObject, isOwn: (id: string) => boolean): AskedStores | undefined;
  /** The conversation has searches of the gateway, which no vendor reads. */
  hasSearched?(json: JsonObject): boolean;
  /** Names of the client's own functions. */
  functions(json: JsonObject): ReadonlySet<string>;
  begin(opening: Opening): Talk;
  /** Members of the query by which a turn's stream is one of server-sent events. */
  readonly query?: Readonly<Record<string, string>>;
}

const responses: Dialect = {
  wanted: ({ tools }, here) => wantedTools(tools, here, 'always'),
  search: ({ tools }) => {
    const found = searchTool(tools, responsesSearch);
    // The client wants a vendor's own copy of the web, or no search.
    return found?.settings['external_web_access'] === false ? undefined : found;
  },
  files: ({ tools }, isOwn) => filesTool(tools, isOwn),
  functions: ({ tools }) => namesOf(tools, (tool) => tool['name']),
  begin: (opening) => new ResponsesTalk(opening),
};

const chat: Dialect = {
  // The protocol has no way to ask for approval.
  wanted: ({ tools }, here) => {
    const servers = wantedTools(tools, here, 'never');
    const asking = servers.find(({ asks }) => asks(''));
    const field = asking?.field.replace('server_url', 'require_approval');
    if (field !== undefined) throw invalid('Chat completions have no approvals: say "never".', field);
    return servers;
  },
  search: ({ web_search_options: options }) => {
    const settings = objectOf(options);
    return settings && { settings, field: 'web_search_options' };
  },
  files: ({ tools }, isOwn) => filesTool(tools, isOwn),
  functions: ({ tools }) =>
    namesOf(tools, (tool) => (isObject(tool['function']) ? tool['function']['name'] : undefined)),
  begin: (opening) => new ChatTalk(opening),
};

const messages: Dialect = {
  wanted: messagesServers,
  search: ({ tools }) => searchTool(tools, messagesSearch),
  hasSearched: ({ messages: turns }) => hasSearched(listOf(turns)),
  functions: ({ tools }) => namesOf(tools, ({ type, name }) => (messagesSearch.test(String(type)) ? undefined : name)),
  begin: (opening) => new MessagesTalk(opening),
};

const gemini: Dialect = {
  wanted: geminiServers,
  search: ({ tools }) => geminiSearchTool(tools),
  files: ({ tools }, isOwn) => geminiFilesTool(tools, isOwn),
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
