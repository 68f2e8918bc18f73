/** HTTP APIs as tools: what their operations become, what is sent, what it costs, and what cannot lead out of the API. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { multipart } from '../../../plugins/mcp/http-api/multipart.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';
import { type ApiServer, contacts, startApi } from './api-server.ts';
import { openWorld, type World } from './world.ts';

let api: ApiServer;
let world: World;
before(async () => {
  api = await startApi();
  const file = join(temporaryDirectory(), 'crm.json');
  await writeFile(file, JSON.stringify(contacts));
  const of = (name: string, more: string) => `    ${name}: { url: "${api.origin}/v1?token=t1", ${more} }\n`;
  world = await openWorld({
    lists: '1s',
    apis:
      of(
        'crm',
        `openapi: "${file}", allow_private: true, headers: { X-Key: secret-key }, within: 2s, price: { call: 0.5 }`,
      ) +
      of(
        'web',
        `openapi: "${api.origin}/openapi.json", allow_private: true, tools: [get*], price: { call: 0.5, failed: true }`,
      ) +
      of('inside', `openapi: "${file}"`),
  });
});
after(async () => {
  await world.stop();
  await api.stop();
});

const open = async (usd = '10') => {
  const account = await world.account(usd);
  return { ...account, connected: await world.client(account.key, 'modern') };
};

test('operations are tools with arguments for parameters and body, and no argument for what the settings give', async () => {
  const { connected } = await open();
  const { tools } = await connected.listTools();
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  assert.deepEqual(
    tools.map(({ name }) => name).filter((name) => name.startsWith('crm')),
    [
      'big',
      'deleteContact',
      'getContact',
      'gone',
      'lead',
      'picture',
      'post_search',
      'replaceContact',
      'slow',
      'upload',
    ].map((name) => `crm__${name}`),
  );
  assert.ok(named.has('web__getContact') && !named.has('web__slow'));
  const { inputSchema, annotations, title } = named.get('crm__getContact')!;
  assert.deepEqual(Object.keys(inputSchema.properties!), ['id', 'fields', 'tags', 'filter', 'x-trace', 'body']);
  assert.deepEqual([inputSchema.required, title, annotations!.readOnlyHint], [['id'], 'Gets a contact.', true]);
  const { properties, $defs, required } = named.get('crm__replaceContact')!.inputSchema;
  assert.deepEqual(
    [Object.keys(properties!), required],
    [
      ['body', 'id'],
      ['id', 'body'],
    ],
  );
  assert.deepEqual(
    [properties!['body'], $defs],
    [
      { $ref: '#/$defs/Contact' },
      {
        Contact: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string' },
            age: { type: ['integer', 'null'], exclusiveMinimum: 0 },
            friends: { type: 'array', items: { $ref: '#/$defs/Contact' } },
          },
        },
      },
    ],
  );
  await connected.close();
});

test('a call sends its arguments where the document says and the settings as they are, and is charged', async () => {
  const { id, connected } = await open();
  const result = await connected.callTool({
    name: 'crm__getContact',
    arguments: { id: 'a/b ?c', fields: ['x', 'y'], tags: ['1', '2'], filter: { a: 1 }, 'x-trace': 'on', body: 'q&' },
  });
  assert.deepEqual(result.structuredContent, { asked: '/v1/contacts/a%2Fb%20%3Fc' });
  const { method, url, headers } = api.seen.at(-1)!;
  const query = [...new URL(url, api.origin).searchParams].map((pair) => pair.join('='));
  assert.deepEqual(
    [method, query],
    ['GET', ['token=t1', 'fields=x', 'fields=y', 'tags=1,2', 'filter[a]=1', 'body=q&']],
  );
  assert.deepEqual([headers['x-key'], headers['x-trace'], headers['authorization']], ['secret-key', 'on', undefined]);
  await connected.callTool({ name: 'crm__replaceContact', arguments: { id: '7', body: { name: 'Ada', age: null } } });
  const put = api.seen.at(-1)!;
  assert.deepEqual(
    [put.method, put.headers['content-type'], put.body],
    ['PUT', 'application/json', '{"name":"Ada","age":null}'],
  );
  await connected.callTool({ name: 'crm__post_search', arguments: { body: { q: 'a b', all: [1, 2] } } });
  assert.equal(api.seen.at(-1)!.body, 'q=a+b&all=1&all=2');
  const picture = await connected.callTool({ name: 'crm__picture', arguments: {} });
  assert.deepEqual(picture.content, [{ type: 'image', data: 'AQID', mimeType: 'image/png' }]);
  assert.equal((await world.charges(id, 4)).length, 4);
  assert.equal(await world.balance(id), 8_000_000_000n);
  await connected.close();
});

test('arguments that are missing, unknown, too deep or lead elsewhere are the failure of the tool, and nothing is sent or charged', async () => {
  const { id, connected } = await open();
  const sent = api.seen.length;
  const cases: [string, Record<string, unknown>, RegExp][] = [
    ['getContact', {}, /argument "id" is missing/],
    ['getContact', { id: '..' }, /argument "id" must be a name/],
    ['getContact', { id: '.' }, /argument "id" must be a name/],
    ['getContact', { id: '' }, /argument "id" must be a name/],
    ['getContact', { id: { a: { b: 1 } } }, /too deep/],
    ['getContact', { id: '1', 'x-trace': 'a\r\nx-key: mine' }, /printable ASCII/],
    ['getContact', { id: '1', 'x-key': 'mine' }, /no argument "x-key"/],
    ['replaceContact', { id: '1' }, /argument "body" is missing/],
  ];
  for (const server of ['crm', 'web'] as const) {
    for (const [name, given, message] of cases) {
      if (server === 'web' && name !== 'getContact') continue;
      if (server === 'web' && 'x-key' in given) continue;
      const ready = server === 'web' ? { 'x-key': 'k', ...given } : given;
      const result = await connected.callTool({ name: `${server}__${name}`, arguments: ready });
      assert.equal(result.isError, true);
      assert.match((result.content[0] as { text: string }).text, message);
    }
  }
  assert.equal(api.seen.length, sent);
  assert.equal(await world.balance(id), 10_000_000_000n);
  await connected.close();
});

test('an API that refuses, is late, answers too much or redirects inwards is a failure that names no address', async () => {
  const { id, connected } = await open();
  const gone = await connected.callTool({ name: 'crm__gone', arguments: {} });
  assert.equal(gone.isError, true);
  assert.match(JSON.stringify(gone.content), /status 404\. none at \*\*\*/);
  for (const [name, message] of [
    ['big', /did not answer as it should/],
    ['slow', /did not answer in time/],
    ['lead', /did not answer as it should/],
  ] as const)
    await assert.rejects(connected.callTool({ name: `crm__${name}`, arguments: {} }), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /127\.0\.0|secret/);
      return true;
    });
  const sent = api.seen.length;
  await assert.rejects(connected.callTool({ name: 'inside__gone', arguments: {} }), /did not answer as it should/);
  assert.equal(api.seen.length, sent, 'a private address is not asked unless the settings allow it');
  assert.equal(await world.balance(id), 10_000_000_000n);
  await connected.close();
});

test('a document that changes at its address changes the tools, and a broken one keeps them', async () => {
  const { key } = await open();
  const listed = async () => {
    const connected = await world.client(key, 'modern', { path: '/mcp', headers: { 'x-gateway-tools': 'web' } });
    const { tools } = await connected.listTools();
    await connected.close();
    return tools.map(({ name }) => name).join(' ');
  };
  assert.equal(await listed(), 'web__getContact');
  api.document = { ...contacts, paths: { ...contacts.paths, '/new': { get: { operationId: 'getNew' } } } };
  await until('the new tool', async () => (await listed()) === 'web__getContact web__getNew');
  api.document = { openapi: '2.0' };
  assert.equal(await listed(), 'web__getContact web__getNew');
});

test('a form with files is sent in parts, with files that models give as base64', async () => {
  const { connected } = await open();
  const { tools } = await connected.listTools();
  const { properties } = tools.find(({ name }) => name === 'crm__upload')!.inputSchema.properties!['body'] as {
    properties: Record<string, Record<string, unknown>>;
  };
  assert.deepEqual([properties['file']!['contentEncoding'], properties['title']], ['base64', { type: 'string' }]);
  assert.equal((properties['pages']!['items'] as Record<string, unknown>)['contentEncoding'], 'base64');
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const body = {
    file: base64('a;b\r\n--x'),
    pages: [base64('1'), base64('2')],
    title: 'Größe "1"',
    contact: { id: 1 },
  };
  const { isError } = await connected.callTool({ name: 'crm__upload', arguments: { body } });
  assert.notEqual(isError, true);
  const { body: sent, headers } = api.seen.at(-1)!;
  const type = String(headers['content-type']);
  const form = await new Response(sent, { headers: { 'content-type': type } }).formData();
  const file = form.get('file') as File;
  assert.deepEqual([await file.text(), file.type, file.name], ['a;b\r\n--x', 'text/csv', 'file']);
  assert.deepEqual(await Promise.all((form.getAll('pages') as File[]).map((one) => one.text())), ['1', '2']);
  assert.deepEqual([form.get('title'), form.get('contact')], ['Größe "1"', '{"id":1}']);
  const count = api.seen.length;
  const wrong = await connected.callTool({ name: 'crm__upload', arguments: { body: { file: 'no base64!' } } });
  assert.deepEqual([wrong.isError, api.seen.length], [true, count]);
  await connected.close();
});

test('parts keep every byte of a file, and a name cannot add a header or end a part', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  const name = 'a"\r\nx-evil: 1';
  const { type, body } = multipart({ [name]: bytes.toString('base64') }, new Map([[name, 'image/png']]));
  const form = await new Response(body as Uint8Array<ArrayBuffer>, { headers: { 'content-type': type } }).formData();
  const [[, file]] = [...form] as [[string, File]];
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), bytes);
  assert.doesNotMatch(Buffer.from(body).toString('latin1'), /\nx-evil/);
});
