/** Batches of files: `POST /files`, `POST /batches`, results and errors as files. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { BatchApi, Found, VendorOrder, VendorResult, VendorResults, VendorState } from './api.ts';
import { badAnswer, type Wire } from './wire.ts';

const boundary = 'gateway-batch-5b0c1f52a6f04a0f8e21';
/** Batches that are looked through for an order; newest first. */
const mostPages = 20;
/** Clocks differ. */
const slackSeconds = 600;

/** One for each protocol that the lines of such batches may have. */
export function fileBatches(protocol: string, path: string): BatchApi {
  return {
    protocol,
    takes: (endpoint) => endpoint === path,
    auth: { header: 'authorization', value: 'Bearer {key}' },
    passedHeaders: ['openai-beta'],
    mostLines: 50_000,
    mostBytes: 190 * 2 ** 20,
    lineOf: ({ id, body }, endpoint) => `{"custom_id":"${id}","method":"POST","url":"${endpoint}","body":${body}}`,
    upload: { send: upload, find: findUpload, remove: removeFile },
    order,
    find,
    async get(wire, id) {
      return stateOf((await wire.call({ method: 'GET', path: `/batches/${id}` })).json);
    },
    async cancel(wire, id) {
      await wire.call({ method: 'POST', path: `/batches/${id}/cancel`, json: {} });
    },
    results,
    async forget(wire, _id, end) {
      for (const place of end?.places ?? []) await removeFile(wire, place);
    },
  };
}

const fileName = (name: string) => `${name}.jsonl`;

async function upload(wire: Wire, name: string, requests: AsyncIterable<Uint8Array>): Promise<string> {
  const part = (head: string, more = '') => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n${more}\r\n`;
  async function* form() {
    yield Buffer.from(`${part('name="purpose"')}batch\r\n`);
    yield Buffer.from(part(`name="file"; filename="${fileName(name)}"`, 'content-type: application/jsonl\r\n'));
    yield* requests;
    yield Buffer.from(`\r\n--${boundary}--\r\n`);
  }
  const stream = { type: `multipart/form-data; boundary=${boundary}`, body: form() };
  const { json } = await wire.call({ method: 'POST', path: '/files', stream });
  return idIn(json);
}

async function findUpload(wire: Wire, name: string): Promise<string | undefined> {
  for await (const file of pagesOf(wire, '/files?purpose=batch&limit=100'))
    if (file['filename'] === fileName(name)) return idIn(file);
  return undefined;
}

async function removeFile(wire: Wire, id: string): Promise<void> {
  await wire.call({ method: 'DELETE', path: `/files/${id}` });
}

async function order(wire: Wire, wanted: VendorOrder, file: unknown): Promise<VendorState> {
  const json = {
    input_file_id: file as string,
    endpoint: wanted.endpoint,
    completion_window: '24h',
    metadata: { gateway_batch: wanted.name },
  };
  return stateOf((await wire.call({ method: 'POST', path: '/batches', json })).json);
}

async function find(wire: Wire, { name, sentAt }: VendorOrder): Promise<Found> {
  for await (const batch of pagesOf(wire, '/batches?limit=100')) {
    if (objectOf(batch['metadata'])?.['gateway_batch'] === name) return stateOf(batch);
    const created = batch['created_at'];
    if (typeof created === 'number' && created < sentAt / 1_000 - slackSeconds) break;
  }
  return 'absent';
}

async function* pagesOf(wire: Wire, path: string): AsyncGenerator<JsonObject> {
  let after = '';
  for (let page = 0; page < mostPages; page++) {
    const { json } = await wire.call({ method: 'GET', path: path + after });
    const found = listOf(json['data']).filter(isObject);
    yield* found;
    if (json['has_more'] !== true || found.length === 0) return;
    after = `&after=${encodeURIComponent(idIn(found.at(-1)!))}`;
  }
}

function idIn({ id }: JsonObject): string {
  if (typeof id !== 'string' || !/^[\w.-]{1,200}$/.test(id)) throw badAnswer('it has no id');
  return id;
}

function stateOf(batch: JsonObject): VendorState {
  const id = idIn(batch);
  const { status } = batch;
  if (status === 'failed') return { id, end: { refused: faultIn(batch) } };
  if (status !== 'completed' && status !== 'cancelled' && status !== 'expired') return { id, end: undefined };
  const places = [batch['output_file_id'], batch['error_file_id']].filter((file) => typeof file === 'string');
  return { id, end: { ended: status, places } };
}

function faultIn({ errors }: JsonObject): string {
  const [first] = listOf(objectOf(errors)?.['data']);
  return textOf(objectOf(first)?.['code']) ?? 'failed';
}

async function* results(wire: Wire, { places }: VendorResults): AsyncGenerator<VendorResult> {
  for (const file of places)
    for await (const line of wire.lines({ method: 'GET', path: `/files/${file}/content` })) {
      const result = resultOf(line);
      if (result !== undefined) yield result;
    }
}

function resultOf({ custom_id: id, response, error }: JsonObject): VendorResult | undefined {
  if (typeof id !== 'string') return undefined;
  const { status_code: status, body } = objectOf(response) ?? {};
  if (typeof status === 'number' && isObject(body)) return { id, status, body };
  const code = textOf(objectOf(error)?.['code']) ?? '';
  if (code === 'batch_expired') return { id, missed: 'expired' };
  if (code === 'batch_cancelled') return { id, missed: 'cancelled' };
  const message = textOf(objectOf(error)?.['message']) ?? 'The line failed.';
  return { id, status: 500, body: { error: { message, type: 'server_error', code } } };
}
