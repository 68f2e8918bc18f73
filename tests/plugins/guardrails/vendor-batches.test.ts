/** Lines of batches that vendors make themselves: checked before the order, put back and checked in the results, in each protocol. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { rowsOf, tableOf } from '../../../plugins/common/kit/sql.ts';
import { until } from '../../helpers/until.ts';
import {
  chatLine,
  contentLine,
  lineCost,
  orderContents,
  startTestbed,
  type Testbed,
  type World,
} from '../batches/native/world.ts';

let testbed: Testbed;
/** A service that breaks where the text names its address. */
const service = createServer(async (request, response) => {
  const isBroken = (await text(request)).includes(`breaks ${request.url!.split('/')[1]}`);
  response.writeHead(isBroken ? 500 : 200, { 'content-type': 'application/json' }).end('{"action":"NONE"}');
});

before(async () => {
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const at = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const asked = (path: string) => `{ type: litellm, url: "${at}/${path}", allow_private: true, on: [answer],`;
  testbed = await startTestbed(
    (file) => `${file.replace('models, idempotency', 'models, guardrails, prompts, idempotency')}
guardrails:
  checks:
    mail: { type: patterns, find: [email], do: mask, restore: true }
    words: { type: words, list: [banana], on: [answer], do: refuse }
    beside: { type: words, list: [cherry], on: [prompt], do: refuse, beside: true }
    closed: ${asked('closed')} broken: refuse }
    open: ${asked('open')} broken: allow }
  policies: { base: [mail, words, beside, closed, open] }
  apply: [{ policy: base }]
`,
  );
});
after(async () => {
  await testbed.stop();
  service.close();
});

/** The texts that the vendor was sent. */
const sentTo = ({ vendor }: World) => JSON.stringify([...vendor.batches.values()].flatMap(({ lines }) => lines));

async function keptOf({ gateway }: World): Promise<string[]> {
  const store = gateway.find(database)!;
  const rows = await rowsOf<{ kept: string }>(
    store.orm,
    sql`select kept from ${tableOf(store, 'batch_lines')} where kept is not null`,
  );
  return rows.map(({ kept }) => kept);
}

test('texts that a line has masked come back in its own result, and are kept sealed until then, in chat and in contents', async () => {
  for (const form of ['chat', 'contents'] as const) {
    const world = await testbed.open();
    world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
    const texts = ['say: Write to ada@example.com.', 'say: Write to eve@example.com.', 'say: [EMAIL-1] and [EMAIL-2]'];
    const ids = ['ada', 'eve', 'none'];
    const id =
      form === 'chat'
        ? await world.client.order(texts.map((text, index) => chatLine(ids[index]!, text)))
        : await orderContents(
            world,
            texts.map((text, index) => contentLine(ids[index]!, text)),
          );
    await until('the vendor runs it', () => world.vendor.steps.includes('get'));
    assert.doesNotMatch(sentTo(world), /example\.com/);
    assert.equal(sentTo(world).match(/Write to \[EMAIL-1\]\./g)?.length, 2);
    const kept = await keptOf(world);
    assert.equal(kept.length, 2);
    assert.doesNotMatch(Buffer.from(kept.join(), 'base64').toString('latin1'), /example/);
    world.vendor.pollsUntilEnd = 1;
    const { lines } = await world.client.ended(id);
    const answered = (name: string) => JSON.stringify(lines.get(name)!.response!.body);
    assert.match(answered('ada'), /"Write to ada@example\.com\."/);
    assert.match(answered('eve'), /"Write to eve@example\.com\."/);
    assert.match(answered('none'), /"\[EMAIL-1\] and \[EMAIL-2\]"/);
    assert.deepEqual(await keptOf(world), []);
    await world.settled(3n * lineCost, 3);
  }
});

test('a message of a batch has its address again in its result', async () => {
  const world = await testbed.open();
  const content = 'say: Write to ada@example.com.';
  const requests = [
    { custom_id: 'one', params: { model: 'm', max_tokens: 50, messages: [{ role: 'user', content }] } },
  ];
  const ordered = await (await world.client.call('POST', '/v1/messages/batches', { requests })).json();
  const { id } = ordered as { id: string };
  const results = await until('it has ended', async () => {
    const batch = await (await world.client.call('GET', `/v1/messages/batches/${id}`)).json();
    if ((batch as { processing_status: string }).processing_status !== 'ended') return undefined;
    return (await world.client.call('GET', `/v1/messages/batches/${id}/results`)).text();
  });
  assert.match(sentTo(world), /Write to \[EMAIL-1\]\./);
  assert.match(results, /"Write to ada@example\.com\."/);
});

test('a refused answer is an errored line that is paid, and a refused prompt is not sent, by a check that runs beside calls too', async () => {
  const world = await testbed.open();
  const id = await world.client.order([
    chatLine('good', 'say: A pear.'),
    chatLine('answer', 'say: A banana.'),
    chatLine('prompt', 'A cherry.'),
  ]);
  const { lines, request_counts: counts } = await world.client.ended(id);
  assert.deepEqual(counts, { total: 3, completed: 1, failed: 2 });
  assert.doesNotMatch(sentTo(world), /cherry/);
  for (const name of ['answer', 'prompt']) {
    const { status_code: status, body } = lines.get(name)!.response!;
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), /content_policy_violation/);
    assert.doesNotMatch(JSON.stringify(body), /banana|cherry/);
  }
  await world.settled(2n * lineCost, 2);
});

test('an answer of a line that a check cannot judge is a 503 that is paid, or is given where the check lets it pass', async () => {
  const world = await testbed.open();
  const id = await world.client.order([
    chatLine('closed', 'say: It breaks closed.'),
    chatLine('open', 'say: It breaks open.'),
    chatLine('good', 'say: A pear.'),
  ]);
  const { lines, request_counts: counts } = await world.client.ended(id);
  assert.deepEqual(counts, { total: 3, completed: 2, failed: 1 });
  const { status_code: status, body } = lines.get('closed')!.response!;
  assert.equal(status, 503);
  assert.match(JSON.stringify(body), /guardrail_unavailable/);
  assert.doesNotMatch(JSON.stringify(body), /breaks closed/);
  assert.match(JSON.stringify(lines.get('open')!.response!.body), /It breaks open\./);
  await world.settled(3n * lineCost, 3);
});
