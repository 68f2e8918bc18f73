/** Sessions under guardrails: refused where their answers would have to be checked, unless the policy allows that; their clients' messages are checked either way. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { startGateway, type TestGateway } from '../../../plugins/common/author/testing.ts';
import { talk } from '../../end-to-end/sockets.ts';
import { until } from '../../helpers/until.ts';

const sessions = new WebSocketServer({ host: '127.0.0.1', port: 0 });
const received: string[] = [];
let gateway: TestGateway;

before(async () => {
  if (sessions.address() === null) await once(sessions, 'listening');
  sessions.on('connection', (socket, { url = '' }) => {
    if (url.includes('realtime')) socket.send('{"type":"session.created","session":{}}');
    socket.on('message', (data) => received.push(String(data)));
  });
  const at = `http://127.0.0.1:${(sessions.address() as AddressInfo).port}`;
  const names = ['strict', 'open', 'prompts'];
  const words = { type: 'words', list: ['banana'], message: 'No fruit.' };
  const model = { kind: 'realtime', owned_by: 'x', targets: ['talks'], price: 'free' };
  gateway = await startGateway({
    plugins: [
      ...['storage', 'files', 'auth', 'providers', 'models', 'guardrails', 'prompts', 'billing', 'route'],
      ...['protocol-convert', 'websockets'],
    ],
    providers: { talks: { keys: 'k', speaks: { 'openai-realtime': `${at}/v1`, 'gemini-live': at } } },
    models: Object.fromEntries(names.map((name) => [name, model])),
    guardrails: {
      checks: { all: words, sent: { ...words, on: ['prompt'], beside: true } },
      policies: { strict: ['all'], open: { checks: ['all'], uncovered: 'allow' }, prompts: ['sent'] },
      apply: names.map((policy) => ({ policy, models: [policy] })),
    },
  });
});
after(async () => {
  await gateway?.stop();
  for (const client of sessions.clients) client.terminate();
  sessions.close();
});

async function keyOf(name: string): Promise<string> {
  await gateway.run('accounts create', { name, credit: '1' });
  return ((await gateway.run('keys create', { account: name, name })) as { key: string }).key;
}

test('a session of which answers would have to be checked is refused with 403, and one that its policy allows is not', async () => {
  const key = await keyOf('ada');
  const socket = new WebSocket(`${gateway.origin.replace('http', 'ws')}/v1/realtime?model=strict`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const [, answer] = await once(socket, 'unexpected-response');
  assert.equal(answer.statusCode, 403);
  let body = '';
  for await (const chunk of answer) body += chunk;
  const { error } = JSON.parse(body);
  assert.equal(error.code, 'guardrail_not_applicable');
  assert.match(error.message, /cannot be applied to the operation "realtime"/);
  for (const model of ['open', 'prompts']) {
    received.length = 0;
    const client = await talk(gateway.origin, key, `/v1/realtime?model=${model}`);
    const said = (text: string) => ({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
    });
    client.send(said('a banana'));
    await until('it is refused', () => client.messages.some(({ error: one }) => one?.message === 'No fruit.'));
    client.send(said('a pear'));
    await until('the vendor has it', () => received.length === 1);
    assert.match(received[0]!, /a pear/);
    await client.close();
  }
});
