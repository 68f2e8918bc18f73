/** Tags of a key and of its requests: which are taken, what is refused and why, and where they are seen. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { keyTags, taggedCaller, validTags } from '../../../plugins/auth/tags.ts';
import { type Caller, keyring } from '../../../plugins/common/domain/accounts.ts';
import { accountAdmin, type KeyTerms } from '../../../plugins/common/domain/admin/accounts.ts';
import { timeline } from '../../../plugins/common/domain/timeline.ts';
import { fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { closeEmbedded } from './embedded.ts';
import { openGate } from './setup.ts';

after(closeEmbedded);

const plain: Caller = { accountId: 'a', keyId: 'k', plan: 'p', models: undefined };
const textOf = (caller: Caller) => [...(caller.tags ?? [])].map((tag) => tag.join('=')).join();

async function keyWith(tags?: readonly string[]) {
  const gate = await openGate();
  const admin = gate.host.get(accountAdmin);
  const terms: KeyTerms = { name: 'tagged', ...(tags === undefined ? {} : { tags }) };
  const { key, id } = await admin.createKey(gate.accountId, terms);
  const send = (said?: string) =>
    gate.send({
      headers: { authorization: `Bearer ${key}`, ...(said === undefined ? {} : { 'x-gateway-tags': said }) },
    });
  return { gate, admin, id, key, send };
}

test('each call of a key has its fixed tags, and those that its request says for the open ones', async () => {
  const { send, admin, gate } = await keyWith(['team=search', 'env', 'run']);
  assert.equal(textOf(await send()), 'team=search');
  assert.equal(textOf(await send('env=prod')), 'team=search,env=prod');
  assert.equal(textOf(await send(' run=2026-11/a , env=dev, team=search')), 'team=search,run=2026-11/a,env=dev');
  assert.equal(textOf(await send()), 'team=search', 'those of a request stay with it');
  const { rows } = await admin.keys(gate.accountId, { limit: 10 });
  assert.deepEqual(rows.find(({ name }) => name === 'tagged')!.tags, ['team=search', 'env', 'run']);
});

test('a key without tags has callers without any, and an empty header is none', async () => {
  const { send, gate, key } = await keyWith();
  assert.equal('tags' in (await send()), false);
  assert.equal('tags' in (await send(' ')), false);
  const refused = await gate.refusal({ headers: { authorization: `Bearer ${key}`, 'x-gateway-tags': 'env=prod' } });
  assert.deepEqual([refused.status, refused.field, refused.code], [400, 'x-gateway-tags', 'invalid_tags']);
  assert.equal(refused.message, 'This key takes no tag "env" from requests.');
});

const refusals: Record<string, RegExp> = {
  'team=sales': /"team" of this key is "search" in all/,
  env: /"env" has no value/,
  'env=': /value of the tag "env"/,
  'env=a=b': /value of the tag "env"/,
  'env=a b': /value of the tag "env"/,
  [`env=${'x'.repeat(65)}`]: /value of the tag "env"/,
  'env=a,env=a': /"env" is there twice/,
  'Env=a': /name of a tag/,
  '=a': /name of a tag/,
  'constructor=a': /no tag "constructor"/,
  [Array.from({ length: 9 }, (_, at) => `t${at}=a`).join()]: /at most 8 tags/,
  ['x'.repeat(2_000)]: /too long/,
};
for (const [said, why] of Object.entries(refusals))
  test(`a request that says ${JSON.stringify(said.slice(0, 30))} is refused, and the sentence says why`, () => {
    const own = keyTags(['team=search', 'env']);
    assert.throws(
      () => taggedCaller(plain, own, said),
      (error: { status: number; field: string; message: string }) =>
        error.status === 400 && error.field === 'x-gateway-tags' && why.test(error.message),
    );
  });

test('tags of a key are refused by field where they are impossible, and none is made', async () => {
  assert.equal(validTags([]), null);
  const { admin, gate } = await keyWith();
  const many = Array.from({ length: 9 }, (_, at) => `t${at}`);
  for (const tags of [['Team'], ['team='], ['a', 'a=b'], ['a=b c'], many])
    await assert.rejects(admin.createKey(gate.accountId, { name: 'x', tags }), { field: 'tags', status: 400 });
});

test('changed tags of a key apply to its next call', async () => {
  const { admin, gate, id, send } = await keyWith(['team=search']);
  await send();
  await admin.updateKey(gate.accountId, id, { name: 'tagged', tags: ['team=sales'] });
  assert.equal(textOf(await send()), 'team=sales');
  await admin.updateKey(gate.accountId, id, { name: 'tagged' });
  assert.equal('tags' in (await send()), false);
});

test('work that outlives its request has the tags of the headers that it kept', async () => {
  const { gate, id } = await keyWith(['team=search', 'env']);
  const callers = gate.host.get(keyring);
  assert.equal(
    textOf(await callers.callerOf(id, '192.0.2.1', { 'x-gateway-tags': 'env=prod' })),
    'team=search,env=prod',
  );
  assert.equal(textOf(await callers.callerOf(id, '192.0.2.1')), 'team=search');
});

test('log lines and the timeline of a request say its tags', async () => {
  const { gate, key } = await keyWith(['team=search', 'env']);
  const headers = { authorization: `Bearer ${key}`, 'x-gateway-tags': 'env=prod' };
  const exchange = fakeExchange({ request: { headers, query: new URLSearchParams(), remoteAddress: '192.0.2.1' } });
  exchange.set(timeline, []);
  await gate.part.handle!(exchange, async () => okAnswer);
  assert.equal(gate.part.logFields!(exchange)!['tags'], 'env=prod,team=search');
  const [event] = exchange.get(timeline);
  const values = event!.values as readonly string[];
  assert.equal(event!.kind.render(...values), 'with the tags env=prod,team=search');
});

test('the command line makes keys with tags', async () => {
  const { gate, admin } = await keyWith();
  await gate.command('keys create', { account: 'acme', name: 'by command', tags: 'team=search, env' });
  const { rows } = await admin.keys(gate.accountId, { limit: 10 });
  assert.deepEqual(rows.find(({ name }) => name === 'by command')!.tags, ['team=search', 'env']);
});
