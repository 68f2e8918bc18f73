/** What answers of the responses protocol repeat of a masked request: relayed and translated, whole and streamed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  chatStream,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';

let vendor: Vendor;
let gateway: TestGateway;
let key: string;

before(async () => {
  vendor = await startVendor();
  const at = `${vendor.origin}/v1`;
  const model = (target: string) => ({ owned_by: 'x', targets: [target], price: 'free' });
  gateway = await startGateway({
    plugins: [
      ...['storage', 'files', 'auth', 'providers', 'models', 'guardrails', 'prompts', 'billing', 'route'],
      ...['protocol-convert', 'endpoints'],
    ],
    providers: { same: { keys: 'k', speaks: { responses: at } }, other: { keys: 'k', speaks: { chat: at } } },
    models: { relayed: model('same'), translated: model('other') },
    guardrails: {
      checks: { mail: { type: 'patterns', find: ['email'], on: ['prompt'], do: 'mask', restore: true } },
      policies: { base: ['mail'] },
      apply: [{ policy: 'base' }],
    },
  });
  await gateway.run('accounts create', { name: 'ada', credit: '1' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'k' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const request = {
  instructions: 'You write "as" ada@example.com.',
  input: 'Greet bob@example.com.',
  tools: [{ type: 'function', name: 'mail', description: 'To ada@example.com.', parameters: { type: 'object' } }],
};
/** As vendors answer: with the request as they got it. */
const masked = {
  instructions: 'You write "as" [EMAIL-1].',
  tools: [{ type: 'function', name: 'mail', description: 'To [EMAIL-1].', parameters: { type: 'object' } }],
};
const text = 'Good day, and [EMAIL-9] is not yours.';
const item = {
  ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text, annotations: [] }],
};
const response = (status: string, output: unknown[]) => ({
  ...{ id: 'resp_1', object: 'response', created_at: 1, model: 'relayed', status, ...masked, output },
  usage: status === 'completed' ? { input_tokens: 1, output_tokens: 1, total_tokens: 2 } : null,
});
const frames = [
  { type: 'response.created', response: response('in_progress', []) },
  { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
  {
    ...{ type: 'response.content_part.added', item_id: 'msg_1', output_index: 0, content_index: 0 },
    part: { type: 'output_text', text: '', annotations: [] },
  },
  { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: text },
  { type: 'response.output_text.done', item_id: 'msg_1', output_index: 0, content_index: 0, text },
  {
    ...{ type: 'response.content_part.done', item_id: 'msg_1', output_index: 0, content_index: 0 },
    part: item.content[0],
  },
  { type: 'response.output_item.done', output_index: 0, item },
  { type: 'response.completed', response: response('completed', [item]) },
];
const stream = frames
  .map((frame, index) => `event: ${frame.type}\ndata: ${JSON.stringify({ ...frame, sequence_number: index })}\n\n`)
  .join('');

const ask = async (model: string, isStream: boolean) => {
  const answer = await gateway.post(
    '/v1/responses',
    { ...request, model, stream: isStream },
    { authorization: `Bearer ${key}` },
  );
  assert.equal(answer.status, 200);
  assert.doesNotMatch(vendor.requests.at(-1)!.body.toString(), /@example/);
  return answer.text();
};

/** Each object of the answer. */
function repeatedIn(body: string, isStream: boolean): unknown[] {
  const all = isStream
    ? [...body.matchAll(/^data: (.*"response":.*)$/gm)].map(([, data]) => JSON.parse(data!).response)
    : [JSON.parse(body)];
  return all.map(({ instructions, tools }) => [instructions, tools[0].description]);
}

const own = ['You write "as" ada@example.com.', 'To ada@example.com.'];

for (const isStream of [false, true]) {
  const how = isStream ? 'stream' : 'whole answer';
  test(`relayed ${how}: instructions and tools that the vendor repeats are the client's own again`, async () => {
    vendor.play(
      isStream
        ? { headers: { 'content-type': 'text/event-stream' }, body: stream }
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(response('completed', [item])) },
    );
    const body = await ask('relayed', isStream);
    const repeated = repeatedIn(body, isStream);
    assert.ok(repeated.length >= (isStream ? 2 : 1));
    for (const one of repeated) assert.deepEqual(one, own);
    // All other bytes are the vendor's.
    const expected = isStream ? stream : JSON.stringify(response('completed', [item]));
    assert.equal(body.replaceAll('ada@example.com', '[EMAIL-1]'), expected);
  });

  test(`translated ${how}: the repeated instructions and tools are the client's own`, async () => {
    vendor.play(isStream ? chatStream('Good day.') : chatAnswer('Good day.'));
    for (const one of repeatedIn(await ask('translated', isStream), isStream)) assert.deepEqual(one, own);
  });
}
