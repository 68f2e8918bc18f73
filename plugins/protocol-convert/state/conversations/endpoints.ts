/** The endpoints of conversations: create, get, update, delete, and the same of their items. */
import type { Endpoint, Exchange } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import { isObject, type JsonObject, textOf } from '../../../../core/json/json.ts';
import { readBody } from '../../../../core/json/request-body.ts';
import { caller } from '../../../common/domain/accounts.ts';
import { jsonAnswer } from '../../../common/kit/dialects.ts';
import { metadataIn } from '../../../common/kit/forms/metadata.ts';
import type { Protocol } from '../../../common/wire/protocols.ts';
import { invalid } from '../../request/checks.ts';
import { listPage } from '../listing.ts';
import type { Conversation } from './record.ts';
import type { ConversationStore } from './store.ts';

/** Items of one request, by OpenAI's rule. */
const mostItems = 20;
const singleMembers = new Set(['items', 'metadata']);
const json = { types: ['application/json'] };
const includeParameter = {
  include: 'What to list besides: reasoning.encrypted_content.',
} as const;
/** What other members of items clients may ask for: they are listed anyway, where an answer had them. */
const includable = new Set([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
]);

/** Rate-limited like other calls of the protocol, and free: no inference runs. */
export function conversationEndpoints(store: ConversationStore, protocol: Protocol): Endpoint[] {
  const common = {
    operation: 'responses',
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  } satisfies Partial<Endpoint>;
  const post = { ...common, method: 'POST', body: 'json' } satisfies Partial<Endpoint>;
  const get = { ...common, method: 'GET', body: 'none' } satisfies Partial<Endpoint>;
  const path = '/v1/conversations/:conversation_id';
  return [
    {
      ...post,
      keeps: 'conversations',
      path: '/v1/conversations',
      describes: [{ summary: 'Begins a conversation.', body: json }],
      handle: (exchange) => create(exchange, store),
    },
    {
      ...get,
      path,
      describes: [{ summary: 'Gets a conversation.' }],
      handle: async (exchange) => shown(await named(exchange, store)),
    },
    {
      ...post,
      keeps: 'conversations',
      path,
      describes: [{ summary: 'Changes the metadata of a conversation.', body: { ...json, required: ['metadata'] } }],
      handle: (exchange) => update(exchange, store),
    },
    {
      ...get,
      method: 'DELETE',
      path,
      describes: [{ summary: 'Deletes a conversation with its items.' }],
      async handle(exchange) {
        const conversation = await named(exchange, store);
        await store.delete(conversation);
        return answer({ id: conversation.id, object: 'conversation.deleted', deleted: true });
      },
    },
    ...itemEndpoints(store, `${path}/items`, { get, post }),
  ];
}

function itemEndpoints(
  store: ConversationStore,
  path: string,
  { get, post }: Record<'get' | 'post', Omit<Endpoint, 'path'>>,
): Endpoint[] {
  const one = `${path}/:item_id`;
  const list = { after: 'The item to begin behind.', limit: 'At most 100; by default 20.', order: 'asc or desc.' };
  return [
    {
      ...get,
      path,
      describes: [{ summary: 'Lists the items of a conversation.', query: { ...list, ...includeParameter } }],
      handle: (exchange) => listItems(exchange, store),
    },
    {
      ...post,
      keeps: 'conversations',
      path,
      describes: [{ summary: 'Adds items to a conversation.', body: { ...json, required: ['items'] } }],
      handle: (exchange) => addItems(exchange, store),
    },
    {
      ...get,
      path: one,
      describes: [{ summary: 'Gets an item of a conversation.', query: includeParameter }],
      handle: (exchange) => getItem(exchange, store),
    },
    {
      ...get,
      method: 'DELETE',
      path: one,
      describes: [{ summary: 'Deletes an item of a conversation.' }],
      async handle(exchange) {
        const conversation = await named(exchange, store);
        const itemId = exchange.request.params['item_id'] ?? '';
        if (!(await store.deleteItem(conversation, itemId))) throw itemNotFound(itemId, conversation);
        return shown(conversation);
      },
    },
  ];
}

async function create(exchange: Exchange, store: ConversationStore): Promise<Answer> {
  const body = bodyOf(exchange);
  const items = itemsIn(body['items'] ?? []);
  const metadata = JSON.stringify(metadataIn(body) ?? {});
  return shown(await store.create(accountOf(exchange), metadata, items, exchange.id));
}

async function update(exchange: Exchange, store: ConversationStore): Promise<Answer> {
  const conversation = await named(exchange, store);
  const body = bodyOf(exchange);
  if (body['metadata'] === undefined) throw invalid('The field "metadata" is missing.', 'metadata');
  return shown(await store.setMetadata(conversation, JSON.stringify(metadataIn(body) ?? {})));
}

async function listItems(exchange: Exchange, store: ConversationStore): Promise<Answer> {
  const { query } = exchange.request;
  const show = shownWith(query);
  const items = await store.items(await named(exchange, store));
  return answer(listPage(items.map(show), query));
}

async function addItems(exchange: Exchange, store: ConversationStore): Promise<Answer> {
  const show = shownWith(exchange.request.query);
  const conversation = await named(exchange, store);
  const body = bodyOf(exchange);
  if (body['items'] === undefined) throw invalid('The field "items" is missing.', 'items');
  const added = await store.add(conversation, itemsIn(body['items']), exchange.id);
  return answer(listPage(added.map(show), new URLSearchParams({ order: 'asc' })));
}

async function getItem(exchange: Exchange, store: ConversationStore): Promise<Answer> {
  const show = shownWith(exchange.request.query);
  const conversation = await named(exchange, store);
  const id = exchange.request.params['item_id'] ?? '';
  const item = (await store.items(conversation)).find((one) => one['id'] === id);
  if (item === undefined) throw itemNotFound(id, conversation);
  return answer(show(item));
}

function named(exchange: Exchange, store: ConversationStore): Promise<Conversation> {
  return store.get(accountOf(exchange), exchange.request.params['conversation_id'] ?? '');
}

function bodyOf({ request }: Exchange): JsonObject {
  return request.body.length === 0 ? {} : readBody(request.body, singleMembers).json;
}

/** Throws invalid_request that names the item. */
function itemsIn(items: unknown): readonly unknown[] {
  if (!Array.isArray(items)) throw invalid('The field "items" must be a list.', 'items');
  if (items.length > mostItems) throw invalid(`At most ${mostItems} items are taken at once.`, 'items');
  for (const [index, item] of items.entries()) checkItem(item, `items[${index}]`);
  return items;
}

function checkItem(item: unknown, field: string): void {
  if (!isObject(item)) throw invalid(`"${field}" must be an object.`, field);
  const type = item['type'] ?? 'message';
  if (typeof type !== 'string') throw invalid(`"${field}.type" must be a string.`, `${field}.type`);
  if (type === 'item_reference' || type === 'compaction_trigger')
    throw invalid(`An item of the type "${type}" cannot be kept.`, `${field}.type`);
  if (type !== 'message') return;
  if (typeof item['role'] !== 'string') throw invalid(`"${field}.role" must be a string.`, `${field}.role`);
  if (typeof item['content'] !== 'string' && !Array.isArray(item['content']))
    throw invalid(`"${field}.content" must be a string or a list.`, `${field}.content`);
}

/** An item as a client gets it: encrypted reasoning is shown where it is asked for. */
function shownWith(query: URLSearchParams): (item: JsonObject) => JsonObject {
  const included = [...query.getAll('include'), ...query.getAll('include[]')];
  const unknown = included.find((name) => !includable.has(name));
  if (unknown !== undefined)
    throw invalid(`The parameter "include" does not know "${unknown.slice(0, 100)}".`, 'include');
  const isEncrypted = included.includes('reasoning.encrypted_content');
  return (item) => {
    if (isEncrypted || textOf(item['encrypted_content']) === undefined || item['type'] !== 'reasoning') return item;
    const { encrypted_content: _hidden, ...rest } = item;
    return rest;
  };
}

function shown({ id, createdAt, metadata }: Conversation): Answer {
  const created_at = Math.floor(createdAt / 1000);
  return answer({ id, object: 'conversation', created_at, metadata: JSON.parse(metadata) });
}

function answer(body: object): Answer {
  return jsonAnswer(JSON.stringify(body));
}

function accountOf(exchange: Exchange): string {
  return exchange.find(caller)?.accountId ?? '';
}

function itemNotFound(id: string, conversation: Conversation): GatewayError {
  const message = `Item with id '${id.slice(0, 200)}' not found in conversation '${conversation.id}'.`;
  return new GatewayError('not_found', message);
}
