/** Tools through the gateway: clients of both eras to servers of both, what a key may use, errors, outages, bounds and money. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Agent, fetch as fetchBy } from 'undici';
import { until } from '../../helpers/until.ts';
import { type Era, openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({ servers: ', price: { call: 0.5, tools: { zeta: 2 } }' });
});
after(() => world.stop());

const eras = ['modern', 'legacy'] as const;
const nameOf: Record<Era, string> = { modern: 'new', legacy: 'old' };

for (const client of eras) {
  for (const server of eras) {
    test(`a ${client} client of a ${server} server gets result, structure and links, and is charged the price`, async () => {
      const { id, key } = await world.account('10');
      const connected = await world.client(key, client);
      const name = `${nameOf[server]}__echo`;
      const result = await connected.callTool({ name, arguments: { text: 'hi' } });
      assert.deepEqual(result.content, [
        { type: 'text', text: 'echo: hi' },
        { type: 'resource_link', uri: `${nameOf[server]}+note://1`, name: 'one' },
      ]);
      assert.deepEqual(result.structuredContent, { given: { text: 'hi' } });
      assert.doesNotMatch(JSON.stringify(result), /secret-vendor/);
      const [charge] = await world.charges(id, 1);
      assert.equal(charge!.change, '-0.50');
      assert.deepEqual(charge!.detail.usage, { call: 1 });
      assert.equal(await world.balance(id), 9_500_000_000n);
      assert.equal(world.servers[server].seen.at(-1)!.headers['x-key'], `of-${nameOf[server]}`);
      await connected.close();
    });
  }

  test(`a ${client} client lists tools of all servers in one order, and resources, templates and prompts`, async () => {
    const { key } = await world.account('0');
    const connected = await world.client(key, client);
    const names = ['big', 'echo', 'fails', 'routed', 'slow', 'throws', 'zeta'];
    const { tools } = await connected.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['new', 'old'].flatMap((server) => names.map((name) => `${server}__${name}`)),
    );
    const { resources } = await connected.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['new+note://1', 'old+note://1'],
    );
    const { resourceTemplates } = await connected.listResourceTemplates();
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      ['new+note://{id}', 'old+note://{id}'],
    );
    const read = await connected.readResource({ uri: 'old+note://1' });
    assert.deepEqual(read.contents, [{ uri: 'old+note://1', text: 'read note://1' }]);
    const { prompts } = await connected.listPrompts();
    assert.deepEqual(
      prompts.map(({ name }) => name),
      ['new__greet', 'old__greet'],
    );
    const prompt = await connected.getPrompt({ name: 'new__greet', arguments: { who: 'you' } });
    assert.deepEqual(prompt.messages[0]!.content, { type: 'text', text: 'greet you' });
    const argument = { name: 'id', value: '' };
    const byName = await connected.complete({ ref: { type: 'ref/prompt', name: 'old__greet' }, argument });
    assert.deepEqual(byName.completion.values, ['greet!']);
    const byUri = await connected.complete({ ref: { type: 'ref/resource', uri: 'new+note://{id}' }, argument });
    assert.deepEqual(byUri.completion.values, ['note://{id}!']);
    await connected.close();
  });

  test(`a ${client} client gets progress, and its cancellation reaches the server`, async () => {
    const { id, key } = await world.account('10');
    const connected = await world.client(key, client);
    const progress: unknown[] = [];
    const call = (ms: number, signal?: AbortSignal) =>
      connected.callTool(
        { name: 'old__slow', arguments: { text: 'x', ms } },
        { onprogress: (one) => void progress.push(one), ...(signal === undefined ? {} : { signal }) },
      );
    await call(1);
    assert.deepEqual(progress, [{ progress: 1, total: 2 }]);
    const gone = new AbortController();
    const cancelled = call(60_000, gone.signal);
    await until('progress', () => progress.length === 2);
    const before = world.servers.legacy.aborted.length;
    gone.abort();
    await assert.rejects(cancelled);
    await until('the abort at the server', () => world.servers.legacy.aborted.length > before);
    // It ran, so it is charged.
    await world.charges(id, 2);
    await connected.close();
  });

  test(`an argument that is a header too reaches a modern server as both from a ${client} client`, async () => {
    const { key } = await world.account('10');
    const connected = await world.client(key, client);
    await connected.listTools();
    await connected.callTool({ name: 'new__routed', arguments: { text: 'north' } });
    assert.equal(world.servers.modern.seen.at(-1)!.headers['mcp-param-region'], 'north');
    await connected.close();
  });

  test(`an unknown tool is the protocol's error for a ${client} client, and costs nothing`, async () => {
    const { id, key } = await world.account('1');
    const connected = await world.client(key, client);
    for (const name of ['new__nothing', 'nothing', 'other__echo', 'new__'])
      await assert.rejects(connected.callTool({ name }), { code: -32_602, message: /Unknown tool/ });
    assert.equal(await world.balance(id), 1_000_000_000n);
    await connected.close();
  });
}

test('a call that fails costs nothing, and its error names no vendor and no address', async () => {
  const { id, key } = await world.account('1');
  const connected = await world.client(key, 'modern');
  const failed = await connected.callTool({ name: 'new__fails' });
  assert.equal(failed.isError, true);
  await assert.rejects(connected.callTool({ name: 'old__throws' }), (error: Error & { code: number }) => {
    assert.equal(error.code, -32_602);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
  await assert.rejects(connected.callTool({ name: 'new__big' }), (error: Error) => {
    assert.match(error.message, /did not answer as it should/);
    assert.doesNotMatch(error.message, /127\.0\.0\.1|secret/);
    return true;
  });
  await connected.callTool({ name: 'new__echo' });
  const charges = await world.charges(id, 1);
  assert.equal(charges.length, 1);
  assert.equal(await world.balance(id), 500_000_000n);
});

test('a server that was away is used again at once, and its tools stay listed meanwhile', async () => {
  const { key } = await world.account('10');
  const connected = await world.client(key, 'modern');
  await connected.listTools();
  for (const server of Object.values(world.servers)) server.status = 503;
  for (const name of ['new__echo', 'old__echo'])
    await assert.rejects(connected.callTool({ name }), /server of this tool/);
  assert.equal((await connected.listTools()).tools.length, 14);
  for (const server of Object.values(world.servers)) server.status = undefined;
  for (const name of ['new__echo', 'old__echo']) await connected.callTool({ name });
  world.servers.legacy.restart();
  // A lost session is opened again, and the call made once.
  const result = await connected.callTool({ name: 'old__echo', arguments: { text: 'again' } });
  assert.match(JSON.stringify(result.content), /echo: again/);
});

test('tools are narrowed by a bundle, a header and the models of a key, in lists and in calls', async () => {
  const { key } = await world.account('10');
  const bound = await world.account('10', ['new__echo', 'gpt-x']);
  const listed = async (of: string, options: Parameters<World['client']>[2]) => {
    const connected = await world.client(of, 'modern', options);
    const { tools } = await connected.listTools();
    await connected.close();
    return tools.map(({ name }) => name).join(' ');
  };
  const all = 'big echo fails routed slow throws zeta';
  const old = all.split(' ').map((name) => `old__${name}`);
  assert.equal(await listed(key, { path: '/mcp/some' }), ['new__echo', ...old].join(' '));
  const header = (value: string) => ({ headers: { 'x-gateway-tools': value } });
  assert.equal(await listed(key, header('new/*o, old__zeta')), 'new__echo old__zeta');
  assert.equal(await listed(key, { path: '/mcp/some', ...header('new') }), 'new__echo');
  assert.equal(await listed(bound.key, {}), 'new__echo');
  assert.equal(await listed(bound.key, header('some')), 'new__echo');
  assert.equal(await listed(bound.key, { path: '/mcp/some', ...header('old') }), '');
  const connected = await world.client(bound.key, 'modern');
  await assert.rejects(connected.callTool({ name: 'old__echo' }), { code: -32_602 });
  assert.deepEqual((await connected.listResources()).resources, []);
  await assert.rejects(connected.readResource({ uri: 'old+note://1' }), { code: -32_602 });
  await assert.rejects(connected.getPrompt({ name: 'old__greet' }), { code: -32_602 });
});

test('a key of the command with tools has these tools, by pattern, server or bundle, and the models beside them alone', async () => {
  const { id } = await world.account('10');
  const create = world.gateway.gateway.commands.find(({ name }) => name === 'keys create')!;
  const listed = async (options: Record<string, string>) => {
    const { key } = (await create.run({ account: id, name: 'tools', ...options })).json as { key: string };
    const connected = await world.client(key, 'modern');
    const { tools } = await connected.listTools();
    await connected.close();
    return tools.map(({ name }) => name).join(' ');
  };
  assert.equal(await listed({ tools: 'new/e*, old__zeta' }), 'new__echo old__zeta');
  assert.equal(await listed({ tools: 'old/z*', models: 'gpt-x' }), 'old__zeta');
  const all = 'big echo fails routed slow throws zeta'.split(' ').map((name) => `old__${name}`);
  assert.equal(await listed({ tools: 'some' }), ['new__echo', ...all].join(' '));
  assert.equal(await listed({ models: 'gpt-x' }), '');
});

test('without a key, without money or at no bundle the answer is an error of JSON-RPC with its status', async () => {
  const { key } = await world.account('0');
  const post = async (path: string, of: string, body: string) => {
    const headers = {
      authorization: `Bearer ${of}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const answer = await fetch(`${world.gateway.origin}${path}`, { method: 'POST', headers, body });
    // biome-ignore lint/suspicious/noExplicitAny: errors of several kinds are asserted on
    return [answer.status, (await answer.json()) as any] as const;
  };
  const message = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'new__zeta', arguments: {} } };
  const [unknown, none] = await post('/mcp', 'sk-wrong', JSON.stringify(message));
  assert.deepEqual([unknown, none.jsonrpc, none.error.data.code], [401, '2.0', none.error.data.code]);
  const [poor, refused] = await post('/mcp', key, JSON.stringify(message));
  assert.deepEqual([poor, refused.id, refused.error.code], [402, 7, -32_000]);
  const [nowhere, lost] = await post('/mcp/else', key, JSON.stringify(message));
  assert.deepEqual([nowhere, lost.error.data.code], [404, 'unknown_bundle']);
  const [batch] = await post('/mcp', key, JSON.stringify([message]));
  assert.equal(batch, 400);
});

test('a call with a header that differs from its argument is refused before it costs anything', async () => {
  const { id, key } = await world.account('1');
  const calls = world.servers.modern.seen.length;
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'new__routed', arguments: { text: 'north' }, _meta: meta };
  const answer = await fetch(`${world.gateway.origin}/mcp`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28' },
      ...{ 'mcp-method': 'tools/call', 'mcp-name': 'new__routed', 'mcp-param-region': 'south' },
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  assert.equal(answer.status, 400);
  assert.equal(((await answer.json()) as { error: { code: number } }).error.code, -32_020);
  assert.equal(world.servers.modern.seen.slice(calls).filter(({ method }) => method === 'tools/call').length, 0);
  assert.equal(await world.balance(id), 1_000_000_000n);
});

test('exactly 50 of 2,000 calls, 256 at once, on money for 50 are made and charged', async () => {
  // A system that is busy refuses connections beyond what it keeps waiting.
  const dispatcher = new Agent({ connections: 256 });
  const { id, key } = await world.account('25');
  const calls = world.servers.modern.seen.length;
  const headers = {
    ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
  };
  const statuses = new Map<string, number>();
  const one = async (number: number) => {
    const params = { name: 'new__echo', arguments: { text: String(number) } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: number, method: 'tools/call', params });
    const answer = await fetchBy(`${world.gateway.origin}/mcp`, { method: 'POST', headers, body, dispatcher });
    const text = await answer.text();
    const kind = text.includes(`echo: ${number}`) ? 'made' : String(answer.status);
    statuses.set(kind, (statuses.get(kind) ?? 0) + 1);
    // A refusal for too many at once says nothing of money.
    if (answer.status === 429) await one(number);
  };
  await Promise.all(Array.from({ length: 2_000 }, (_, number) => one(number)));
  assert.equal(statuses.get('made'), 50);
  assert.equal(statuses.get('402'), 1_950);
  assert.equal((await world.charges(id, 50)).length, 50);
  assert.equal(await world.balance(id), 0n);
  const made = world.servers.modern.seen.slice(calls).filter(({ method }) => method === 'tools/call');
  assert.equal(made.length, 50);
  await dispatcher.close();
});
