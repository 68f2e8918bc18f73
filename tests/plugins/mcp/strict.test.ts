/** The gateway as a client of strict servers of earlier revisions: forms of answers, pages, changes of lists, and answers that do not come. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type Message,
  type Reply,
  type Respond,
  result,
  type StrictServer,
  startStrictServer,
  tool,
} from './strict-server.ts';
import { openWorld, type World } from './world.ts';

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
const note = (method: string, params: object = {}) => ({ jsonrpc: '2.0', method: `notifications/${method}`, params });

type Page = readonly [names: readonly string[], nextCursor?: string];

const kinds: Readonly<Record<string, readonly [member: string, shown: (name: string) => object]>> = {
  'tools/list': ['tools', tool],
  'prompts/list': ['prompts', (name) => ({ name })],
  'resources/list': ['resources', (name) => ({ name, uri: `note://${name}` })],
  'resources/templates/list': ['resourceTemplates', (name) => ({ name, uriTemplate: `note://${name}/{id}` })],
};

/** `page`: of each list, by the cursor. `called`: the answer to a call. */
const offering =
  (page: (cursor: string | undefined) => Page, called: Respond): Respond =>
  (message) => {
    if (message.method === 'tools/call') return called(message);
    const [names, nextCursor] = page(message.params?.cursor);
    const [member, shown] = kinds[message.method]!;
    return { messages: [result(message, { [member]: names.map(shown), nextCursor })] };
  };

const one = (): Page => [['echo']];

/** Two steps for the token of the request, and one for a token that no request has. */
function steps(message: Message): object[] {
  const { progressToken } = message.params._meta ?? {};
  const step = (token: unknown, progress: number) => note('progress', { progressToken: token, progress, total: 2 });
  return progressToken === undefined ? [] : [step(progressToken, 1), step('of another', 9), step(progressToken, 2)];
}

const forms: Readonly<Record<string, (message: Message) => Reply>> = {
  json: (message) => ({ messages: [result(message, text('hi'))] }),
  stream: (message) => ({ form: 'stream', messages: [...steps(message), result(message, text('hi'))] }),
  'stream-ids': (message) => ({
    ...{ form: 'stream', firstId: '7' },
    messages: [note('message', { level: 'info', data: 'x' }), ...steps(message), result(message, text('hi'))],
  }),
};
const versions = ['2025-03-26', '2025-06-18', '2025-11-25'];

/** How a stream ends that has not brought the result. */
const ends: Readonly<Record<string, Reply>> = {
  closed: { form: 'stream', messages: [] },
  'closed-with-id': { form: 'stream', firstId: '7', messages: [] },
  'closed-late': { form: 'stream', messages: [note('message', { level: 'info', data: 'x' })] },
  cut: { form: 'cut', messages: [] },
};

const pages: Readonly<Record<string, Page>> = {
  first: [['a', 'b'], 'b=+/& 2'],
  'b=+/& 2': [['c'], '3'],
  '3': [['d']],
};

let world: World;
const servers = new Map<string, StrictServer>();
const start = async (name: string, version: string, respond: Respond) => {
  servers.set(name, await startStrictServer(version, respond));
};

before(async () => {
  for (const version of versions)
    for (const [form, called] of Object.entries(forms))
      await start(`v${version}-${form}`, version, offering(one, called));
  await start(
    'pages',
    '2025-06-18',
    offering((cursor) => pages[cursor ?? 'first']!, forms['json']!),
  );
  let number = 0;
  const endless = (): Page => [[`t${++number}`], `after ${number}`];
  await start('endless', '2025-11-25', offering(endless, forms['json']!));
  let more: string[] = [];
  const changing: Respond = (message) => {
    const changed = message.params.name === 'echo' ? ['tools', 'resources', 'prompts'] : [];
    if (changed.length > 0) more = ['new'];
    const notes = changed.map((kind) => note(`${kind}/list_changed`));
    return { form: 'stream', messages: [...notes, result(message, text('hi'))] };
  };
  await start(
    'changing',
    '2025-06-18',
    offering(() => [['echo', ...more]], changing),
  );
  const ending: Respond = (message) => ends[message.params.name] ?? forms['json']!(message);
  await start(
    'ending',
    '2025-11-25',
    offering(() => [[...Object.keys(ends), 'fine']], ending),
  );
  for (const [name, reply] of Object.entries(ends))
    await start(`list-${name}`, '2025-06-18', (message) =>
      message.method === 'tools/list' ? reply : offering(one, forms['json']!)(message),
    );
  // A request that is only over with its time makes its test fail by time.
  const lines = [...servers].map(
    ([name, { url }]) => `    ${name}: { url: "${url}", allow_private: true, within: 10m, price: { call: 0.5 } }\n`,
  );
  world = await openWorld({ apis: lines.join(''), lists: '1h' });
});
after(async () => {
  await world?.stop();
  await Promise.all([...servers.values()].map((server) => server.stop()));
});

const limit = { timeout: 60_000 };
const names = (listed: readonly { readonly name: string }[]) => listed.map(({ name }) => name);

async function clientOf(server: string) {
  const { id, key } = await world.account('10');
  const client = await world.client(key, 'legacy', { headers: { 'x-gateway-tools': server } });
  return { id, key, client, server: servers.get(server)! };
}

for (const version of versions)
  for (const form of Object.keys(forms))
    test(
      `a server of ${version} that answers by ${form} gets what its revision asks for, and its call is charged once`,
      limit,
      async () => {
        const name = `v${version}-${form}`;
        const { id, client, server } = await clientOf(name);
        assert.deepEqual(names((await client.listTools()).tools), [`${name}__echo`]);
        const progress: unknown[] = [];
        const answer = await client.callTool(
          { name: `${name}__echo`, arguments: {} },
          { onprogress: (step) => void progress.push(step) },
        );
        assert.deepEqual(answer.content, text('hi').content);
        const steps = [1, 2].map((step) => ({ progress: step, total: 2 }));
        assert.deepEqual(progress, form === 'json' ? [] : steps);
        assert.deepEqual(server.faults, []);
        const seen = ['server/discover', 'initialize', 'notifications/initialized', 'tools/list', 'tools/call'];
        assert.deepEqual(server.seen, seen);
        assert.deepEqual(
          (await world.charges(id, 1)).map(({ change }) => change),
          ['-0.50'],
        );
        await client.close();
      },
    );

test('lists of three pages are read whole, and a tool of the last page is called', limit, async () => {
  const { client, server } = await clientOf('pages');
  const letters = ['a', 'b', 'c', 'd'];
  const all = letters.map((name) => `pages__${name}`);
  assert.deepEqual(names((await client.listTools()).tools), all);
  assert.deepEqual(names((await client.listPrompts()).prompts), all);
  assert.deepEqual(names((await client.listResources()).resources), letters);
  assert.deepEqual(names((await client.listResourceTemplates()).resourceTemplates), letters);
  assert.deepEqual((await client.callTool({ name: 'pages__d' })).content, text('hi').content);
  assert.equal(server.seen.filter((method) => method === 'tools/list').length, 3);
  assert.deepEqual(server.faults, []);
  await client.close();
});

test(
  'a list without end is left out after 64 pages until lists are read again, and other servers are listed',
  limit,
  async () => {
    const { client } = await clientOf('endless,old');
    for (let time = 0; time < 2; time++) {
      const { tools } = await client.listTools();
      assert.equal(tools.length, 7);
      assert.ok(tools.every(({ name }) => name.startsWith('old__')));
    }
    await assert.rejects(client.callTool({ name: 'endless__t1' }), { code: -32_602 });
    const { seen, faults } = servers.get('endless')!;
    assert.equal(seen.filter((method) => method === 'tools/list').length, 64);
    assert.deepEqual(faults, []);
    await client.close();
  },
);

test(
  'lists that a server says have changed are read again by the next request, and others are kept',
  limit,
  async () => {
    const { client, server } = await clientOf('changing');
    const listed = async () => [
      names((await client.listTools()).tools),
      names((await client.listPrompts()).prompts),
      names((await client.listResources()).resources),
      names((await client.listResourceTemplates()).resourceTemplates),
    ];
    const [shown, plain] = [['changing__echo'], ['echo']];
    assert.deepEqual(await listed(), [shown, shown, plain, plain]);
    await client.callTool({ name: 'changing__echo' });
    const [shownNow, plainNow] = [
      [...shown, 'changing__new'],
      [...plain, 'new'],
    ];
    assert.deepEqual(await listed(), [shownNow, shownNow, plainNow, plainNow]);
    await client.callTool({ name: 'changing__new' });
    await listed();
    for (const kind of ['tools', 'prompts', 'resources', 'resources/templates'])
      assert.equal(server.seen.filter((method) => method === `${kind}/list`).length, 2, kind);
    await client.close();
  },
);

for (const end of Object.keys(ends)) {
  test(
    `a call fails at once, is sent once and costs nothing where its stream is ${end} before the result`,
    limit,
    async () => {
      const { id, client, server } = await clientOf('ending');
      const before = server.seen.length;
      await assert.rejects(client.callTool({ name: `ending__${end}` }), /did not answer as it should/);
      await client.callTool({ name: 'ending__fine' });
      assert.equal(server.seen.slice(before).filter((method) => method === 'tools/call').length, 2);
      assert.deepEqual(server.faults, []);
      await world.charges(id, 1);
      assert.equal(await world.balance(id), 9_500_000_000n);
      await client.close();
    },
  );

  test(
    `a list is left out at once where its stream is ${end} before the result, and other servers are listed`,
    limit,
    async () => {
      const { key } = await world.account('1');
      const client = await world.client(key, 'legacy', { headers: { 'x-gateway-tools': `list-${end},old` } });
      const { tools } = await client.listTools();
      assert.equal(tools.length, 7);
      assert.ok(tools.every(({ name }) => name.startsWith('old__')));
      await client.close();
    },
  );
}
