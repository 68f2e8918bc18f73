/** The addresses of vector stores: created, changed, listed, deleted and searched. */
import type { Endpoint, Exchange } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import {
  accountOf,
  type EndpointTools,
  filesOf,
  json,
  newId,
  noRoom,
  noSuchStore,
  storeOf,
  storePrefix,
  usedStore,
} from './access.ts';
import { changeOrder, createOrder, searchOrder } from './asked.ts';
import { embed } from './embed.ts';
import { listAnswer, listParameters, pageQueryOf } from './pages.ts';
import { storeShape } from './shapes.ts';

export const common = {
  operation: 'vector-stores',
  body: 'none',
  renderError: envelopeAnswer,
} satisfies Partial<Endpoint>;
/** Requests that leave something here. */
export const keeping = { ...common, keeps: 'vector stores' } satisfies Partial<Endpoint>;
export const jsonBody = (...required: readonly string[]) => ({ types: ['application/json'], required });
const storesPath = '/v1/vector_stores';
export const storePath = `${storesPath}/:vector_store_id`;

export function storeEndpoints(tools: EndpointTools): Endpoint[] {
  const one = async (exchange: Exchange) => json(storeShape(await storeOf(tools, exchange)));
  return [
    {
      ...keeping,
      ...{ method: 'POST', path: storesPath, body: 'json' },
      describes: [{ summary: 'Creates a vector store, of files that are read in the background.', body: jsonBody() }],
      handle: (exchange) => create(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: storesPath },
      describes: [{ summary: 'Lists the vector stores.', query: listParameters }],
      handle: (exchange) => list(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: storePath },
      describes: [{ summary: 'Describes a vector store.' }],
      handle: one,
    },
    {
      ...keeping,
      ...{ method: 'POST', path: storePath, body: 'json' },
      describes: [{ summary: 'Changes a vector store.', body: jsonBody() }],
      async handle(exchange) {
        const terms = changeOrder(exchange.request);
        const { id } = await usedStore(tools, exchange);
        await tools.stores.change(accountOf(exchange), id, terms);
        return one(exchange);
      },
    },
    {
      ...common,
      ...{ method: 'DELETE', path: storePath },
      describes: [{ summary: 'Deletes a vector store; its files stay.' }],
      handle: (exchange) => remove(tools, exchange),
    },
    {
      ...common,
      // The call of the model that it makes is limited.
      operation: 'vector-store-search',
      ...{ method: 'POST', path: `${storePath}/search`, body: 'json' },
      describes: [
        {
          summary: 'Finds the pieces of text that are nearest to a query; the vector of the query is paid.',
          body: jsonBody('query'),
        },
      ],
      handle: (exchange) => search(tools, exchange),
    },
  ];
}

async function create(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { terms, files: orders } = createOrder(exchange.request);
  const { stores, files, config, wake } = tools;
  const accountId = accountOf(exchange);
  const id = newId(tools, storePrefix);
  const put = await filesOf(tools, exchange, id, orders);
  const { model, dimensions, account } = config;
  if (!(await stores.create(accountId, { ...terms, id, model, dimensions }, account.stores)))
    throw noRoom(`An account has at most ${account.stores} vector stores.`);
  if (put.length > 0 && !(await files.add(accountId, put, { most: account.files }))) {
    await stores.remove(accountId, id);
    throw noRoom(`An account has at most ${account.files} files in vector stores.`);
  }
  wake();
  return json(storeShape((await stores.find(accountId, id))!));
}

async function list({ stores }: EndpointTools, exchange: Exchange): Promise<Answer> {
  const page = pageQueryOf(exchange.request.query);
  return listAnswer(await stores.list(accountOf(exchange), page), page, ({ id }) => id, storeShape);
}

async function remove(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const id = exchange.request.params['vector_store_id'] ?? '';
  if (!(await tools.stores.remove(accountOf(exchange), id))) throw noSuchStore();
  return json({ id, object: 'vector_store.deleted', deleted: true });
}

async function search(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const order = searchOrder(exchange.request);
  const store = await usedStore(tools, exchange);
  const { host, searches } = tools;
  const { remoteAddress, headers: given } = exchange.request;
  const by = exchange.get(caller);
  const tags = given['x-gateway-tags'];
  const headers = tags === undefined ? {} : { 'x-gateway-tags': tags };
  return searches.within(by.accountId, async () => {
    const texts = order.queries;
    const embedded = await embed(host, { store, texts, by, remoteAddress, headers, signal: exchange.signal });
    if (!('vectors' in embedded)) return refusal(embedded);
    const hits = await searches.find(by.accountId, [{ store, vectors: embedded.vectors }], order);
    const data = hits.map(({ fileId, name, score, attributes, text }) => ({
      ...{ file_id: fileId, filename: name, score, attributes, content: [{ type: 'text', text }] },
    }));
    return json({
      object: 'vector_store.search_results.page',
      search_query: texts,
      data,
      has_more: false,
      next_page: null,
    });
  });
}

/** The refusal of the model's call is that of the search. */
function refusal({
  answer: { status, headers },
  body,
}: Exclude<Awaited<ReturnType<typeof embed>>, { vectors: unknown }>): Answer {
  const { 'content-length': _length, 'x-request-id': _id, ...kept } = headers;
  return { status: status === 200 ? 502 : status, headers: kept, body };
}
