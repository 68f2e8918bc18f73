/** The addresses of batches as Google's clients call them. */
import type { Endpoint, Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { caller } from '../../common/domain/accounts.ts';
import { catalog } from '../../common/domain/models.ts';
import { fileIdOf, type UploadedFiles } from '../../common/domain/stored-files.ts';
import { dialectOf, renderError } from '../../common/kit/dialects.ts';
import type { Batch } from '../batch.ts';
import { accountOf, type EndpointTools, idOf, json, newId, noSuchBatch, placeLines, removeEnded } from '../orders.ts';
import {
  endpointOf,
  googleOrder,
  type LineTerms,
  linesOfFile,
  linesOfRequests,
  type OrderKind,
  orderKinds,
} from './order.ts';
import { googleBatch } from './shapes.ts';

const versions = ['v1beta', 'v1', 'v1alpha'] as const;
/** An order by file is read to its end before it is answered; results are sent to slow clients. */
const timeoutMs = 3_600_000;

export function googleEndpoints(tools: EndpointTools): Endpoint[] {
  const kinds = orderKinds.filter(({ endpoint }) => tools.endpoints.includes(endpoint));
  if (kinds.length === 0) return [];
  return versions.flatMap((version) => {
    const described = version === 'v1beta';
    const common = {
      operation: 'batches',
      body: 'none',
      timeoutMs,
      renderError: (error, exchange) => renderError(error, dialectOf(exchange.request), exchange.id),
    } satisfies Partial<Endpoint>;
    const one = `/${version}/batches/:id`;
    const changing: Endpoint[] = [
      ...kinds.map(
        (kind): Endpoint => ({
          ...common,
          method: 'POST',
          path: `/${version}/models/:model(^.+$)::${kind.method}`,
          keeps: 'batches',
          body: 'json',
          describes: described ? [describeOrder(kind)] : [],
          handle: (exchange) => order(tools, exchange, kind),
        }),
      ),
      {
        ...common,
        method: 'POST',
        path: `/${version}/batches/:id(^.+$)::cancel`,
        describes: described ? [{ summary: 'Cancels a batch.', path: `/${version}/batches/{id}:cancel` }] : [],
        handle: (exchange) => cancelGoogle(tools, exchange),
      },
      {
        ...common,
        method: 'DELETE',
        path: one,
        describes: described ? [{ summary: 'Deletes a batch that has ended.' }] : [],
        handle: (exchange) => remove(tools, exchange),
      },
    ];
    // Below `v1`, chat has the same addresses.
    if (version === 'v1') return changing;
    return [
      ...changing,
      {
        ...common,
        method: 'GET',
        path: `/${version}/batches`,
        describes: described ? [{ summary: 'Lists the batches.', query: pageParameters }] : [],
        handle: (exchange) => listGoogle(tools, exchange),
      },
      {
        ...common,
        method: 'GET',
        path: one,
        describes: described ? [{ summary: 'Describes a batch; one that has ended, with its results.' }] : [],
        handle: (exchange) => describeGoogle(tools, exchange),
      },
    ];
  });
}

const describeOrder = ({ method, summary }: OrderKind) => ({
  summary,
  path: `/v1beta/models/{model}:${method}`,
  body: { types: ['application/json'], required: ['batch'] },
});
const pageParameters = { pageSize: 'Batches of a page.', pageToken: 'The `nextPageToken` of the page before.' };

async function order(tools: EndpointTools, exchange: Exchange, kind: OrderKind): Promise<Answer> {
  const { request } = exchange;
  const terms: LineTerms = { kind, model: modelFor(tools, exchange, request.params['model'] ?? '') };
  const { displayName, source } = googleOrder(request);
  const isFile = typeof source === 'string';
  const opened = isFile ? await openSource(tools, exchange, source) : undefined;
  try {
    const lines =
      opened === undefined
        ? linesOfRequests(source as readonly unknown[], terms, tools.limits)
        : linesOfFile(opened.body, terms, tools.limits);
    const batch = await placeLines(tools, exchange, lines, {
      id: newId(tools, ''),
      dialect: 'gemini',
      endpoint: endpointOf(terms),
      metadata: { displayName, results: isFile ? 'file' : 'inline' },
      outputLifetimeMs: undefined,
    });
    return json(googleBatch(batch, undefined));
  } finally {
    opened?.close();
  }
}

/** Refused before anything is kept; each line is checked again. */
function modelFor({ host }: EndpointTools, exchange: Exchange, model: string): string {
  const entry = host.find(catalog)?.find(model);
  const { models: allowed } = exchange.get(caller);
  if (entry !== undefined && (allowed === undefined || allowed.has(entry.id) || allowed.has(model))) return model;
  throw new GatewayError(
    'not_found',
    `The model "${model.slice(0, 200)}" does not exist, or this key may not call it.`,
    { field: 'model', code: 'model_not_found', shouldRetry: false },
  );
}

async function openSource(tools: EndpointTools, exchange: Exchange, name: string) {
  const id = /^files\/(.+)$/.exec(name)?.[1];
  const opened = id === undefined ? undefined : await tools.files().open(accountOf(exchange), fileIdOf(id));
  if (opened !== undefined) return opened;
  throw new GatewayError('not_found', 'There is no such file.', {
    field: 'batch.inputConfig.fileName',
    code: 'file_not_found',
    shouldRetry: false,
  });
}

async function found({ rows }: EndpointTools, exchange: Exchange): Promise<Batch> {
  const batch = await rows.find(accountOf(exchange), idOf(exchange));
  if (batch?.dialect !== 'gemini') throw noSuchBatch();
  return batch;
}

async function cancelGoogle(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { accountId, id } = await found(tools, exchange);
  await tools.rows.cancel(accountId, id);
  tools.wake();
  return json({});
}

async function remove(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const batch = await found(tools, exchange);
  await removeEnded(tools, batch);
  // A file of results is the client's, as is the one that it has uploaded.
  const own = isInline(batch) ? [batch.inputFile, batch.outputFile] : [batch.inputFile];
  for (const file of own) if (file !== undefined) await tools.files().remove(batch.accountId, file);
  return json({});
}

export async function listGoogle({ rows }: EndpointTools, exchange: Exchange): Promise<Answer> {
  const { query } = exchange.request;
  const text = query.get('pageSize') ?? '50';
  const limit = /^\d{1,4}$/.test(text) ? Math.min(Number(text), 100) : 0;
  if (limit < 1)
    throw new GatewayError('invalid_request', '"pageSize" is a whole number from 1 to 1000.', {
      field: 'pageSize',
      shouldRetry: false,
    });
  const after = query.get('pageToken') ?? '';
  const all = await rows.list(accountOf(exchange), 'gemini', { limit, after: after === '' ? undefined : after });
  const shown = all.slice(0, limit);
  return json({
    operations: shown.map((batch) => googleBatch(batch, isInline(batch) ? undefined : fileOf(batch))),
    ...(all.length > limit ? { nextPageToken: shown.at(-1)!.id } : {}),
  });
}

const isInline = ({ metadata }: Batch) => metadata?.['results'] === 'inline';

function fileOf({ state, outputFile }: Batch): object | undefined {
  if (state !== 'ended' || outputFile === undefined) return undefined;
  return { responsesFile: `files/${outputFile.slice('file-'.length)}` };
}

export async function describeGoogle(tools: EndpointTools, exchange: Exchange): Promise<Answer> {
  const batch = await found(tools, exchange);
  if (!isInline(batch) || fileOf(batch) === undefined) return json(googleBatch(batch, fileOf(batch)));
  // The results stand in the answer, in both places where clients look for them.
  const mark = tools.host.random.bytes(16).toString('hex');
  const text = JSON.stringify(googleBatch(batch, { inlinedResponses: { inlinedResponses: mark } }));
  const answer = json({});
  return { ...answer, body: withResults(text.split(`"${mark}"`), tools.files(), batch) };
}

async function* withResults(
  pieces: readonly string[],
  files: UploadedFiles,
  { accountId, outputFile }: Batch,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(pieces[0]!);
  for (const piece of pieces.slice(1)) {
    const opened = await files.open(accountId, outputFile!);
    try {
      yield Buffer.from('[');
      if (opened !== undefined) yield* elementsOf(opened.body);
      yield Buffer.from(`]${piece}`);
    } finally {
      opened?.close();
    }
  }
}

const [newline, comma] = [0x0a, 0x2c];

/** Lines as elements of a list: they hold no other line breaks. */
async function* elementsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isBetween = false;
  for await (const chunk of body) {
    if (isBetween) yield Buffer.from(',');
    const bytes = Buffer.from(chunk);
    isBetween = bytes.at(-1) === newline;
    for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) bytes[at] = comma;
    yield isBetween ? bytes.subarray(0, -1) : bytes;
  }
}
