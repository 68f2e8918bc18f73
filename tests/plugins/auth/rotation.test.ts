/** Secrets that are changed while clients go on: two gateways on one database, one with the new list first. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { symmetricDecrypt, symmetricEncrypt } from 'better-auth/crypto';
import { systemRandom } from '../../../core/gateway/system.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { sessionTokenOf, signedByFirst, tokenByFirst } from '../../../plugins/console/people/cookies.ts';
import { Devices } from '../../../plugins/console/people/devices.ts';
import { numbered } from '../../../plugins/console/people/secrets.ts';
import { checkedExpiry, signedPath } from '../../../plugins/files/address.ts';
import { Sealer } from '../../../plugins/protocol-convert/translate/seal.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { fc } from '../../helpers/properties.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const [old, next, third] = [
  'the-old-secret-of-all-keys-000001',
  'the-new-secret-of-all-keys-000002',
  'a-third-secret-of-all-keys-000003',
];
const vendor = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  );
});
const directory = temporaryDirectory('rotation-');
before(() => new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve)));
after(() => {
  vendor.close();
});

const yaml = (secrets: readonly string[], seals: readonly string[] = secrets) => `gateway: test
listen: 127.0.0.1:0
plugins: [storage, auth, providers, models, route, protocol-convert]
auth: { secret: ${JSON.stringify(secrets)} }
protocol-convert: { seal_secret: ${JSON.stringify(seals)} }
providers: { v: { keys: k, speaks: { chat: "http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1" } } }
models: { m: { owned_by: x, targets: [v/m], price: free } }
`;
const start = (secrets: readonly string[], seals?: readonly string[]) =>
  startGateway(yaml(secrets, seals), { directory });
async function served<T>(secrets: readonly string[], work: (gateway: TestGateway) => Promise<T>): Promise<T> {
  const gateway = await start(secrets);
  try {
    return await work(gateway);
  } finally {
    await gateway.stop();
  }
}
const run = async ({ gateway }: TestGateway, name: string, values: Record<string, string | boolean> = {}) =>
  (await gateway.commands.find((command) => command.name === name)!.run(values)).json as never;
const makeKey = async (gateway: TestGateway) =>
  ((await run(gateway, 'keys create', { account: 'ada' })) as { key: string }).key;
const statusOf = async ({ origin }: TestGateway, key: string) =>
  (
    await fetch(`${origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }),
    })
  ).status;
const keysIn = async (gateway: TestGateway) => {
  const all = (await run(gateway, 'secrets rotate')) as {
    setting: string;
    done: number;
    left: number;
    advice: string;
  }[];
  const { done, left } = all.find(({ setting }) => setting === 'auth.secret')!;
  return { done, left };
};

test('keys stay valid through a change of the secret, in whatever order processes apply it, and unused ones are named', async () => {
  const [first, idle] = await served([old], async (gateway) => {
    await run(gateway, 'accounts create', { name: 'ada' });
    return [await makeKey(gateway), await makeKey(gateway)];
  });
  const madeAhead = await served([next, old], async (gateway) => {
    assert.equal(await statusOf(gateway, first), 200);
    return makeKey(gateway);
  });
  const madeBehind = await served([old], async (gateway) => {
    assert.deepEqual(
      await Promise.all([first, madeAhead].map((key) => statusOf(gateway, key))),
      [200, 200],
      'a process with the old one alone',
    );
    return makeKey(gateway);
  });
  await served([next, old], async (gateway) => {
    assert.deepEqual(await keysIn(gateway), { done: 2, left: 2 });
    assert.equal(await statusOf(gateway, madeBehind), 200);
  });
  await assert.rejects(start([next]), /auth\.secret lacks the one that 1 keys still need/);
  await assert.rejects(start([third]), /auth\.secret is not the one/);
  await served([next, old], async (gateway) => {
    assert.equal(await statusOf(gateway, idle), 200);
  });
  await served([next, old], async (gateway) => assert.deepEqual(await keysIn(gateway), { done: 4, left: 0 }));
  await served([next], async (gateway) => {
    for (const key of [first, idle, madeAhead, madeBehind]) assert.equal(await statusOf(gateway, key), 200);
  });
  await assert.rejects(start([old]), /auth\.secret is not the one|lacks/);
});

test('items that still need the old secret are dropped on request', async () => {
  const [used, unused] = await served([next], async (gateway) => [await makeKey(gateway), await makeKey(gateway)]);
  await served([third, next], async (gateway) => {
    assert.equal(await statusOf(gateway, used), 200);
    assert.equal(await statusOf(gateway, unused), 200);
  });
  const late = await served([next], makeKey);
  await served([third, next], async (gateway) => {
    await run(gateway, 'secrets rotate', { giveUp: true });
    assert.deepEqual([await statusOf(gateway, used), await statusOf(gateway, late)], [200, 401]);
  });
  await served([third], async (gateway) => assert.equal(await statusOf(gateway, used), 200));
});

test('a seal secret unknown to this database is refused, and one that is added to the list is accepted', async () => {
  await assert.rejects(
    start([third], ['a-stranger-of-a-seal-secret-00009']),
    /protocol-convert\.seal_secret is not the one/,
  );
  const added = await start([third], ['a-stranger-of-a-seal-secret-00009', third]);
  await added.stop();
  const settings = await start([third], ['a-stranger-of-a-seal-secret-00009']);
  assert.ok(settings.gateway.find(database) !== undefined);
  await settings.stop();
});

const secretLists = fc.uniqueArray(fc.string({ minLength: 32, maxLength: 40 }), { minLength: 2, maxLength: 4 });

test('values sealed or signed by any secret of a list are accepted, and those of another secret are not', () => {
  fc.assert(
    fc.property(secretLists, fc.string(), ([stranger, ...own], value) => {
      const list = own as [string, ...string[]];
      const sealer = (secrets: readonly string[]) =>
        new Sealer(
          secrets.map((one) => Buffer.from(one)),
          systemRandom,
        );
      const devices = (secrets: readonly string[]) => new Devices({ prefix: 'c', secure: false }, secrets);
      for (const secret of [...list, stranger!]) {
        const isOwn = secret !== stranger;
        const sealed = sealer([secret]).seal({ maker: 'm', value }, 'a');
        assert.deepEqual(sealer(list).open(sealed, 'a'), isOwn ? { maker: 'm', value } : undefined);
        assert.equal(
          sealer(list)
            .marks('v', 'a')
            .includes(sealer([secret]).marks('v', 'a')[0]),
          isOwn,
        );
        const { name, value: cookie } = devices([secret]).cookieFor('a@b.c');
        assert.equal(devices(list).knows('a@b.c', `${name}=${cookie}`), isOwn);
      }
    }),
    { numRuns: 30 },
  );
});

test('cookies and links signed by an older secret are signed again by the first, and others stay unchanged', async () => {
  const { createHmac, createSecretKey } = await import('node:crypto');
  const cookie = (secret: string) =>
    `s=${encodeURIComponent(`token.${createHmac('sha256', secret).update('token').digest('base64')}`)}`;
  assert.equal(sessionTokenOf(cookie(old), 's', [next, old]), 'token');
  assert.equal(sessionTokenOf(cookie(third), 's', [next, old]), undefined);
  assert.equal(sessionTokenOf(signedByFirst(`a=b; ${cookie(old)}`, [next, old]), 's', next), 'token');
  assert.equal(signedByFirst(cookie(third), [next, old]), cookie(third));
  const token = (secret: string) => `h.p.${createHmac('sha256', secret).update('h.p').digest('base64url')}`;
  assert.equal(tokenByFirst(token(old), [next, old]), token(next));
  assert.equal(tokenByFirst(token(third), [next, old]), token(third));
  const [key, other] = [old, next].map((secret) => createSecretKey(Buffer.from(secret)));
  const path = new URLSearchParams(signedPath(key!, 'x', `file_${'a'.repeat(32)}`, 10_000).split('?')[1]);
  const link = { fileId: `file_${'a'.repeat(32)}`, expires: path.get('expires')!, signature: path.get('signature')! };
  assert.deepEqual(
    [key, other].map((one) => checkedExpiry(one!, 'x', link, 0)),
    [10_000, undefined],
  );
});

test('a second factor is readable with every list that has its secret, with and without a number', async () => {
  const keyOf = (secrets: [string, ...string[]]) => {
    const { secrets: list, secret } = numbered(secrets);
    return {
      keys: new Map(list.map(({ version, value }) => [version, value])),
      currentVersion: list[0]!.version,
      legacySecret: secret,
    };
  };
  const plain = await symmetricEncrypt({ key: old, data: 'seed' });
  const marked = await symmetricEncrypt({ key: keyOf([old]), data: 'seed' });
  for (const data of [plain, marked]) assert.equal(await symmetricDecrypt({ key: keyOf([next, old]), data }), 'seed');
  await assert.rejects(symmetricDecrypt({ key: keyOf([next]), data: marked }));
});
