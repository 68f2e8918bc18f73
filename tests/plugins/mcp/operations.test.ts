/** Documents that are large, broken or hostile: what becomes of their operations, and that no argument leads out of the API. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { WrongArguments } from '../../../plugins/mcp/errors.ts';
import { requestOf } from '../../../plugins/mcp/http-api/arguments.ts';
import { operationsOf } from '../../../plugins/mcp/http-api/operations.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { fc } from '../../helpers/properties.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const none = { headers: new Set<string>(), query: new Set<string>() };
const read = (paths: object, more: object = {}, most = 512) =>
  operationsOf({ openapi: '3.1.0', paths, ...more }, none, () => true, most);
const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };

test('whatever the arguments are, a request stays below the address of its API and has its headers', () => {
  const places = ['path', 'query', 'header', 'cookie'] as const;
  const parameters = [
    id,
    ...places.slice(1).map((place) => ({ ...id, name: `a-${place}`, in: place, required: false })),
  ];
  const content = { 'application/json': { schema: {} } };
  const { operations } = read({ '/things/{id}/x': { post: { parameters, requestBody: { content } } } });
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '..',
      '../..',
      '%2e%2e',
      '/',
      '\\',
      '//evil.example',
      '@evil.example',
      '?a',
      '#a',
      '\ud800',
      'é',
      'k',
      ';',
    ),
  );
  const value = fc.oneof(text, fc.integer(), fc.array(text), fc.dictionary(text, text), fc.anything());
  const given = fc.record({ id: value, 'a-query': value, 'a-header': value, 'a-cookie': value, body: fc.jsonValue() });
  let made = 0;
  fc.assert(
    fc.property(given, (values) => {
      try {
        const { url, headers } = requestOf(operations[0]!, values, 'https://api.example:8443/v1?k=1', { 'x-key': 's' });
        const { origin, pathname, searchParams, hash } = new URL(url);
        assert.deepEqual([origin, searchParams.getAll('k'), hash], ['https://api.example:8443', ['1'], '']);
        assert.match(pathname, /^\/v1\/things\/[^/]+\/x$/);
        assert.equal(headers['x-key'], 's');
        // What cannot be a header is refused here, and not by a library that quotes it.
        new Headers(headers);
        made++;
      } catch (error) {
        if (!(error instanceof WrongArguments)) throw error;
      }
    }),
    { numRuns: 500 },
  );
  assert.ok(made > 50, `${made} requests were made`);
});

test('operations that cannot be called are left out with the reason, and the others are there', () => {
  const good = { operationId: 'good' };
  const far = { 'application/json': { schema: { $ref: 'https://elsewhere.example/x.json' } } };
  const { operations, leftOut } = read(
    {
      '/good': { get: good, post: { ...good, operationId: 'good' } },
      '/lost': { $ref: '#/components/pathItems/none' },
      '/a/{id}': { get: { operationId: 'undescribed' } },
      '/b?x=1': { get: { operationId: 'query' } },
      '/c': { post: { operationId: 'far', requestBody: { content: far } } },
      '/d': { get: { operationId: 'round', parameters: [{ $ref: '#/components/parameters/one' }] } },
      '/e': { get: { operationId: 'wide', parameters: [{ ...id, in: 'body' }] } },
      '/f': { post: { operationId: 'deep', requestBody: { content: { 'application/json': { schema: deep(100) } } } } },
      'no-slash': { get: { operationId: 'no-slash' } },
    },
    {
      components: {
        parameters: { one: { $ref: '#/components/parameters/two' }, two: { $ref: '#/components/parameters/one' } },
      },
    },
  );
  const names = operations.map(({ tool }) => tool.name);
  assert.equal(names[0], 'good');
  assert.match(names[1]!, /^good_[0-9a-f]{8}$/);
  assert.equal(names.length, 2);
  assert.deepEqual(
    leftOut.map((line) => line.split(':')[0]),
    ['undescribed', 'query', 'far', 'round', 'wide', 'deep'],
  );
});

function deep(levels: number): object {
  return levels === 0 ? { type: 'string' } : { type: 'object', properties: { a: deep(levels - 1) } };
}

test('operations beyond the most of a server are left out, before their schemas are read', () => {
  const paths = Object.fromEntries(
    Array.from({ length: 20 }, (_, number) => [`/${number}`, { get: { operationId: `o${number}` } }]),
  );
  const { operations, leftOut } = read(paths, {}, 5);
  assert.deepEqual([operations.length, leftOut.length], [5, 15]);
});

test('a document that cannot be used is a fault of the file, and of a reload that brings it', async () => {
  const directory = temporaryDirectory();
  const yaml = (document: string, url = 'http://127.0.0.1:9') =>
    `gateway: test\nlisten: 127.0.0.1:0\nplugins: [storage, telemetry, request-log, auth, plans, billing, mcp]\nplans: { default: free, offers: { free: { price: 0 } } }\nmcp: { servers: { crm: { url: "${url}", openapi: "${join(directory, document)}" } } }\n`;
  await writeFile(join(directory, 'good.yaml'), 'openapi: 3.1.0\npaths: { /a: { get: {} } }\n');
  await writeFile(join(directory, 'old.json'), '{ "swagger": "2.0", "paths": {} }');
  await writeFile(join(directory, 'empty.yaml'), 'openapi: 3.0.0\npaths: {}\n');
  await writeFile(join(directory, 'text.yaml'), 'just: [broken\n');
  const faults = {
    'none.yaml': /cannot be read \(ENOENT\)/,
    'old.json': /no OpenAPI document of version 3/,
    'empty.yaml': /no operation/,
    'text.yaml': /neither JSON nor YAML/,
  };
  await using gateway = await startGateway(yaml('good.yaml'));
  for (const [document, message] of Object.entries(faults)) {
    await assert.rejects(startGateway(yaml(document)), message);
    await writeFile(join(gateway.directory, 'gateway.yaml'), yaml(document));
    assert.match((await gateway.gateway.reload()).problems[0]!.message, message);
  }
  await assert.rejects(startGateway(yaml('good.yaml', 'sandbox:/mcp')), /must be an http\(s\) address/);
});
