/** Paths as clients write them, and the endpoint that renders the error of a request without one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../core/contract/contract.ts';
import { createRouter, matchRoute } from '../../core/http/router.ts';

const run = () => Promise.reject(new Error('not run'));
const endpoint = (method: Endpoint['method'], path: string): Endpoint => ({ method, path, operation: path });
const router = createRouter(
  [
    endpoint('POST', '/v1/messages'),
    endpoint('GET', '/v1/models'),
    endpoint('GET', '/v1/models/:model'),
    endpoint('POST', '/v1beta/models/*'),
  ].map((given) => ({ endpoint: given, run })),
  ['/v1', '/v1beta', '/v1alpha'],
);

test('the second of two path prefixes works', () => {
  for (const [written, meant] of [
    ['/v1/v1/messages', '/v1/messages'],
    ['/v1/v1beta/models/m:generateContent', '/v1beta/models/m:generateContent'],
    ['/v1beta/v1beta/models/m:generateContent', '/v1beta/models/m:generateContent'],
    ['/v1beta/v1/models/m:generateContent', '/v1/models/m:generateContent'],
    ['/v1beta/v1alpha/models', '/v1alpha/models'],
    ['/v1/models', '/v1/models'],
    ['/v1beta/models/v1', '/v1beta/models/v1'],
    ['/v2/v1/models', '/v2/v1/models'],
    ['/v1/v1models', '/v1/v1models'],
    ['/v1x/v1/models', '/v1x/v1/models'],
    ['/v1/v1', '/v1'],
    ['/v1', '/v1'],
    ['/', '/'],
  ] as const) {
    assert.equal(router.normalize(written), meant);
  }
});

test('among endpoints at one path, one that accepts a request by its parameters precedes the usual one', () => {
  const special: Endpoint = { ...endpoint('POST', '/v1/models/*'), takes: ({ '*': name }) => name === 'paint' };
  const usual = endpoint('POST', '/v1/models/*');
  const both = createRouter([usual, special].map((given) => ({ endpoint: given, run })));
  assert.equal(matchRoute(both, 'POST', '/v1/models/paint').route.endpoint, special);
  assert.equal(matchRoute(both, 'POST', '/v1/models/talk').route.endpoint, usual);
  const alone = createRouter([{ endpoint: special, run }]);
  assert.throws(() => matchRoute(alone, 'POST', '/v1/models/talk'), { status: 404 });
});

test('a router without path prefixes removes and suggests none', () => {
  const plain = createRouter([{ endpoint: endpoint('POST', '/v1/messages'), run }]);
  assert.equal(plain.normalize('/v1/v1/messages'), '/v1/v1/messages');
  assert.equal(plain.suggest('POST', '/messages'), undefined);
});

test('a path without its prefix is refused with the address of the endpoint', () => {
  for (const [method, path, suggested] of [
    ['POST', '/messages', '/v1/messages'],
    ['GET', '/messages', '/v1/messages'],
    ['GET', '/models/m', '/v1/models/m'],
    ['POST', '/models/m/x', '/v1beta/models/m/x'],
    ['POST', '/embeddings', undefined],
  ] as const) {
    assert.equal(router.suggest(method, path), suggested);
    const hint = suggested === undefined ? '' : ` Did you mean ${suggested}?`;
    assert.throws(() => matchRoute(router, method, path), { message: `There is nothing at ${method} ${path}.${hint}` });
  }
});

test('a path matches as written, with additional slashes, and before a parameter that would match it', () => {
  const both = createRouter(
    [endpoint('GET', '/a/:name'), endpoint('GET', '/a/known'), endpoint('POST', '/a/known')].map((given) => ({
      endpoint: given,
      run,
    })),
  );
  const found = (method: string, path: string) => {
    const match = matchRoute(both, method, path);
    return [match.route.endpoint.method, match.route.endpoint.path, { ...match.params }];
  };
  for (const path of ['/a/known', '/a/known/', '//a//known', '/a/kno%77n'])
    assert.deepEqual(found('GET', path), ['GET', '/a/known', {}]);
  assert.deepEqual(found('POST', '/a/known'), ['POST', '/a/known', {}]);
  assert.deepEqual(found('HEAD', '/a/known'), ['GET', '/a/known', {}]);
  assert.deepEqual(found('GET', '/a/other'), ['GET', '/a/:name', { name: 'other' }]);
  assert.deepEqual(both.find('PUT', '/a/known'), ['GET', 'HEAD', 'POST']);
});

test('HEAD is answered and listed wherever GET is', () => {
  const found = router.find('HEAD', '/v1/models');
  assert.ok(found !== undefined && 'route' in found && found.route.endpoint.path === '/v1/models');
  assert.deepEqual(router.find('POST', '/v1/models'), ['GET', 'HEAD']);
  assert.deepEqual(router.find('HEAD', '/v1/messages'), ['POST']);
});

test('the nearest endpoint is the one at the path, else the one above it, else undefined', () => {
  const nearest = (path: string) => router.nearest(path)?.path;
  assert.equal(nearest('/v1/messages'), '/v1/messages');
  assert.equal(nearest('/v1/messages/batches/b1'), '/v1/messages');
  assert.equal(nearest('/v1/models/m/x'), '/v1/models/:model');
  assert.equal(nearest('/v1beta/models/m:countTokens'), '/v1beta/models/*');
  assert.equal(nearest('/v1/embeddings'), undefined);
  assert.equal(nearest('nothing'), undefined);
  assert.equal(nearest(`/v1/messages${'/x'.repeat(30_000)}`), '/v1/messages');
});
