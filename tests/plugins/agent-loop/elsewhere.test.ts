/** Servers of tools that a request names by their public address: asked where the settings allow it, with the client's own secrets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { namedAt } from '../../../plugins/agent-loop/elsewhere.ts';
import { type RunningVendor, startVendor } from '../../../plugins/sandbox/vendor.ts';
import { type StandInProxy, startHttpProxy } from '../../helpers/network-stand-ins.ts';
import { type Json, openWorld, type World } from './world.ts';

let server: RunningVendor;
let proxy: StandInProxy;
let world: World;
before(async () => {
  server = await startVendor({ key: 'client-token' });
  // Every name leads to this server; addresses in numbers are still judged.
  proxy = await startHttpProxy({ to: Number(new URL(server.origin).port) });
  world = await openWorld({
    loop: '{ any_server: true }',
    more: `outbound: { proxy: "http://127.0.0.1:${proxy.port}" }`,
  });
});
after(async () => {
  await world.gateway.stop();
  await proxy.close();
  await server.close();
});

const url = 'http://tools.example.com/mcp';
const weather = 'What is the weather in Oslo?';
const tool = {
  type: 'mcp',
  server_label: 'town',
  server_url: url,
  authorization: 'client-token',
  require_approval: 'never',
};
const called = /The tool server\d+__weather answered: .*Oslo/;

test('a server elsewhere is asked with the token of the client, in all four protocols, and its calls are steps that cost nothing', async () => {
  const { id, key } = await world.account();
  const user = [{ role: 'user', content: weather }];
  const headers = { authorization: 'Bearer client-token' };
  const requests: [string, object][] = [
    ['/v1/responses', { model: 'of-gemini', input: weather, tools: [tool] }],
    ['/v1/chat/completions', { model: 'of-responses', messages: user, tools: [tool] }],
    [
      '/v1/messages',
      {
        ...{ model: 'of-chat', max_tokens: 900, messages: user },
        mcp_servers: [{ type: 'url', url, name: 'town', authorization_token: 'client-token' }],
      },
    ],
    [
      '/v1beta/models/of-messages:generateContent',
      {
        contents: [{ role: 'user', parts: [{ text: weather }] }],
        tools: [{ mcpServers: [{ name: 'town', streamableHttpTransport: { url, headers } }] }],
      },
    ],
  ];
  for (const [path, body] of requests) {
    const answer = await world.post(path, key, body);
    assert.match(await answer.text(), called, path);
  }
  assert.ok(proxy.requested.length > 0 && proxy.requested.every((name) => name === 'tools.example.com:80'));
  const charges = await world.charges(id, 8);
  assert.equal(charges.filter(({ change }) => change.startsWith('-0.5')).length, 0);
});

test('a server elsewhere that does not take the token has no tools, and nothing of it is shown', async () => {
  const { key } = await world.account();
  const answer = await world.post('/v1/responses', key, {
    ...{ model: 'of-chat', input: weather, tools: [{ ...tool, authorization: 'wrong' }] },
  });
  const text = await answer.text();
  assert.equal(answer.status, 400);
  assert.match(text, /no_tools/);
  assert.doesNotMatch(text, /wrong|example\.com|127\.0/);
});

test('an address of this machine or of a private network is never asked', async () => {
  const { key } = await world.account();
  const asked = proxy.requested.length;
  for (const place of [
    server.origin,
    'http://10.0.0.1',
    'http://[::1]',
    'http://169.254.169.254',
    'https://192.168.1.1',
  ]) {
    const tools = [{ ...tool, server_url: `${place}/mcp` }];
    const answer = await world.post('/v1/responses', key, { model: 'of-chat', input: weather, tools });
    assert.equal(answer.status, 400, place);
  }
  assert.equal(proxy.requested.length, asked);
});

test('a key that is bound to models has no tools of servers elsewhere', async () => {
  const { key } = await world.account('10', ['of-chat', 'sandbox/*']);
  const answer = await world.post('/v1/responses', key, { model: 'of-chat', input: weather, tools: [tool] });
  assert.match(await answer.text(), /no_tools/);
});

test('headers of the connection, long lists of them and addresses with a password are refused by their field', () => {
  const field = { url: 'u', token: 't', headers: 'h' };
  const named = (more: object) => namedAt({ url, ...more }, field, 0);
  assert.deepEqual(named({ headers: { 'X-Key': 'k' }, token: 't' })!.headers, {
    'x-key': 'k',
    authorization: 'Bearer t',
  });
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`x-${index}`, 'v']));
  const wrong: [object, string][] = [
    [{ headers: { Host: 'x' } }, 'h'],
    [{ headers: { 'content-length': '1' } }, 'h'],
    [{ headers: { 'mcp-session-id': '1' } }, 'h'],
    [{ headers: { a: 'b\r\nc: d' } }, 'h'],
    [{ headers: { a: 1 } }, 'h'],
    [{ headers: ['a'] }, 'h'],
    [{ headers: many }, 'h'],
    [{ token: 7 }, 't'],
    [{ token: 'a\nb' }, 't'],
    [{ url: 'https://me:secret@tools.example.com/' }, 'u'],
    [{ url: `https://tools.example.com/${'x'.repeat(2_048)}` }, 'u'],
  ];
  for (const [more, at] of wrong)
    assert.throws(() => named(more), { kind: 'invalid_request', field: at }, JSON.stringify(more).slice(0, 80));
  for (const other of ['sandbox:/mcp', 'file:///etc/passwd', 7, undefined])
    assert.equal(named({ url: other }), undefined);
});

test('a server elsewhere is left to the vendor of the model where the settings do not say otherwise', async () => {
  await using usual: World = await openWorld({ more: `outbound: { proxy: "http://127.0.0.1:${proxy.port}" }` });
  const { key } = await usual.account();
  const asked = proxy.requested.length;
  const answer = await usual.post('/v1/responses', key, { model: 'of-responses', input: weather, tools: [tool] });
  const { error }: Json = await answer.json();
  assert.deepEqual([answer.status, error.code], [400, 'tool_not_priced']);
  assert.equal(proxy.requested.length, asked);
});
