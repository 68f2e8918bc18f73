/** Bodies kept by the whole demo gateway: what really went over the wire, streams and errors too, seen by whom it may. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Reply } from '../../console/browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from '../../console/start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let ada: Browser;
let accountId: string;
let key: string;

before(async () => {
  testbed = await startDemo(
    'demo',
    'request-log:\n  bodies: { of: [{ when: errors }, { models: [gpt-5.4-mini] }, { accounts: [missing] }], largest: 4KB }\n',
  );
  boss = await operatorOf(testbed);
  ada = await clientOf(testbed);
  accountId = (await ada.send('/me')).json.account.id;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  await boss.send(`/admin/accounts/${accountId}/credit`, { body: { amount: '20', reason: 'to try' }, headers });
  key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
});
after(() => testbed.stop());

async function call(body: object, bearer = key): Promise<{ id: string; status: number; text: string }> {
  const answer = await fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { id: answer.headers.get('x-request-id')!, status: answer.status, text: await answer.text() };
}

/** Bodies are written behind the request's back. */
async function keptOf(id: string): Promise<Reply['json']> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const reply = await boss.send(`/admin/requests/${id}/bodies`);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers.get('cache-control'), 'no-store');
    if (reply.json.kept !== null) return reply.json.kept;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('no bodies were kept');
}

const hello = (content: string) => [{ role: 'user', content }];

test('a whole answer is kept as the client got it, and the request without the pasted key', async () => {
  const { id, status, text } = await call({ model: 'gpt-5.4-mini', messages: hello(`why is ${key} refused?`) });
  assert.equal(status, 200, text);
  const kept = await keptOf(id);
  // The sandbox says it again.
  assert.ok(text.includes(key));
  assert.equal(kept.answer.text, text.replaceAll(key, '***'));
  assert.equal(kept.request.text, JSON.stringify({ model: 'gpt-5.4-mini', messages: hello('why is *** refused?') }));
  assert.equal(kept.request.mediaType, 'application/json');
  assert.equal(testbed.lines.join('').includes('refused?'), false);
});

test('a stream is kept as sent, cut at the bound, and the client gets all of it', async () => {
  const { id, text } = await call({
    model: 'gpt-5.4-mini',
    stream: true,
    max_tokens: 1_000,
    messages: hello('[[sandbox: tokens=600]] write a long poem'),
  });
  assert.match(text, /data: \[DONE\]/);
  const { answer } = await keptOf(id);
  assert.equal(answer.mediaType, 'text/event-stream');
  assert.equal(answer.bytes, Buffer.byteLength(text));
  assert.ok(text.startsWith(answer.text.slice(0, 300)));
  assert.ok(answer.bytes > 4_096);
  assert.equal(answer.leftOut, answer.bytes - 4_096);
});

test('a stream that breaks is an error, and its sent part is kept', async () => {
  const { id, text } = await call({
    model: 'gpt-5.4',
    stream: true,
    messages: hello('[[sandbox: cut_after=3]] one two three'),
  });
  const { answer, request } = await keptOf(id);
  assert.equal(answer.bytes, Buffer.byteLength(text));
  assert.match(answer.text, /error/);
  assert.match(request.text, /cut_after=3/);
});

test('errors are kept in the form that the client received, from any cause', async () => {
  const unknown = await call({ model: 'no-such-model', messages: hello('hi') });
  const stranger = await call({ model: 'gpt-5.4-mini', messages: hello('hi') }, 'sk-not-a-key-at-all');
  for (const { id, status, text } of [unknown, stranger]) {
    assert.ok(status >= 400);
    const kept = await keptOf(id);
    assert.equal(kept.answer.text, text);
  }
  // It was refused before its body was read.
  assert.equal((await keptOf(stranger.id)).request, null);
});

test('a body without a rule is not kept until an operator records it, which is audited', async () => {
  const model = 'gpt-5.4';
  const unkept = await call({ model, messages: hello('one') });
  assert.equal(unkept.status, 200, unkept.text);
  const begun = await boss.send('/admin/recordings', { body: { accountId, minutes: 5, reason: 'a complaint' } });
  assert.equal(begun.status, 200, begun.text);
  let kept: Reply['json'] = null;
  for (let attempt = 0; attempt < 50 && kept === null; attempt++) {
    const { id } = await call({ model, messages: hello('two') });
    await new Promise((resolve) => setTimeout(resolve, 700));
    kept = (await boss.send(`/admin/requests/${id}/bodies`)).json.kept;
  }
  assert.match(kept.request.text, /two/);
  assert.equal((await boss.send(`/admin/requests/${unkept.id}/bodies`)).json.kept, null);
  const rows = (await boss.send('/admin/audit?limit=200')).json.rows as { action: string; actor: string }[];
  for (const action of ['recording.begin', 'request.bodies'])
    assert.ok(
      rows.some((row) => row.action === action && row.actor === 'oscar@example.test'),
      action,
    );
});

test('a client sees no bodies, not even their own', async () => {
  const { id } = await call({ model: 'gpt-5.4-mini', messages: hello('something of mine') });
  await keptOf(id);
  assert.equal((await ada.send(`/admin/requests/${id}/bodies`)).status, 403);
  assert.equal((await ada.send(`/usage/${id}`)).text.includes('something of mine'), false);
  assert.equal((await testbed.browser().send(`/admin/requests/${id}/bodies`)).status, 401);
});

test('the bodies of an account are deleted at once', async () => {
  const reply = await boss.send(`/admin/accounts/${accountId}/bodies`, {
    method: 'DELETE',
    body: { reason: 'asked to' },
  });
  assert.equal(reply.status, 200, reply.text);
  assert.ok(reply.json.forgotten >= 3);
});
