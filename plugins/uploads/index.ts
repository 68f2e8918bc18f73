/** `/v1/files`: files that clients upload, in the protocols that have such an address; kept by the gateway for the account. */
import { definePlugin, type Endpoint, type Exchange, type Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { type UploadedFiles, uploadedFiles } from '../common/domain/stored-files.ts';
import { dialectOf, jsonAnswer, renderError } from '../common/kit/dialects.ts';
import { readUploadForm } from './form.ts';
import { shapeOf } from './shapes.ts';

/** A large file on a slow line. */
const uploadTimeoutMs = 3_600_000;

export default definePlugin({
  name: 'uploads',
  config: z.strictObject({}),
  services: { requires: [uploadedFiles] },
  requires: [caller],
  setup: (host) => ({ endpoints: endpointsOf(host), pathPrefixes: ['/v1'] }),
});

const common = {
  renderError: (error, exchange) => renderError(error, dialectOf(exchange.request), exchange.id),
} satisfies Partial<Endpoint>;
const reading = { ...common, method: 'GET', operation: 'files', body: 'none' } satisfies Partial<Endpoint>;

function endpointsOf(host: Host): Endpoint[] {
  const files = () => host.get(uploadedFiles);
  return [
    {
      ...common,
      method: 'POST',
      path: '/v1/files',
      operation: 'uploads',
      describes: [{ summary: 'Uploads a file.', body: { types: ['multipart/form-data'], required: ['file'] } }],
      body: 'stream',
      timeoutMs: uploadTimeoutMs,
      handle: (exchange) => upload(exchange, files()),
    },
    {
      ...reading,
      path: '/v1/files',
      describes: [{ summary: 'Lists the files of the account.', query: listParameters }],
      handle: (exchange) => list(exchange, files()),
    },
    {
      ...reading,
      path: '/v1/files/:file_id',
      describes: [{ summary: 'Describes a file.' }],
      handle: (exchange) => describe(exchange, files()),
    },
    {
      ...reading,
      method: 'DELETE',
      path: '/v1/files/:file_id',
      describes: [{ summary: 'Deletes a file.' }],
      handle: (exchange) => remove(exchange, files()),
    },
    {
      ...reading,
      // Of other ids the address is signed, and needs no key.
      path: '/v1/files/:file_id(^file-[0-9a-z]+$)/content',
      timeoutMs: uploadTimeoutMs,
      handle: (exchange) => files().answer(accountOf(exchange), idOf(exchange), exchange),
    },
  ];
}

const listParameters = {
  after: 'Id of the file behind which the page begins.',
  limit: 'Files of a page.',
  order: '"asc" or "desc", by the time of the upload.',
  purpose: 'Only files of this purpose.',
};

const accountOf = (exchange: Exchange) => exchange.get(caller).accountId;
const idOf = ({ request }: Exchange) => request.params['file_id'] ?? '';
const shapeFor = ({ request }: Exchange) => shapeOf(dialectOf(request));
const answer = (value: object): Answer => jsonAnswer(JSON.stringify(value));

async function upload(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  const accountId = accountOf(exchange);
  const shape = shapeFor(exchange);
  const form = await readUploadForm(exchange.request, (body) => files.receive(accountId, body));
  try {
    return answer(shape.one(await files.keep(accountId, form.received, shape.details(form))));
  } finally {
    await form.received.discard();
  }
}

async function list(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  const shape = shapeFor(exchange);
  const found = await files.list(accountOf(exchange), shape.query(exchange.request.query));
  return answer(shape.list(found.files, found.more));
}

async function describe(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  const file = await files.find(accountOf(exchange), idOf(exchange));
  if (file === undefined) throw noSuchFile();
  return answer(shapeFor(exchange).one(file));
}

async function remove(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  if (!(await files.remove(accountOf(exchange), idOf(exchange)))) throw noSuchFile();
  return answer(shapeFor(exchange).deleted(idOf(exchange)));
}

/** The same for ids that never were, that are gone, and that belong to others. */
function noSuchFile(): GatewayError {
  return new GatewayError('not_found', 'There is no such file.', { code: 'file_not_found', shouldRetry: false });
}
