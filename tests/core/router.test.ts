/** Paths as clients write them, and whose words an error is told in that came to no endpoint. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../core/contract.ts';
import { createRouter, withoutDoubledVersion } from '../../core/router.ts';

const run = () => Promise.reject(new Error('not run'));
const endpoint = (method: Endpoint['method'], path: string): Endpoint => ({ method, path, operation: path });
const router = createRouter(
  [
    endpoint('POST', '/v1/messages'),
    endpoint('GET', '/v1/models'),
    endpoint('GET', '/v1/models/:model'),
    endpoint('POST', '/v1beta/models/*'),
  ].map((given) => ({ endpoint: given, run })),
);

test('a version in the base address and one of the client: the second one counts', () => {
  for (const [written, meant] of [
    ['/v1/v1/messages', '/v1/messages'],
    ['/v1/v1beta/models/m:generateContent', '/v1beta/models/m:generateContent'],
    ['/v1beta/v1beta/models/m:generateContent', '/v1beta/models/m:generateContent'],
    ['/v1beta/v1/models/m:generateContent', '/v1/models/m:generateContent'],
    ['/v1beta/v1alpha/models', '/v1alpha/models'],
    ['/v1/models', '/v1/models'],
    ['/v1beta/models/v1', '/v1beta/models/v1'],
    ['/v2/v1/models', '/v2/v1/models'],
    ['/v1', '/v1'],
    ['/', '/'],
  ] as const) {
    assert.equal(withoutDoubledVersion(written), meant);
  }
});

test('HEAD is answered wherever GET is, and told of', () => {
  const found = router.find('HEAD', '/v1/models');
  assert.ok(found !== undefined && 'route' in found && found.route.endpoint.path === '/v1/models');
  assert.deepEqual(router.find('POST', '/v1/models'), ['GET', 'HEAD']);
  assert.deepEqual(router.find('HEAD', '/v1/messages'), ['POST']);
});

test('the nearest endpoint is the one at the path, else the one above it, else none', () => {
  const nearest = (path: string) => router.nearest(path)?.path;
  assert.equal(nearest('/v1/messages'), '/v1/messages');
  assert.equal(nearest('/v1/messages/batches/b1'), '/v1/messages');
  assert.equal(nearest('/v1/models/m/x'), '/v1/models/:model');
  assert.equal(nearest('/v1beta/models/m:countTokens'), '/v1beta/models/*');
  assert.equal(nearest('/v1/embeddings'), undefined);
  assert.equal(nearest('nothing'), undefined);
  assert.equal(nearest(`/v1/messages${'/x'.repeat(30_000)}`), '/v1/messages');
});
