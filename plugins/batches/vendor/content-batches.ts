/** Batches of generateContent: requests are uploaded as a file, the batch is an operation of a model, results are a file. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import type { BatchApi, Found, VendorOrder, VendorResult, VendorResults, VendorState } from './api.ts';
import { markOf } from './ids.ts';
import { badAnswer, VendorRefusal, type Wire } from './wire.ts';

const mostPages = 20;

export const contentBatches: BatchApi = {
  protocol: 'gemini',
  takes: (endpoint) => endpoint.endsWith(':generateContent'),
  auth: { header: 'x-goog-api-key', value: '{key}' },
  passedHeaders: [],
  mostLines: 100_000,
  mostBytes: 1_900 * 2 ** 20,
  lineOf: ({ id, body }) => `{"key":"${id}","request":${body}}`,
  upload: {
    send: upload,
    async find(wire, name) {
      const path = `/files/${fileId(name)}`;
      const { json } = await wire.call({ method: 'GET', path }).catch(absentIfUnknown);
      return json['state'] === 'FAILED' ? undefined : textOf(json['name']);
    },
    async remove(wire, id) {
      await wire.call({ method: 'DELETE', path: `/${id}` });
    },
  },
  async order(wire, { name, model }, file) {
    const batch = { display_name: name, input_config: { file_name: file as string } };
    const path = `/models/${encodeURIComponent(model)}:batchGenerateContent`;
    return stateOf((await wire.call({ method: 'POST', path, json: { batch } })).json);
  },
  find,
  async get(wire, id) {
    return stateOf((await wire.call({ method: 'GET', path: `/${id}` })).json);
  },
  async cancel(wire, id) {
    await wire.call({ method: 'POST', path: `/${id}:cancel`, json: {} });
  },
  results,
  async forget(wire, id) {
    await wire.call({ method: 'DELETE', path: `/${id}` });
  },
};

/** Names of files are at most 40 characters. */
const fileId = (name: string) => markOf(name);

/** A vendor answers 403 or 404 for a file that is not there. */
function absentIfUnknown(error: unknown): { json: JsonObject } {
  if (error instanceof VendorRefusal && (error.status === 403 || error.status === 404)) return { json: {} };
  throw error;
}

async function upload(wire: Wire, name: string, requests: AsyncIterable<Uint8Array>): Promise<string> {
  const { origin, pathname } = new URL(wire.baseUrl);
  const file = { name: `files/${fileId(name)}`, display_name: name, mime_type: 'application/jsonl' };
  const start = { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' };
  const type = { 'x-goog-upload-header-content-type': 'application/jsonl' };
  const started = await wire.call({
    method: 'POST',
    path: `${origin}/upload${pathname}/files`,
    json: { file },
    headers: { ...start, ...type },
  });
  const address = started.headers['x-goog-upload-url'];
  if (address === undefined) throw badAnswer('it names no address for the upload');
  const { json } = await wire.call({
    method: 'POST',
    path: address,
    stream: { type: 'application/jsonl', body: requests },
    headers: { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' },
  });
  const id = textOf(objectOf(json['file'])?.['name']);
  if (id === undefined || !/^files\/[\w-]{1,100}$/.test(id)) throw badAnswer('the file has no name');
  return id;
}

async function find(wire: Wire, { name }: VendorOrder): Promise<Found> {
  let token = '';
  for (let page = 0; page < mostPages; page++) {
    const { json } = await wire.call({ method: 'GET', path: `/batches?pageSize=100${token}` });
    const found = listOf(json['operations']).filter(isObject);
    const own = found.find(({ metadata }) => objectOf(metadata)?.['displayName'] === name);
    if (own !== undefined) return stateOf(own);
    const next = textOf(json['nextPageToken']) ?? '';
    if (next === '') break;
    token = `&pageToken=${encodeURIComponent(next)}`;
  }
  return 'absent';
}

function stateOf(operation: JsonObject): VendorState {
  const id = textOf(operation['name']) ?? '';
  if (!/^batches\/[\w-]{1,200}$/.test(id)) throw badAnswer('it has no name');
  const { metadata, response, error } = operation;
  const batch = { ...objectOf(metadata), ...objectOf(response) };
  const state = (textOf(objectOf(metadata)?.['state']) ?? '').replace(/^(?:BATCH|JOB)_STATE_/, '');
  const output = objectOf(objectOf(response)?.['output']) ?? objectOf(objectOf(metadata)?.['output']) ?? batch;
  const file = textOf(output['responsesFile']);
  const places = file === undefined ? [] : [file];
  if (state === 'SUCCEEDED') return { id, end: { ended: 'completed', places } };
  if (state === 'CANCELLED') return { id, end: { ended: 'cancelled', places } };
  if (state === 'EXPIRED') return { id, end: { ended: 'expired', places } };
  if (state === 'FAILED') return { id, end: { refused: textOf(objectOf(error)?.['status']) ?? 'failed' } };
  return { id, end: undefined };
}

async function* results(wire: Wire, { places }: VendorResults): AsyncGenerator<VendorResult> {
  const { origin, pathname } = new URL(wire.baseUrl);
  for (const file of places) {
    const path = `${origin}/download${pathname}/${file}:download?alt=media`;
    for await (const line of wire.lines({ method: 'GET', path })) {
      const result = resultOf(line);
      if (result !== undefined) yield result;
    }
  }
}

/** By the codes of google.rpc.Code. */
const statuses = new Map<unknown, number>([
  [3, 400],
  [5, 404],
  [7, 403],
  [8, 429],
  [9, 400],
  [11, 400],
  [12, 501],
  [14, 503],
  [16, 401],
]);

function resultOf({ key, response, error }: JsonObject): VendorResult | undefined {
  if (typeof key !== 'string') return undefined;
  if (isObject(response)) return { id: key, status: 200, body: response };
  if (!isObject(error)) return undefined;
  const { code } = error;
  // 1: CANCELLED, 4: DEADLINE_EXCEEDED.
  if (code === 1) return { id: key, missed: 'cancelled' };
  if (code === 4) return { id: key, missed: 'expired' };
  return { id: key, status: statuses.get(code) ?? 500, body: { error } };
}
