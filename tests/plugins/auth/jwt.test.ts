/** Calls with tokens of another system: which are taken, for whom they count, and what forgers try. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT, UnsecuredJWT } from 'jose';
import type { GatewayError } from '../../../core/contract/errors.ts';
import auth from '../../../plugins/auth/index.ts';
import { type Caller, keyring } from '../../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { accountEnds } from '../../../plugins/common/domain/admin/notices.ts';
import { prepare } from '../../helpers/fakes.ts';
import { closeEmbedded, type EmbeddedDatabase, openEmbedded } from './embedded.ts';
import { type Gate, openGate, type Sent } from './setup.ts';

const now = 1_800_000_000;
const audience = 'https://gateway.example.test';
type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let first: Pair;
let second: Pair;
let stranger: Pair;
let published: object[] = [];
let fetches = 0;
let answer: 'keys' | 'error' | 'huge' | 'another issuer' = 'keys';

const provider = createServer((request, response) => {
  if (answer === 'error') return void response.writeHead(500).end();
  if (answer === 'huge') return void response.end(' '.repeat(300_000));
  if (request.url === '/.well-known/openid-configuration') {
    const issuer = answer === 'another issuer' ? 'https://another.example.test' : issuerOf();
    return void response.end(JSON.stringify({ issuer, jwks_uri: `${issuerOf()}/keys` }));
  }
  fetches += 1;
  response.end(JSON.stringify({ keys: published }));
});
const issuerOf = () => `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
const publicOf = async ({ publicKey }: Pair, kid: string, more: JWK = {} as JWK) => ({
  ...(await exportJWK(publicKey)),
  kid,
  ...more,
});

before(async () => {
  [first, second, stranger] = (await Promise.all(
    [0, 1, 2].map(() => generateKeyPair('ES256', { extractable: true })),
  )) as [Pair, Pair, Pair];
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
});
after(async () => {
  provider.close();
  await closeEmbedded();
});
beforeEach(async () => {
  published = [await publicOf(first, 'one')];
  fetches = 0;
  answer = 'keys';
});

const entry = (more: object = {}) => ({ issuer: issuerOf(), audience, account: 'acme', allow_private: true, ...more });
const open = (more: object = {}, db?: EmbeddedDatabase) =>
  openGate({ jwt: [entry(more)], failures: { per_minute: 1_000 } }, db);

interface Wanted {
  readonly claims?: object;
  readonly header?: object;
  readonly pair?: Pair;
}
/** It lasts five minutes and is signed by the first key, unless it is said otherwise. */
function signed({ claims = {}, header = {}, pair = first }: Wanted = {}): Promise<string> {
  const usual = { iss: issuerOf(), aud: audience, sub: 'job', iat: now, exp: now + 300 };
  const all = { alg: 'ES256', kid: 'one', ...header } as JWTHeaderParameters & { alg: string };
  return new SignJWT({ ...usual, ...claims }).setProtectedHeader(all).sign(pair.privateKey);
}
const refusalOf = async (gate: Gate, token: Sent | string) => {
  const { kind, code, message } = (await gate.refusal(token)) as GatewayError;
  return `${kind} ${code} ${message}`;
};
const isForged = async (gate: Gate, token: string, message?: string) => {
  const said = await refusalOf(gate, token);
  assert.match(said, /^unauthenticated (invalid_jwt|invalid_api_key) /);
  if (message !== undefined) assert.equal(said, `unauthenticated invalid_jwt The token ${message}.`);
};

test('a token calls for the account of its issuer, by a key without a secret that its account sees, limits and revokes', async () => {
  const gate = await open({ project: { claim: 'repository' }, models: ['small'] });
  const token = await signed({ claims: { repository: 'acme/shop' } });
  const { accountId, keyId, models, project, ...who } = await gate.send(token);
  assert.deepEqual([accountId, models, project], [gate.accountId, new Set(['small']), 'acme/shop']);
  assert.equal(who.attribution?.person, undefined);
  const admin = gate.host.get(accountAdmin);
  const key = await admin.key(accountId, keyId);
  assert.match(key.prefix, /^jwt:/);
  await admin.updateKey(accountId, keyId, { ...key, limits: { rpm: 7 }, tags: ['env'] });
  const tagged = { headers: { authorization: `Bearer ${token}`, 'x-gateway-tags': 'env=prod' } };
  const limited = await gate.send(tagged);
  assert.deepEqual([limited.keyLimits, limited.tags], [{ rpm: 7 }, new Map([['env', 'prod']])]);
  const another = await gate.send(await signed({ claims: { repository: 'acme/shop', jti: 'other' } }));
  assert.equal(another.keyId, keyId, 'one key for all tokens of a workload');
  assert.notEqual((await gate.send(await signed({ claims: { repository: 'acme/site' } }))).keyId, keyId);
  await assert.rejects(admin.rotateKey(accountId, keyId, 0), { kind: 'conflict' });
  await admin.revokeKey(accountId, keyId);
  assert.match(await refusalOf(gate, token), /^unauthenticated /);
  assert.match(await refusalOf(gate, await signed({ claims: { repository: 'acme/shop', jti: 'new' } })), /is revoked/);
});

test('two processes that get the first tokens of a workload at once make one key', async () => {
  const db = await openEmbedded();
  const fleet = [await open({}, db), await open({}, db)];
  const callers = await Promise.all(
    fleet.flatMap((gate) => [signed(), signed({ claims: { jti: 'x' } })].map(async (token) => gate.send(await token))),
  );
  assert.equal(new Set(callers.map(({ keyId }: Caller) => keyId)).size, 1);
  const later = await fleet[1]!.host.get(keyring).callerOf(callers[0]!.keyId, '192.0.2.1');
  assert.deepEqual(later, callers[0]);
});

test('tokens that a forger makes are refused, whatever their header says', async () => {
  const gate = await open();
  const [head, body, signature] = (await signed()).split('.') as [string, string, string];
  const coded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: issuerOf(), aud: audience, iat: now, exp: now + 300 };
  const unsigned = new UnsecuredJWT(claims).encode();
  await isForged(gate, unsigned);
  await isForged(gate, `${unsigned}AAAA`, 'is signed in a way that is not allowed');
  await isForged(
    gate,
    `${head}.${coded({ ...claims, sub: 'root' })}.${signature}`,
    'has a signature that cannot be verified',
  );
  await isForged(gate, `${head}.${body}.${signature.slice(0, -2)}`);
  await isForged(gate, await signed({ pair: stranger }), 'has a signature that cannot be verified');
  // The public key as a shared secret.
  const shared = new TextEncoder().encode(JSON.stringify(published[0]));
  const hs = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(shared);
  await isForged(gate, await hs, 'is signed in a way that is not allowed');
  // Keys that the token brings along are not looked at.
  const own = { jwk: await publicOf(stranger, 'one'), jku: `${issuerOf()}/keys`, x5u: 'https://x.test' };
  await isForged(gate, await signed({ pair: stranger, header: own }), 'has a signature that cannot be verified');
  await isForged(gate, `${coded({ alg: 'ES256', kid: 'one', crit: ['x'], x: 1 })}.${body}.${signature}`);
  for (const wrong of [
    'eyJ.eyJ.x',
    `${head}.${coded([])}.${signature}`,
    `${head}.e30.${signature}`,
    `${head}.${body}.${signature}.x.y`,
  ])
    await isForged(gate, wrong);
  await isForged(gate, `eyJ${'A'.repeat(9_000)}.${body}.${signature}`);
  assert.equal((await gate.send(await signed())).accountId, gate.accountId);
});

test('a shared secret or a private key that the issuer publishes by mistake verifies nothing', async () => {
  const secret = Buffer.from('a secret of thirty-two bytes, yes').toString('base64url');
  published = [
    { kty: 'oct', k: secret, kid: 'one' },
    { ...(await exportJWK(first.privateKey)), kid: 'two' },
  ];
  const gate = await open();
  await isForged(gate, await signed({ header: { kid: 'two' } }), 'has a signature that cannot be verified');
  await isForged(gate, await signed(), 'has a signature that cannot be verified');
});

test('issuer, audience, times and required claims are compared to the letter and the second', async () => {
  const gate = await open({ require: { org: ['acme', 'acme-labs'], env: 'prod' } });
  const org = { org: 'acme', env: 'prod' };
  const said = async (claims: object) => refusalOf(gate, await signed({ claims: { ...org, ...claims } }));
  const lacks = 'lacks a claim that its issuer must set for this gateway';
  const cases: readonly (readonly [object, string])[] = [
    [{ iss: `${issuerOf()}/` }, 'is of an issuer that this gateway does not know'],
    [{ aud: `${audience}/` }, 'is for another audience'],
    [{ aud: undefined }, 'is for another audience'],
    [{ exp: undefined }, 'has no end'],
    [{ exp: now - 30 }, 'has expired'],
    [{ nbf: now + 31 }, 'is not valid yet'],
    [{ iat: now + 31 }, 'is not valid yet'],
    [{ exp: 'tomorrow' }, 'has no end'],
    [{ org: 'acme2' }, lacks],
    [{ org: ['acme'] }, lacks],
    [{ env: undefined }, lacks],
  ];
  for (const [claims, message] of cases)
    assert.equal(await said(claims), `unauthenticated invalid_jwt The token ${message}.`, JSON.stringify(claims));
  for (const claims of [
    { aud: ['x', audience] },
    { exp: now - 29 },
    { nbf: now + 30 },
    { iat: now + 30, org: 'acme-labs' },
  ])
    assert.equal((await gate.send(await signed({ claims: { ...org, ...claims } }))).accountId, gate.accountId);
});

test('a token that was taken ends by its own time, though its check is kept', async () => {
  const gate = await open();
  const token = await signed({ claims: { exp: now + 100 } });
  await gate.send(token);
  gate.host.advance(129_999);
  await gate.send(token);
  gate.host.advance(1);
  assert.match(await refusalOf(gate, token), /The token has expired/);
});

test('a new key of the issuer is fetched for the first token that names it, and unknown ones let keys be fetched twice a minute', async () => {
  const gate = await open();
  await gate.send(await signed());
  assert.equal(fetches, 1);
  gate.host.advance(30_000);
  published = [await publicOf(first, 'one'), await publicOf(second, 'two')];
  await gate.send(await signed({ pair: second, header: { kid: 'two' } }));
  assert.equal(fetches, 2);
  for (let kid = 0; kid < 50; kid++)
    await isForged(gate, await signed({ pair: stranger, header: { kid: `unknown ${kid}` } }));
  assert.equal(fetches, 2);
  gate.host.advance(30_000);
  await isForged(gate, await signed({ pair: stranger, header: { kid: 'again' } }));
  assert.equal(fetches, 3);
});

test('a key that its issuer has taken back verifies nothing after a quarter of an hour', async () => {
  const gate = await open();
  const token = await signed({ claims: { exp: now + 3_600 } });
  await gate.send(token);
  published = [await publicOf(second, 'two')];
  gate.host.advance(15 * 60_000 + 1);
  await isForged(gate, token, 'has a signature that cannot be verified');
});

test('while the issuer is away its last keys serve for a day, and without any the client is asked to come again', async () => {
  const gate = await open();
  const token = await signed({ claims: { exp: now + 200_000 } });
  for (const wrong of ['error', 'huge', 'another issuer'] as const) {
    answer = wrong;
    assert.match(await refusalOf(gate, token), /^overloaded keys_unavailable /);
    gate.host.advance(30_000);
  }
  answer = 'keys';
  await gate.send(token);
  answer = 'error';
  gate.host.advance(86_400_000 - 1);
  await gate.send(token);
  gate.host.advance(86_400_000);
  const later = await signed({ claims: { exp: now + 400_000, jti: 'y' } });
  assert.match(await refusalOf(gate, later), /^overloaded keys_unavailable /);
});

test('account, person and models of a token are those that its claims say, where they are there', async () => {
  const gate = await open({ account: { claim: 'org' }, person: { claim: 'user' }, models: { claim: 'models' } });
  const claims = { org: 'acme', user: 'ada', models: ['small', 'large'] };
  assert.match(await refusalOf(gate, await signed({ claims })), /^forbidden token_not_admitted /, 'no member');
  await gate.db.orm.execute(
    `insert into "${gate.db.schema}".members (account_id, person, role, created_at) values ('${gate.accountId}', 'ada', 'developer', now())`,
  );
  const caller = await gate.send(await signed({ claims }));
  assert.deepEqual([caller.attribution?.person, caller.models], ['ada', new Set(['small', 'large'])]);
  const narrower = await gate.send(await signed({ claims: { ...claims, models: 'small' } }));
  assert.notEqual(narrower.keyId, caller.keyId, 'later work of a narrower token stays narrow');
  assert.deepEqual((await gate.host.get(keyring).callerOf(narrower.keyId, '192.0.2.1')).models, new Set(['small']));
  for (const wrong of [{ org: 'none' }, { user: 'eve' }])
    assert.match(
      await refusalOf(gate, await signed({ claims: { ...claims, ...wrong } })),
      /^forbidden token_not_admitted /,
    );
  for (const wrong of [{ org: 7 }, { user: '' }, { models: [] }, { models: [7] }, { models: undefined }])
    await isForged(
      gate,
      await signed({ claims: { ...claims, ...wrong } }),
      'lacks a claim that its issuer must set for this gateway',
    );
});

test('keys of workloads are no keys whose secret is old, or is to be hashed again', async () => {
  const db = await openEmbedded();
  const gate = await openGate({ jwt: [entry()], secret: 'the first secret of all keys' }, db);
  await gate.send(await signed());
  gate.host.advance(400 * 86_400_000);
  assert.deepEqual(await gate.host.get(accountEnds).oldKeys(86_400_000, '', 9), []);
  const [turned] = gate.part.commandLine!.secrets!();
  assert.deepEqual(await turned!.rotate(false), { done: 0, left: 0, advice: 'the others can be removed' });
  const next = await openGate(
    { jwt: [entry()], secret: ['the second secret of all keys', 'the first secret of all keys'] },
    db,
  );
  const [again] = next.part.commandLine!.secrets!();
  assert.equal((await again!.rotate(true)).left, 0);
  assert.equal((await next.send(await signed())).accountId, gate.accountId);
});

test('an issuer that is taken out of the settings is refused from the next call on, also for tokens that were taken', async () => {
  const gate = await open();
  const token = await signed();
  await gate.send(token);
  (await prepare(auth, gate.part, { jwt: [entry({ audience: 'another' })] }))();
  assert.match(await refusalOf(gate, token), /The token is for another audience/);
  (await prepare(auth, gate.part, {}))();
  assert.match(await refusalOf(gate, token), /The API key is not valid/);
});

test('failed tokens count as failed keys do, and a gateway without issuers takes no token', async () => {
  const gate = await openGate({ jwt: [entry()], failures: { per_minute: 3 } });
  const forged = await signed({ pair: stranger });
  for (let failed = 0; failed < 3; failed++) await isForged(gate, forged);
  assert.match(await refusalOf(gate, forged), /^rate_limited failed_attempts /);
  assert.equal((await gate.send({ headers: { 'x-api-key': await signed() } })).accountId, gate.accountId);
  const without = await openGate();
  assert.equal(await refusalOf(without, await signed()), 'unauthenticated invalid_api_key The API key is not valid.');
});
