/** Batches of files, as a strict vendor of chat completions serves them. */
import {
  type BatchVendor,
  notFound,
  type Reply,
  type Route,
  saidBy,
  used,
  usedBy,
  type VendorBatch,
} from './stand-in.ts';

export function fileRoutes(vendor: BatchVendor): Route[] {
  const authorized = (route: Route): Route => ({
    ...route,
    handle(call) {
      vendor.require(call.request.headers['authorization'] === 'Bearer key', `${route.step}: the key is missing`);
      return route.handle(call);
    },
  });
  const shaped = (batch: VendorBatch) => ({
    id: batch.id,
    object: 'batch',
    status: batch.state === 'running' ? 'in_progress' : batch.state,
    created_at: Math.floor(batch.createdAt / 1_000),
    output_file_id: hasOutput(batch) ? `file-out-${batch.id}` : null,
    error_file_id: hasErrors(batch) ? `file-err-${batch.id}` : null,
    errors: batch.state === 'failed' ? { data: [{ code: 'model_not_found' }] } : null,
    metadata: { gateway_batch: batch.name },
  });
  const found = (id: string | undefined, work: (batch: VendorBatch) => Reply): Reply => {
    const batch = vendor.batches.get(id ?? '');
    return batch === undefined ? notFound : work(batch);
  };
  const routes: Route[] = [
    {
      step: 'upload',
      method: 'POST',
      path: /^\/v1\/files$/,
      handle: ({ request, body }) => upload(vendor, request.headers['content-type'] ?? '', body),
    },
    {
      step: 'list files',
      method: 'GET',
      path: /^\/v1\/files$/,
      handle: () => ({
        json: { data: [...vendor.files].map(([id, { name }]) => ({ id, filename: name })), has_more: false },
      }),
    },
    {
      step: 'delete file',
      method: 'DELETE',
      path: /^\/v1\/files\/([\w-]+)$/,
      handle: ({ params: [id] }) => {
        const isThere = vendor.files.delete(id!) || id!.startsWith('file-out-') || id!.startsWith('file-err-');
        return isThere ? { json: { id, deleted: true } } : notFound;
      },
    },
    { step: 'order', method: 'POST', path: /^\/v1\/batches$/, handle: ({ body }) => order(vendor, body, shaped) },
    {
      step: 'list',
      method: 'GET',
      path: /^\/v1\/batches$/,
      handle: ({ query }) => {
        // A page each, so that pages are followed.
        const all = [...vendor.batches.values()].reverse();
        const at = query.has('after') ? all.findIndex(({ id }) => id === query.get('after')) + 1 : 0;
        return { json: { data: all.slice(at, at + 1).map(shaped), has_more: at + 1 < all.length } };
      },
    },
    {
      step: 'get',
      method: 'GET',
      path: /^\/v1\/batches\/([\w-]+)$/,
      handle: ({ params: [id] }) => found(id, (batch) => ({ json: shaped(vendor.look(batch)) })),
    },
    {
      step: 'cancel',
      method: 'POST',
      path: /^\/v1\/batches\/([\w-]+)\/cancel$/,
      handle: ({ params: [id] }) =>
        found(id, (batch) => {
          if (batch.state !== 'running') return { status: 409, json: { error: { message: 'it has ended' } } };
          vendor.end(batch, 'cancelled');
          return { json: shaped(batch) };
        }),
    },
    {
      step: 'call',
      method: 'POST',
      path: /^\/v1\/chat\/completions$/,
      handle: () => ({ json: completion(vendor.newId('call')) }),
    },
    {
      step: 'results',
      method: 'GET',
      path: /^\/v1\/files\/file-(out|err)-([\w-]+)\/content$/,
      handle: ({ params: [kind, id] }) => found(id, (batch) => ({ text: resultsOf(batch, kind!) })),
    },
  ];
  return routes.map(authorized);
}

const hasOutput = ({ state, lines }: VendorBatch) =>
  state !== 'running' && lines.some(({ outcome }) => outcome === 'made');
const hasErrors = ({ state, lines }: VendorBatch) =>
  state !== 'running' && lines.some(({ outcome }) => ['refused', 'cancelled', 'expired'].includes(outcome));

function upload(vendor: BatchVendor, type: string, body: Buffer): Reply {
  const boundary = /^multipart\/form-data; boundary=(.+)$/.exec(type)?.[1] ?? '?';
  const parts = body.toString('utf8').split(`--${boundary}`);
  const part = (name: string) => parts.find((text) => text.includes(`name="${name}"`))?.split('\r\n\r\n') ?? [];
  vendor.require(parts.at(-1)?.startsWith('--') === true, 'upload: the form does not end');
  vendor.require(part('purpose')[1]?.trim() === 'batch', 'upload: the purpose is not "batch"');
  const [head = '', text = ''] = part('file');
  const name = /filename="([^"]+)"/.exec(head)?.[1];
  vendor.require(name !== undefined, 'upload: the file has no name');
  const id = vendor.newId('file-in-');
  vendor.files.set(id, { name: name ?? '', text: text.replace(/\r\n$/, '') });
  return { json: { id, object: 'file', filename: name, purpose: 'batch' } };
}

function order(vendor: BatchVendor, body: Buffer, shaped: (batch: VendorBatch) => object): Reply {
  const wanted = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
  vendor.require(wanted['completion_window'] === '24h', 'order: the window is not 24h');
  const file = vendor.files.get(wanted['input_file_id'] as string);
  if (file === undefined) return { status: 400, json: { error: { message: 'no such file' } } };
  const lines = file.text
    .trimEnd()
    .split('\n')
    .map((text) => {
      const line = JSON.parse(text) as Record<string, unknown>;
      vendor.require(
        line['method'] === 'POST' && line['url'] === wanted['endpoint'],
        'order: a line has another address',
      );
      const inner = line['body'] as Record<string, unknown>;
      vendor.require(inner['model'] === 'real', `order: a line names the model ${String(inner['model'])}`);
      vendor.require(inner['stream'] === undefined || inner['stream'] === false, 'order: a line is streamed');
      return { id: line['custom_id'] as string, body: inner };
    });
  const { gateway_batch: name = '' } = (wanted['metadata'] ?? {}) as Record<string, string>;
  return { json: shaped(vendor.create('batch_v', name, lines, wanted['input_file_id'] as string)) };
}

function resultsOf({ lines }: VendorBatch, kind: string): string {
  const given = lines.flatMap((line) => {
    const { id, outcome } = line;
    if ((outcome === 'made') !== (kind === 'out') || outcome === 'left_out' || outcome === 'open') return [];
    if (outcome === 'cancelled' || outcome === 'expired')
      return { id: `r${id}`, custom_id: id, response: null, error: { code: `batch_${outcome}`, message: outcome } };
    const isLong = JSON.stringify(line.body).includes('[long]');
    const error = isLong
      ? { message: 'Too long.', code: 'context_length_exceeded' }
      : { message: 'This is not allowed.', code: 'bad' };
    const [status, body] = outcome === 'made' ? [200, completion(id, usedBy(line), saidBy(line))] : [400, { error }];
    return { id: `r${id}`, custom_id: id, response: { status_code: status, request_id: `q${id}`, body }, error: null };
  });
  // In an order of its own, with a line that is none.
  return ['', ...given.reverse().map((line) => JSON.stringify(line)), 'no json', ''].join('\n');
}

function completion(id: string, { input, output } = used, content = `answer ${id}`) {
  return {
    ...{ id: `chatcmpl-${id}`, object: 'chat.completion', created: 1, model: 'real', service_tier: 'default' },
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  };
}
