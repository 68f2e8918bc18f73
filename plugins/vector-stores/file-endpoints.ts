/** The addresses of files in a vector store, and of batches of them. */
import type { Endpoint, Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import {
  accountOf,
  type EndpointTools,
  filesOf,
  json,
  newId,
  noRoom,
  noSuchFile,
  parameter,
  storeOf,
  usedStore,
} from './access.ts';
import { attachOrder, attributesOrder, batchOrder } from './asked.ts';
import { common, jsonBody, keeping, storePath } from './endpoints.ts';
import { listAnswer, listParameters, pageQueryOf } from './pages.ts';
import { batchShape, type FileBatch, type FileState, fileShape, type Store, type StoreFile } from './shapes.ts';

const filesPath = `${storePath}/files`;
const filePath = `${filesPath}/:file_id`;
const batchesPath = `${storePath}/file_batches`;
const batchPath = `${batchesPath}/:batch_id`;
const fileParameters = { ...listParameters, filter: 'Files in this state: in_progress, completed, failed, cancelled.' };

export function fileEndpoints(tools: EndpointTools): Endpoint[] {
  return [
    {
      ...keeping,
      ...{ method: 'POST', path: filesPath, body: 'json' },
      describes: [{ summary: 'Puts an uploaded file into a vector store.', body: jsonBody('file_id') }],
      handle: (exchange) => attach(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: filesPath },
      describes: [{ summary: 'Lists the files of a vector store.', query: fileParameters }],
      handle: async (exchange) => list(tools, exchange, await storeOf(tools, exchange)),
    },
    {
      ...common,
      ...{ method: 'GET', path: filePath },
      describes: [{ summary: 'Describes a file of a vector store.' }],
      handle: async (exchange) => polled(fileShape(await fileOf(tools, exchange))),
    },
    {
      ...keeping,
      ...{ method: 'POST', path: filePath, body: 'json' },
      describes: [{ summary: 'Changes the attributes of a file in a vector store.', body: jsonBody('attributes') }],
      handle: (exchange) => change(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'DELETE', path: filePath },
      describes: [{ summary: 'Takes a file out of a vector store; the uploaded file stays.' }],
      handle: (exchange) => detach(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: `${filePath}/content` },
      describes: [{ summary: 'Returns the text that was read of a file.' }],
      handle: (exchange) => content(tools, exchange),
    },
  ];
}

export function batchEndpoints(tools: EndpointTools): Endpoint[] {
  return [
    {
      ...keeping,
      ...{ method: 'POST', path: batchesPath, body: 'json' },
      describes: [{ summary: 'Puts several uploaded files into a vector store.', body: jsonBody() }],
      handle: (exchange) => createBatch(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: batchPath },
      describes: [{ summary: 'Describes a batch of files of a vector store.' }],
      handle: async (exchange) => polled(batchShape(await batchOf(tools, exchange))),
    },
    {
      ...common,
      ...{ method: 'POST', path: `${batchPath}/cancel` },
      describes: [{ summary: 'Cancels the files of a batch that are not done.' }],
      handle: (exchange) => cancel(tools, exchange),
    },
    {
      ...common,
      ...{ method: 'GET', path: `${batchPath}/files` },
      describes: [{ summary: 'Lists the files of a batch.', query: fileParameters }],
      async handle(exchange) {
        const { id } = await batchOf(tools, exchange);
        return list(tools, exchange, await storeOf(tools, exchange), id);
      },
    },
  ];
}

/** How long official clients wait between two looks at what is not done; they wait ten times as long if nothing is said. */
const pollAfterMs = '500';

function polled(shape: { readonly status: string }): Answer {
  const answer = json(shape);
  if (shape.status === 'in_progress') answer.headers['openai-poll-after-ms'] = pollAfterMs;
  return answer;
}

async function attach(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const order = attachOrder(exchange.request);
  const store = await usedStore(tools, exchange);
  const put = await filesOf(tools, exchange, store.id, [order]);
  const accountId = accountOf(exchange);
  if (!(await tools.files.add(accountId, put, { most: tools.config.account.files }))) throw tooMany(tools);
  await tools.stores.touch(accountId, store.id);
  tools.wake();
  const file = await tools.files.find(accountId, store.id, put[0]!.fileId);
  if (file === undefined) throw noSuchFile();
  return polled(fileShape(file));
}

async function list({ files }: EndpointTools, exchange: Exchange, { id }: Store, batchId?: string): Promise<Answer> {
  const page = pageQueryOf(exchange.request.query);
  const state = exchange.request.query.get('filter') ?? undefined;
  if (state !== undefined && !['in_progress', 'completed', 'failed', 'cancelled'].includes(state))
    throw new GatewayError('invalid_request', '"filter" is "in_progress", "completed", "failed" or "cancelled".', {
      field: 'filter',
      shouldRetry: false,
    });
  const found = await files.list(accountOf(exchange), id, page, { batchId, state: state as FileState | undefined });
  return listAnswer(found, page, ({ fileId }) => fileId, fileShape);
}

async function fileOf(tools: EndpointTools, exchange: Exchange): Promise<StoreFile> {
  const { id } = await storeOf(tools, exchange);
  const file = await tools.files.find(accountOf(exchange), id, parameter(exchange, 'file_id'));
  if (file === undefined) throw noSuchFile();
  return file;
}

async function change(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const attributes = attributesOrder(exchange.request);
  const { storeId, fileId } = await fileOf(tools, exchange);
  await tools.files.setAttributes(accountOf(exchange), storeId, fileId, attributes);
  return polled(fileShape(await fileOf(tools, exchange)));
}

async function detach(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { id: storeId } = await storeOf(tools, exchange);
  const id = parameter(exchange, 'file_id');
  if (!(await tools.files.remove(accountOf(exchange), storeId, id))) throw noSuchFile();
  return json({ id, object: 'vector_store.file.deleted', deleted: true });
}

async function content(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { id, fileId, name, attributes } = await fileOf(tools, exchange);
  const texts = await tools.chunks.contentOf(accountOf(exchange), id);
  const data = texts.map((text) => ({ type: 'text', text }));
  const of = { file_id: fileId, filename: name, attributes };
  return json({ object: 'vector_store.file_content.page', ...of, data, has_more: false, next_page: null });
}

async function createBatch(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const orders = batchOrder(exchange.request);
  const store = await usedStore(tools, exchange);
  const put = await filesOf(tools, exchange, store.id, orders);
  const accountId = accountOf(exchange);
  const batchId = newId(tools, 'vsfb_');
  const first = (runner: Parameters<typeof tools.stores.createBatch>[3]) =>
    tools.stores.createBatch(accountId, store.id, batchId, runner);
  if (!(await tools.files.add(accountId, put, { most: tools.config.account.files, batchId, first })))
    throw tooMany(tools);
  await tools.stores.touch(accountId, store.id);
  tools.wake();
  return polled(batchShape((await tools.stores.findBatch(accountId, store.id, batchId))!));
}

async function batchOf({ stores }: EndpointTools, exchange: Exchange): Promise<FileBatch> {
  const [storeId, id] = [parameter(exchange, 'vector_store_id'), parameter(exchange, 'batch_id')];
  const batch = await stores.findBatch(accountOf(exchange), storeId, id);
  if (batch !== undefined) return batch;
  throw new GatewayError('not_found', 'There is no such batch of files.', {
    code: 'batch_not_found',
    shouldRetry: false,
  });
}

async function cancel(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { id, storeId } = await batchOf(tools, exchange);
  const accountId = accountOf(exchange);
  await tools.stores.cancelBatch(accountId, storeId, id);
  await tools.files.cancelBatch(accountId, id);
  return polled(batchShape(await batchOf(tools, exchange)));
}

function tooMany({ config }: EndpointTools): GatewayError {
  return noRoom(`An account has at most ${config.account.files} files in vector stores.`);
}
