/** Open WebUI lists the gateway's models, chats with one of each upstream protocol, and has a picture painted, each billed as reported. */
import assert from 'node:assert/strict';
import { after, afterEach, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { beatMs } from '../../../plugins/request-log/queue.ts';
import { hold } from '../../conformance/results.ts';
import { type Customer, modelAt, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';
import { reported } from '../agent.ts';
import { type AgentVendor, protocols, startAgentVendor, upstreamModel } from '../vendor.ts';
import { version } from './install.ts';
import { type OpenWebUi, startOpenWebUi } from './launch.ts';

interface RequestRow {
  readonly status: number;
  readonly outcome: string;
  readonly streamed: boolean;
  readonly model: string;
  readonly usage: Record<string, number>;
}

/** Named so that Open WebUI asks for it as for the original: without a response format. */
const imageModel = 'gpt-image-2';
let vendors: AgentVendor[];
let testbed: Testbed;
let customer: Customer;
let program: OpenWebUi;

before(async () => {
  vendors = await Promise.all(protocols.map((name) => startAgentVendor(name, () => 'note.txt')));
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      ...Object.fromEntries(
        protocols.map((name, at) => [name, { keys: 'vendor-key', speaks: { [name]: vendors[at]!.base } }]),
      ),
      painter: { keys: 'vendor-key-of-the-sandbox', speaks: { 'openai-images': `${sandbox}/v1` } },
    }),
    models: {
      ...Object.fromEntries(protocols.map((name) => [`from-${name}`, modelAt(`${name}/${upstreamModel}`)])),
      [imageModel]: { owned_by: 'test', kind: 'image', targets: ['painter'], price: { image: 0.01 } },
    },
  });
  customer = await testbed.customer();
  const waits = { name: 'waits', images: 'wait' as const };
  const { key: imageKey } = await testbed.gateway.gateway.find(accountAdmin)!.createKey(customer.accountId, waits);
  program = await startOpenWebUi({ base: `${testbed.origin}/v1`, key: customer.key, imageKey, imageModel });
});
after(async () => {
  await program?.stop();
  await testbed?.stop();
  await Promise.all(vendors.map((vendor) => vendor.stop()));
});

/** Tests that passed, for the page of conformance; a failed one counts nothing. */
const passed: boolean[] = [];
afterEach((context) => void passed.push((context as TestContext).passed));
after(() => {
  if (passed.includes(false)) return;
  hold('open-webui', [{ what: 'Open WebUI', version, counts: { tests: passed.length } }], 'npm run test:open-webui');
});

async function rowsOf(model: string): Promise<RequestRow[]> {
  await pause(2 * beatMs);
  return (await testbed.rows<RequestRow>('requests')).filter((row) => row.model === model);
}

test('Open WebUI offers the models of the gateway', async () => {
  const { data } = (await (await program.call('/api/models')).json()) as { data: { id: string }[] };
  const names = data.map(({ id }) => id);
  for (const name of protocols) assert.ok(names.includes(`from-${name}`), names.join());
});

for (const name of protocols)
  test(`a chat with a model of a vendor that speaks ${name} is streamed whole, and billed as the vendor reports`, async () => {
    const model = `from-${name}`;
    const messages = [{ role: 'user', content: 'Say something' }];
    const answer = await program.call('/api/chat/completions', { model, stream: true, messages });
    assert.equal(answer.status, 200);
    const frames = await answer.text();
    const said = [...frames.matchAll(/"content": ?"([^"]*)"/g)].map(([, piece]) => piece).join('');
    assert.ok(said.includes('Reading a file'), frames);
    assert.ok(frames.includes('[DONE]'), frames);
    const rows = (await rowsOf(model)).filter(({ streamed }) => streamed);
    assert.equal(rows.length, 1);
    const [{ status, outcome, usage }] = rows as [RequestRow];
    assert.deepEqual([status, outcome], [200, 'complete']);
    const { input, cached, output, reasoning } = reported;
    assert.deepEqual(
      [usage['input'], usage['cache_read'], usage['output'], usage['reasoning']],
      [input - cached, cached, output - reasoning, reasoning],
    );
  });

test('a picture that is ordered with a waiting key is kept by Open WebUI, and billed once', async () => {
  const before = await testbed.balance(customer);
  const answer = await program.call('/api/v1/images/generations', { prompt: 'a cat', n: 1, size: '1024x1024' });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const [{ url }] = JSON.parse(text) as [{ url: string }];
  const picture = Buffer.from(await (await program.call(url)).arrayBuffer());
  assert.equal(picture.toString('latin1', 1, 4), 'PNG');
  assert.equal(before - (await testbed.balance(customer)), 10_000_000n);
  assert.equal((await rowsOf(imageModel)).length, 1);
});

test('the ledger passes its audit at the end', () => testbed.audit());
