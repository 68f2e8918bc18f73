/** What a request asks for, and what it costs: read before any plugin that counts or charges it. */
import { defineContextKey, type Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import { readBody } from '../../core/json/request-body.ts';
import { caller } from '../common/domain/accounts.ts';
import { type Call, call } from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import { plan } from '../common/domain/plans.ts';
import { flatBook } from '../common/domain/prices.ts';
import { whoIs } from './connect/owner.ts';
import { Unavailable } from './errors.ts';
import { type Allowed, View } from './names.ts';
import type { FoundTool, Servers } from './servers.ts';

const toolsHeader = 'x-gateway-tools';
const mostWords = 64;
const longestHeader = 4_096;

/** A request of the protocol. */
export interface Asked {
  readonly message: JsonObject;
  readonly servers: Servers;
  readonly view: View;
  /** The tool that is called; absent: none is, or none that the request may use. */
  readonly found?: FoundTool | undefined;
  /** The server of the called tool cannot be reached. */
  readonly unavailable?: Unavailable | undefined;
}

export const asked = defineContextKey<Asked>('tool request');

const single = new Set(['jsonrpc', 'id', 'method', 'params']);
/** Names of requests in rows and metrics: no client can add to them. */
const methods = new Set([
  ...['initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'resources/list', 'resources/read'],
  ...['resources/templates/list', 'prompts/list', 'prompts/get', 'completion/complete'],
  ...['notifications/initialized', 'notifications/cancelled'],
]);

export async function openRequest(exchange: Exchange, servers: Servers): Promise<void> {
  const { bundle } = exchange.request.params;
  if (bundle !== undefined && !Object.hasOwn(servers.config.bundles, bundle))
    throw new GatewayError('not_found', 'There is no bundle of tools at this address.', { code: 'unknown_bundle' });
  const message = readBody(exchange.request.body, single).json;
  const { method } = message;
  if (method === 'subscriptions/listen')
    throw new GatewayError('not_found', 'Changes of lists are not announced here.', { field: 'method' });
  const view = viewOf(exchange, servers, bundle);
  const request: Asked = { message, servers, view };
  const found = method === 'tools/call' ? await findTool(request) : {};
  exchange.set(asked, { ...request, ...found });
  const name = typeof method === 'string' && methods.has(method) ? method : 'other';
  exchange.set(
    call,
    found.found === undefined ? { ...plainCall, model: name } : { ...toolCall, model: found.found.entry.id },
  );
  exchange.set(model, found.found?.entry ?? { ...freeEntry, id: name, displayName: name });
}

async function findTool(request: Asked): Promise<Pick<Asked, 'found' | 'unavailable'>> {
  const { message, servers, view } = request;
  const name = isObject(message['params']) ? message['params']['name'] : undefined;
  if (typeof name !== 'string') return {};
  try {
    return { found: await servers.findTool(name, view) };
  } catch (error) {
    if (error instanceof Unavailable) return { unavailable: error };
    throw error;
  }
}

/** A key or a plan that is bound to models has the tools that are named among them, and no others. */
function viewOf(exchange: Exchange, servers: Servers, bundle: string | undefined): View {
  const header = exchange.request.headers[toolsHeader];
  const lists = [
    bundle === undefined ? undefined : [bundle],
    header === undefined ? undefined : wordsOf(header),
    exchange.find(caller)?.models,
    exchange.find(plan)?.models,
  ];
  const allowed = lists.flatMap((list): Allowed[] => (list === undefined ? [] : [servers.allowed(list)]));
  return new View(allowed, whoIs(exchange.get(caller)));
}

function wordsOf(header: string): string[] {
  const words = header
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (header.length > longestHeader || words.length > mostWords)
    throw new GatewayError('invalid_request', `The header ${toolsHeader} names at most ${mostWords} tools.`, {
      field: toolsHeader,
    });
  return words;
}

const plainCall: Omit<Call, 'model'> = {
  protocol: 'mcp',
  stream: false,
  billable: false,
  inputTokens: 0,
  maxOutputTokens: 0,
  choices: 1,
  counted: {},
};
const toolCall: Omit<Call, 'model'> = { ...plainCall, billable: true, counted: { call: 1 } };

const freeEntry = {
  ownedBy: '',
  created: 0,
  kind: 'chat',
  targets: [],
  contextTokens: undefined,
  maxOutputTokens: 0,
  prices: flatBook({}, 'tools'),
} as const;
