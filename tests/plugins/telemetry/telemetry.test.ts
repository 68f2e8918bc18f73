/** What a Prometheus and a collector see of a gateway, and what they do not. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { unexplainedLabels } from '../../docs/metric-labels.ts';
import { metrics } from '../../docs/metrics.ts';
import { talk } from '../../end-to-end/sockets.ts';
import { startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { freePort } from '../../helpers/free-port.ts';
import { until } from '../../helpers/until.ts';

interface Collected {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function startCollector(t: TestContext): Promise<{ origin: string; collected: Collected[] }> {
  const collected: Collected[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    collected.push({ path: request.url!, headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return { origin: `http://127.0.0.1:${(server.address() as { port: number }).port}`, collected };
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerSpan = '00f067aa0ba902b7';
const secretPrompt = 'a prompt that no one else may read';

async function startMeasured(
  t: TestContext,
  more: object = {},
): Promise<{ testbed: Testbed; port: number; collected: Collected[] }> {
  const { origin, collected } = await startCollector(t);
  const port = await freePort();
  const telemetry = {
    listen: `127.0.0.1:${port}`,
    otlp: { endpoint: origin, headers: { authorization: 'Bearer c' } },
    ...more,
  };
  const testbed = await startTestbed({
    providers: ({ sandbox }) => ({ bounded: { keys: 'k', speaks: { chat: `${sandbox}/v1` }, concurrency: 3 } }),
    more: { telemetry },
  });
  t.after(() => testbed.stop());
  return { testbed, port, collected };
}

test('Prometheus reads the traffic, on a port of its own', async (t) => {
  const { testbed, port } = await startMeasured(t);
  const customer = await testbed.customer();
  await testbed.call(customer, 'chat', {
    model: 'sandbox',
    prompt: `${secretPrompt} [[sandbox: tokens=20]]`,
    stream: true,
  });
  await testbed.call(customer, 'messages', { model: 'sandbox', prompt: secretPrompt });
  await testbed.call(customer, 'chat', { model: 'made-up-by-a-client', prompt: secretPrompt });
  await testbed.call(undefined, 'chat', { model: 'sandbox', prompt: secretPrompt });
  const client = await talk(testbed.origin, customer.key);
  await client.turn({ model: 'sandbox', input: 'Hello' });
  await client.close();
  await testbed.records(customer, 3);
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  for (const line of [
    /^gateway_requests_in_flight\{.*\} 0$|^gateway_requests_in_flight 0$/m,
    /^gen_ai_server_request_duration_count\{.*gen_ai_operation_name="chat".*gen_ai_request_model="sandbox".*gateway_stream="true".*\} 1$/m,
    /^gen_ai_server_time_to_first_token_count\{.*\} 1$/m,
    /^gen_ai_client_operation_duration_count\{.*gen_ai_provider_name="sandbox".*\} \d$/m,
    /^gen_ai_client_token_usage_sum\{.*gateway_stream="true".*gen_ai_token_type="output".*\} 20$/m,
    /^gateway_requests_total\{.*operation="chat".*status="401".*\} 1$/m,
    /^gateway_upstream_attempts_total\{.*gen_ai_provider_name="sandbox".*result="answered".*\} 3$/m,
    /^gateway_upstream_circuit\{.*gen_ai_provider_name="sandbox".*model="sandbox".*\} 0$/m,
    /^gateway_upstream_in_flight\{.*gen_ai_provider_name="sandbox".*\} 0$/m,
    /^gateway_upstream_queue\{.*gen_ai_provider_name="bounded".*\} 0$/m,
    /^gateway_websocket_turns_total\{.*protocol="responses".*\} 1$/m,
    /^gateway_websocket_closes_total\{.*code="1005".*\} 1$/m,
    /^gateway_websocket_bytes_total\{.*direction="in".*\} \d{2}$/m,
    /^gateway_database_healthy(\{.*\})? 1$/m,
    /^process_cpu_time_total\{/m,
    /^nodejs_eventloop_delay_p99(\{.*\})? /m,
  ])
    assert.match(page, line);
  assert.deepEqual(unexplainedLabels(page, metrics()), []);
  assert.doesNotMatch(page, /made-up-by-a-client/, 'a series for each invented name would grow without bound');
  for (const secret of [secretPrompt, customer.key, customer.accountId, 'vendor-key'])
    assert.ok(!page.includes(secret));
  assert.equal((await fetch(`${testbed.origin}/metrics`)).status, 404, 'clients cannot see it');
});

test('Prometheus reads of batches and of kept files, and the spans of their lines are linked to the order and have its tags', async (t) => {
  const { testbed, port, collected } = await startMeasured(t, { identities: 'plain' });
  const { accountId } = await testbed.customer();
  const terms = { name: 'tagged', tags: ['team=search', 'env'] };
  const { key } = await testbed.gateway.gateway.find(accountAdmin)!.createKey(accountId, terms);
  const tags = { 'x-gateway-tags': 'env=night' };
  const headers = { authorization: `Bearer ${key}`, traceparent: `00-${traceId}-${callerSpan}-01`, ...tags };
  const lineOf = (prompt: string, model = 'sandbox') =>
    JSON.stringify({
      custom_id: prompt,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model, messages: [{ role: 'user', content: prompt }] },
    });
  // The last one waits for its time, so that the batch stays open.
  const waiting = lineOf('[[sandbox: status=429 retry_after=60]]');
  const input = [lineOf('Hello'), lineOf('Hello again', 'no-such-model'), waiting].join('\n');
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([input]), 'in.jsonl');
  const post = async (path: string, init: RequestInit): Promise<{ id: string }> => {
    const answer = await fetch(`${testbed.origin}${path}`, { method: 'POST', ...init });
    assert.equal(answer.status, 200);
    return (await answer.json()) as { id: string };
  };
  const { id } = await post('/v1/files', { headers, body: form });
  const order = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  await post('/v1/batches', {
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(order),
  });
  const wanted = [
    /^gateway_batches_open(\{.*\})? 1$/m,
    /^gateway_batches_oldest(_seconds)?(\{.*\})? (0\.|[1-9])/m,
    /^gateway_batches_lines_total\{.*result="succeeded".*\} 1$/m,
    /^gateway_batches_lines_total\{.*result="errored".*\} 1$/m,
    new RegExp(`^gateway_files_kept(_bytes)?(\\{.*\\})? ${Buffer.byteLength(input)}$`, 'm'),
  ];
  const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  let page = '';
  const isComplete = async () => {
    page = await read();
    return wanted.every((line) => line.test(page));
  };
  await until('all is counted', isComplete).catch(() => undefined);
  for (const line of wanted) assert.match(page, line);
  assert.deepEqual(unexplainedLabels(page, metrics()), []);
  const client = await talk(testbed.origin, key, '/v1/responses', tags);
  await client.turn({ model: 'sandbox', input: 'Hello' });
  await client.close();
  await testbed.stop();
  const spans = collected.filter(({ path }) => path === '/v1/traces').flatMap(({ body }) => spansIn(body));
  const ordered = spans.find(({ name, traceId: of }) => name === 'batches' && of === traceId);
  // Beside them the turn on the WebSocket.
  const made = spans.filter(({ name, kind, links }) => name === 'chat sandbox' && kind === 2 && links?.length);
  assert.ok(made.length >= 1);
  for (const { links, traceId: own } of made) {
    assert.deepEqual(
      links!.map(({ traceId: of, spanId }) => [of, spanId]),
      [[traceId, ordered!.spanId]],
    );
    assert.notEqual(own, traceId);
  }
  const served = spans.filter(({ kind }) => kind === 2).map(attributesOf);
  assert.ok(served.length >= 4);
  for (const said of served) assert.deepEqual([said['gateway.tag.team'], said['gateway.tag.env']], ['search', 'night']);
});

test("a collector gets spans that continue the caller's trace, and upstreams receive its id", async (t) => {
  const { testbed, collected } = await startMeasured(t);
  const customer = await testbed.customer();
  testbed.replay.play({ status: 503, body: '{"error":{"message":"busy"}}' });
  const headers = { traceparent: `00-${traceId}-${callerSpan}-01` };
  await testbed.call(customer, 'chat', { model: 'replay', prompt: secretPrompt }, { headers });
  await testbed.call(customer, 'chat', { model: 'sandbox', prompt: secretPrompt }, { headers });
  const reported = testbed.replay.requests.at(-1)!.headers['traceparent'] as string;
  assert.match(reported, new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  assert.notEqual(reported.split('-')[2], callerSpan, "the upstream is a child of our span, not of the caller's");
  const lines = testbed.gateway.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const about = lines.filter(({ msg }) => msg === 'request' || msg === 'an upstream attempt failed');
  assert.deepEqual(about.map(({ msg }) => msg).toSorted(), ['an upstream attempt failed', 'request', 'request']);
  for (const line of about) {
    assert.deepEqual([line['trace_id'], line['account_id']], [traceId, customer.accountId], String(line['msg']));
    assert.match(`${line['request_id']} ${line['key_id']}`, /^[0-9a-f-]{36} [0-9a-f-]{36}$/);
  }
  await testbed.stop();
  const sent = collected.filter(({ path }) => path === '/v1/traces');
  assert.ok(sent.length > 0 && sent.every(({ headers: { authorization } }) => authorization === 'Bearer c'));
  const spans = sent.flatMap(({ body }) => spansIn(body)).filter(({ traceId: id }) => id === traceId);
  const server = spans.filter(({ kind }) => kind === 2);
  assert.deepEqual(server.map(({ name }) => name).toSorted(), ['chat replay', 'chat sandbox']);
  assert.ok(server.every(({ parentSpanId }) => parentSpanId === callerSpan));
  const attempts = spans.filter(({ kind }) => kind === 3);
  assert.ok(attempts.length >= 2);
  assert.ok(attempts.every(({ parentSpanId }) => server.some(({ spanId }) => spanId === parentSpanId)));
  const said = attributesOf(server.find(({ name }) => name === 'chat sandbox')!);
  const digest = hash('sha256', customer.accountId, 'hex').slice(0, 16);
  assert.deepEqual([said['gateway.account_id'], said['gen_ai.request.model']], [digest, 'sandbox']);
  assert.match(String(said['gateway.key_id']), /^[0-9a-f]{16}$/);
  assert.match(String(said['gateway.request_id']), /^[0-9a-f-]{36}$/);
  assert.ok(Number(said['gateway.charged.nano_usd']) > 0);
  const ids = new Set(server.map((span) => attributesOf(span)['gateway.request_id']));
  assert.ok(attempts.every((span) => ids.has(attributesOf(span)['gateway.request_id'])));
  assert.ok(collected.some(({ path }) => path === '/v1/metrics'));
  const everything = collected.map(({ body }) => body).join();
  for (const secret of [secretPrompt, customer.key, customer.accountId, 'vendor-key'])
    assert.ok(!everything.includes(secret));
});

test('a caller that does not sample is not traced, and with a ratio of 0 none is', async (t) => {
  const { testbed, collected } = await startMeasured(t, { traces: 0 });
  const customer = await testbed.customer();
  testbed.replay.play({ status: 503, body: '{}' });
  await testbed.call(customer, 'chat', { model: 'replay', prompt: 'x' });
  assert.equal(testbed.replay.requests.at(-1)!.headers['traceparent'], undefined);
  const headers = { traceparent: `00-${traceId}-${callerSpan}-00` };
  await testbed.call(customer, 'chat', { model: 'replay', prompt: 'x' }, { headers });
  await testbed.stop();
  assert.deepEqual(
    collected.filter(({ path }) => path === '/v1/traces'),
    [],
  );
});

test('a collector that is away costs neither requests nor the stop', async () => {
  const telemetry = { otlp: { endpoint: `http://127.0.0.1:${await freePort()}` } };
  const testbed = await startTestbed({
    providers: ({ sandbox }) => ({ bounded: { keys: 'k', speaks: { chat: `${sandbox}/v1` }, concurrency: 3 } }),
    more: { telemetry },
  });
  const customer = await testbed.customer();
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'x' })).status, 200);
  const gaveUp = pause(25_000, 'gave up', { ref: false });
  assert.notEqual(await Promise.race([testbed.stop(), gaveUp]), 'gave up', 'five seconds are all that it may cost');
});

interface SpanRow {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

function attributesOf({ attributes }: SpanRow): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

function spansIn(body: string): SpanRow[] {
  const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: SpanRow[] }[] }[] };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}
