/** Batches of generateContent, as a strict vendor serves them. */
import {
  type BatchVendor,
  type Line,
  notFound,
  type Reply,
  type Route,
  saidBy,
  usedBy,
  type VendorBatch,
} from './stand-in.ts';

export function contentRoutes(vendor: BatchVendor): Route[] {
  const authorized = (route: Route): Route => ({
    ...route,
    handle(call) {
      vendor.require(call.request.headers['x-goog-api-key'] === 'key', `${route.step}: the key is missing`);
      return route.handle(call);
    },
  });
  const found = (id: string | undefined, work: (batch: VendorBatch) => Reply): Reply => {
    const batch = vendor.batches.get(`batches/${id}`);
    return batch === undefined ? notFound : work(batch);
  };
  const begun = new Map<string, string>();
  const routes: Route[] = [
    {
      step: 'begin upload',
      method: 'POST',
      path: /^\/upload\/v1beta\/files$/,
      handle: ({ request: { headers }, body }) => {
        const isStart =
          headers['x-goog-upload-protocol'] === 'resumable' && headers['x-goog-upload-command'] === 'start';
        vendor.require(isStart, 'upload: it is not begun');
        const { file } = JSON.parse(body.toString('utf8')) as { file: { name: string } };
        vendor.require(/^files\/[a-z0-9][a-z0-9-]{0,38}[a-z0-9]$/.test(file.name), 'upload: the name has another form');
        if (vendor.files.has(file.name))
          return { status: 409, json: { error: { code: 409, status: 'ALREADY_EXISTS' } } };
        const token = vendor.newId('up');
        begun.set(token, file.name);
        return { headers: { 'x-goog-upload-url': `${vendor.origin}/upload/session/${token}` } };
      },
    },
    {
      step: 'upload',
      method: 'POST',
      path: /^\/upload\/session\/(\w+)$/,
      handle: ({ params: [token], request: { headers }, body }) => {
        vendor.require(headers['x-goog-upload-command'] === 'upload, finalize', 'upload: it is not finished');
        const name = begun.get(token!)!;
        vendor.files.set(name, { name, text: body.toString('utf8') });
        return { json: { file: { name, state: 'ACTIVE' } } };
      },
    },
    {
      step: 'find file',
      method: 'GET',
      path: /^\/v1beta\/(files\/[\w-]+)$/,
      handle: ({ params: [name] }) =>
        vendor.files.has(name!) ? { json: { name, state: 'ACTIVE' } } : { status: 403, json: { error: { code: 403 } } },
    },
    {
      step: 'delete file',
      method: 'DELETE',
      path: /^\/v1beta\/(files\/[\w-]+)$/,
      handle: ({ params: [name] }) => (vendor.files.delete(name!) ? {} : notFound),
    },
    {
      step: 'order',
      method: 'POST',
      path: /^\/v1beta\/models\/([^/:]+):batchGenerateContent$/,
      handle: ({ params: [model], body }) => order(vendor, model!, body),
    },
    {
      step: 'list',
      method: 'GET',
      path: /^\/v1beta\/batches$/,
      handle: ({ query }) => {
        const all = [...vendor.batches.values()].reverse();
        const at = Number(query.get('pageToken') ?? 0);
        const more = at + 1 < all.length ? { nextPageToken: String(at + 1) } : {};
        return { json: { operations: all.slice(at, at + 1).map(shaped), ...more } };
      },
    },
    {
      step: 'get',
      method: 'GET',
      path: /^\/v1beta\/batches\/([\w-]+)$/,
      handle: ({ params: [id] }) => found(id, (batch) => ({ json: shaped(vendor.look(batch)) })),
    },
    {
      step: 'cancel',
      method: 'POST',
      path: /^\/v1beta\/batches\/([\w-]+):cancel$/,
      handle: ({ params: [id] }) =>
        found(id, (batch) => {
          if (batch.state === 'running') vendor.end(batch, 'cancelled');
          return {};
        }),
    },
    {
      step: 'results',
      method: 'GET',
      path: /^\/download\/v1beta\/files\/batch-([\w-]+):download$/,
      handle: ({ params: [id], query }) => {
        vendor.require(query.get('alt') === 'media', 'results: the form is not named');
        return found(id, (batch) => ({ text: resultsOf(batch) }));
      },
    },
    {
      step: 'delete',
      method: 'DELETE',
      path: /^\/v1beta\/batches\/([\w-]+)$/,
      handle: ({ params: [id] }) => found(id, () => ({})),
    },
  ];
  return routes.map(authorized);
}

function shaped(batch: VendorBatch) {
  const states = {
    running: 'RUNNING',
    completed: 'SUCCEEDED',
    cancelled: 'CANCELLED',
    expired: 'EXPIRED',
    failed: 'FAILED',
  };
  const state = `BATCH_STATE_${states[batch.state]}`;
  const responsesFile = `files/${batch.id.replace('batches/', 'batch-')}`;
  const isDone = batch.state !== 'running';
  const output = isDone && batch.state !== 'failed' ? { response: { output: { responsesFile } } } : {};
  return { name: batch.id, done: isDone, metadata: { displayName: batch.name, state }, ...output };
}

function order(vendor: BatchVendor, model: string, body: Buffer): Reply {
  vendor.require(model === 'real', `order: the model is ${model}`);
  const { batch } = JSON.parse(body.toString('utf8')) as {
    batch: { display_name: string; input_config: { file_name: string } };
  };
  const file = vendor.files.get(batch.input_config.file_name);
  if (file === undefined) return { status: 400, json: { error: { code: 400, status: 'INVALID_ARGUMENT' } } };
  const lines = file.text
    .trimEnd()
    .split('\n')
    .map((text) => {
      const { key, request, ...rest } = JSON.parse(text) as { key: string; request: Record<string, unknown> };
      vendor.require(Object.keys(rest).length === 0, 'order: a line has unknown members');
      vendor.require(Array.isArray(request['contents']), 'order: a line has no contents');
      return { id: key, body: request };
    });
  return { json: shaped(vendor.create('batches/v', batch.display_name, lines, batch.input_config.file_name)) };
}

function resultsOf({ lines }: VendorBatch): string {
  return lines
    .flatMap((line) => {
      const { id: key, outcome } = line;
      if (outcome === 'left_out' || outcome === 'open') return [];
      if (outcome === 'made') return { key, response: answerOf(line) };
      const code = { refused: 3, cancelled: 1, expired: 4 }[outcome];
      return { key, error: { code, message: 'This is not allowed.', status: 'INVALID_ARGUMENT' } };
    })
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

function answerOf(line: Line) {
  const { input, output } = usedBy(line);
  return {
    candidates: [{ content: { role: 'model', parts: [{ text: saidBy(line) }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      ...{ promptTokenCount: input, candidatesTokenCount: output },
      totalTokenCount: input + output,
    },
    modelVersion: 'real',
    responseId: `r-${line.id}`,
  };
}
