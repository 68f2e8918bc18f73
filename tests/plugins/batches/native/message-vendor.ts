/** Batches of messages, as a strict vendor serves them. */
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

export function messageRoutes(vendor: BatchVendor): Route[] {
  const authorized = (route: Route): Route => ({
    ...route,
    handle(call) {
      const { headers } = call.request;
      vendor.require(headers['x-api-key'] === 'key', `${route.step}: the key is missing`);
      vendor.require(headers['anthropic-version'] === '2023-06-01', `${route.step}: the version is missing`);
      return route.handle(call);
    },
  });
  const shaped = (batch: VendorBatch) => {
    const counted = (outcome: Line['outcome']) => batch.lines.filter((line) => line.outcome === outcome).length;
    const hasEnded = batch.state !== 'running';
    return {
      id: batch.id,
      type: 'message_batch',
      processing_status: hasEnded ? 'ended' : 'in_progress',
      created_at: new Date(batch.createdAt).toISOString(),
      request_counts: {
        processing: hasEnded ? 0 : batch.lines.length,
        succeeded: counted('made'),
        errored: counted('refused') + counted('left_out'),
        canceled: counted('cancelled'),
        expired: counted('expired'),
      },
      results_url: hasEnded ? `${vendor.origin}/v1/messages/batches/${batch.id}/results` : null,
    };
  };
  const found = (id: string | undefined, work: (batch: VendorBatch) => Reply): Reply => {
    const batch = vendor.batches.get(id ?? '');
    return batch === undefined ? notFound : work(batch);
  };
  const path = (rest: string) => new RegExp(`^/v1/messages/batches${rest}$`);
  const routes: Route[] = [
    { step: 'order', method: 'POST', path: path(''), handle: ({ body }) => order(vendor, body, shaped) },
    {
      step: 'list',
      method: 'GET',
      path: path(''),
      handle: ({ query }) => {
        const all = [...vendor.batches.values()].reverse();
        const at = query.has('after_id') ? all.findIndex(({ id }) => id === query.get('after_id')) + 1 : 0;
        const data = all.slice(at, at + 1).map(shaped);
        return { json: { data, has_more: at + 1 < all.length, last_id: data.at(-1)?.id ?? null } };
      },
    },
    {
      step: 'get',
      method: 'GET',
      path: path('/([\\w-]+)'),
      handle: ({ params: [id] }) => found(id, (batch) => ({ json: shaped(vendor.look(batch)) })),
    },
    {
      step: 'cancel',
      method: 'POST',
      path: path('/([\\w-]+)/cancel'),
      handle: ({ params: [id] }) =>
        found(id, (batch) => {
          if (batch.state !== 'running')
            return { status: 400, json: { type: 'error', error: { type: 'invalid_request_error' } } };
          vendor.end(batch, 'cancelled');
          return { json: shaped(batch) };
        }),
    },
    {
      step: 'results',
      method: 'GET',
      path: path('/([\\w-]+)/results'),
      handle: ({ params: [id] }) =>
        found(id, (batch) => (batch.state === 'running' ? notFound : { text: resultsOf(batch) })),
    },
    {
      step: 'delete',
      method: 'DELETE',
      path: path('/([\\w-]+)'),
      handle: ({ params: [id] }) => {
        vendor.files.set(`deleted ${id}`, { name: id!, text: '' });
        return { json: { id, type: 'message_batch_deleted' } };
      },
    },
  ];
  return routes.map(authorized);
}

function order(vendor: BatchVendor, body: Buffer, shaped: (batch: VendorBatch) => object): Reply {
  const { requests, ...others } = JSON.parse(body.toString('utf8')) as { requests: Record<string, unknown>[] };
  vendor.require(Object.keys(others).length === 0, 'order: it has unknown members');
  const lines = requests.map(({ custom_id: id, params, ...rest }) => {
    vendor.require(Object.keys(rest).length === 0, 'order: a request has unknown members');
    vendor.require(/^[a-zA-Z0-9_-]{1,64}$/.test(String(id)), 'order: an id has another form');
    const inner = params as Record<string, unknown>;
    vendor.require(inner['model'] === 'real' && typeof inner['max_tokens'] === 'number', 'order: the params are wrong');
    return { id: String(id), body: inner };
  });
  return { json: shaped(vendor.create('msgbatch_v', '', lines)) };
}

function resultsOf({ lines }: VendorBatch): string {
  return lines
    .flatMap((line) => {
      const { id, outcome } = line;
      if (outcome === 'left_out' || outcome === 'open') return [];
      const type = { made: 'succeeded', refused: 'errored', cancelled: 'canceled', expired: 'expired' }[outcome];
      const error = { type: 'error', error: { type: 'invalid_request_error', message: 'This is not allowed.' } };
      const more = outcome === 'made' ? { message: messageOf(line) } : outcome === 'refused' ? { error } : {};
      return `${JSON.stringify({ custom_id: id, result: { type, ...more } })}\n`;
    })
    .reverse()
    .join('');
}

function messageOf(line: Line) {
  const { id } = line;
  const { input, output } = usedBy(line);
  return {
    ...{
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model: 'real',
      stop_reason: 'end_turn',
      stop_sequence: null,
    },
    content: [{ type: 'text', text: saidBy(line) }],
    usage: { input_tokens: input, output_tokens: output, service_tier: 'batch' },
  };
}
