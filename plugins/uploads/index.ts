/** Files that clients upload, at the addresses and in the forms of three protocols; kept by the gateway for the account. */
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { z } from '../../core/contract/schema.ts';
import { caller, keyring } from '../common/domain/accounts.ts';
import { database } from '../common/domain/database.ts';
import { type UploadedFiles, uploadedFiles } from '../common/domain/stored-files.ts';
import { dialectOf, jsonAnswer, renderError } from '../common/kit/dialects.ts';
import { readUploadForm } from './form.ts';
import { uploadEndpoints, versions } from './google/endpoints.ts';
import { UploadSessions } from './google/sessions.ts';
import { partEndpoints } from './parts/endpoints.ts';
import { PartUploads } from './parts/rows.ts';
import { fileIdIn, shapeOf } from './shapes.ts';

/** A large file on a slow line. */
const uploadTimeoutMs = 3_600_000;
const cleanIntervalMs = 3_600_000;

export default definePlugin({
  name: 'uploads',
  config: z.strictObject({}),
  services: { requires: [uploadedFiles, database, keyring] },
  requires: [caller],
  async setup(host): Promise<PluginInstance> {
    const store = host.get(database);
    await store.migrate('uploads', new URL('./migrations/', import.meta.url));
    const sessions = new UploadSessions(store, host.clock, host.random);
    const inParts = new PartUploads(store, host.clock, host.random);
    return {
      endpoints: [
        ...endpointsOf(host),
        ...uploadEndpoints(host, sessions, uploadTimeoutMs),
        ...partEndpoints(host, inParts, uploadTimeoutMs),
      ],
      addresses: { pathPrefixes: ['/v1', '/v1beta', '/v1alpha'] },
      lifecycle: {
        start() {
          host.every(cleanIntervalMs, 'forget old uploads', async () => {
            await sessions.deleteExpired();
            await inParts.deleteExpired();
          });
        },
      },
    };
  },
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
      keeps: 'files',
      describes: [{ summary: 'Uploads a file.', body: { types: ['multipart/form-data'], required: ['file'] } }],
      body: 'stream',
      timeoutMs: uploadTimeoutMs,
      handle: (exchange) => upload(exchange, files()),
    },
    ...versions.flatMap((version) => readingEndpoints(version, files)),
    {
      ...reading,
      // Files with other ids have a signed address, which needs no key.
      path: '/v1/files/:file_id(^file-[0-9a-z]+$)/content',
      timeoutMs: uploadTimeoutMs,
      handle: (exchange) => files().answer(accountOf(exchange), idOf(exchange), exchange),
    },
    ...versions.map(
      (version): Endpoint => ({
        ...reading,
        path: `/download/${version}/files/:file_id`,
        describes: version === 'v1beta' ? [{ summary: 'Sends a file.', answers: ['application/octet-stream'] }] : [],
        timeoutMs: uploadTimeoutMs,
        handle: (exchange) => files().answer(accountOf(exchange), idOf(exchange), exchange),
      }),
    ),
  ];
}

function readingEndpoints(version: (typeof versions)[number], files: () => UploadedFiles): Endpoint[] {
  const path = `/${version}/files`;
  const described = version !== 'v1alpha';
  const query = version === 'v1' ? listParameters : googleListParameters;
  return [
    {
      ...reading,
      path,
      describes: described ? [{ summary: 'Lists the files of the account.', query }] : [],
      handle: (exchange) => list(exchange, files()),
    },
    {
      ...reading,
      path: `${path}/:file_id`,
      // The file itself, where its name ends in a method.
      timeoutMs: uploadTimeoutMs,
      describes: described ? [{ summary: 'Describes a file; as …:download, sends it.' }] : [],
      handle: (exchange) => describe(exchange, files()),
    },
    {
      ...reading,
      method: 'DELETE',
      path: `${path}/:file_id`,
      describes: described ? [{ summary: 'Deletes a file.' }] : [],
      handle: (exchange) => remove(exchange, files()),
    },
  ];
}

const listParameters = {
  after: 'Id of the file behind which the page begins.',
  limit: 'Files of a page.',
  order: '"asc" or "desc", by the time of the upload.',
  purpose: 'Only files of this purpose.',
};
const googleListParameters = { pageSize: 'Files of a page.', pageToken: 'The `nextPageToken` of the page before.' };

const accountOf = (exchange: Exchange) => exchange.get(caller).accountId;
const idOf = ({ request }: Exchange) => fileIdIn(request.params['file_id'] ?? '');
const shapeFor = ({ request }: Exchange, files: UploadedFiles) =>
  shapeOf(dialectOf(request), files.origin(request.headers['host']));
const answer = (value: object): Answer => jsonAnswer(JSON.stringify(value));

async function upload(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  const accountId = accountOf(exchange);
  const shape = shapeFor(exchange, files);
  const form = await readUploadForm(exchange.request, (body) => files.receive(accountId, body));
  try {
    return answer(shape.one(await files.keep(accountId, form.received, shape.details(form))));
  } finally {
    await form.received.discard();
  }
}

async function list(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  const shape = shapeFor(exchange, files);
  const found = await files.list(accountOf(exchange), shape.query(exchange.request.query));
  return answer(shape.list(found.files, found.more));
}

async function describe(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  if (exchange.request.params['file_id']?.endsWith(':download') === true)
    return files.answer(accountOf(exchange), idOf(exchange), exchange);
  const file = await files.find(accountOf(exchange), idOf(exchange));
  if (file === undefined) throw noSuchFile();
  return answer(shapeFor(exchange, files).one(file));
}

async function remove(exchange: Exchange, files: UploadedFiles): Promise<Answer> {
  if (!(await files.remove(accountOf(exchange), idOf(exchange)))) throw noSuchFile();
  return answer(shapeFor(exchange, files).deleted(idOf(exchange)));
}

/** The same for ids that never were, that are gone, and that belong to others. */
function noSuchFile(): GatewayError {
  return new GatewayError('not_found', 'There is no such file.', { code: 'file_not_found', shouldRetry: false });
}
