/** Programs that say at an address of their own what they are: only what that address itself says counts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRegistered, openPrograms } from '../../../plugins/console/key-requests/programs.ts';

const id = 'https://program.example/client.json';
const document = { client_id: id, client_name: 'Program', redirect_uris: ['http://127.0.0.1/cb'] };

const found = async (said: unknown, { clientId = id, status = 200, redirected = false } = {}) => {
  const answer = Object.assign(new Response(typeof said === 'string' ? said : JSON.stringify(said), { status }), {});
  Object.defineProperty(answer, 'redirected', { value: redirected });
  return openPrograms(
    async () => answer,
    () => ['secret'],
  ).find(clientId);
};

test('a document that names its own address describes a program, by its name and the host that proves it', async () => {
  assert.deepEqual(await found(document), { name: 'Program (program.example)', redirects: ['http://127.0.0.1/cb'] });
});

test('a document describes no program where another address, a secret or no address to return to stands in it', async () => {
  assert.equal(await found({ ...document, client_id: 'https://other.example/client.json' }), undefined);
  assert.equal(await found({ ...document, token_endpoint_auth_method: 'client_secret_basic' }), undefined);
  assert.equal(await found({ ...document, redirect_uris: [] }), undefined);
  assert.equal(await found({ ...document, redirect_uris: ['http://evil.example/'] }), undefined);
  assert.equal(await found(document, { status: 404 }), undefined);
  assert.equal(await found(document, { redirected: true }), undefined);
  assert.equal(await found('no JSON'), undefined);
});

test('an id that is no plain https address with a path is never asked for', async () => {
  const ids = ['http://program.example/c.json', 'https://program.example/', 'https://program.example/c.json#x'];
  for (const clientId of [...ids, 'https://a@program.example/c.json', 'https://program.example/a/../c.json'])
    assert.equal(await found({ ...document, client_id: clientId }, { clientId }), undefined, clientId);
});

test('an id that another secret has signed is unknown, and one of an earlier secret is known', async () => {
  const none = async () => assert.fail('nothing is fetched');
  const [old, both, other] = [['old'], ['new', 'old'], ['other']].map((secrets) =>
    openPrograms(none, () => secrets as unknown as readonly [string]),
  );
  const program = { name: 'Program', redirects: ['https://a.example/cb'] };
  const clientId = old!.register(program);
  assert.deepEqual(await both!.find(clientId), program);
  assert.equal(await other!.find(clientId), undefined);
});

test('an address counts as registered with another port on the same machine alone', () => {
  const program = { name: '', redirects: ['http://[::1]:1/cb', 'https://a.example:8443/cb'] };
  assert.ok(isRegistered(program, 'http://[::1]:2/cb'));
  assert.ok(isRegistered(program, 'http://[::1]/cb'));
  for (const address of ['http://[::1]:2/cb?x', 'http://[::1]:2/', 'https://a.example:8444/cb', 'https://a.example/cb'])
    assert.ok(!isRegistered(program, address), address);
});
