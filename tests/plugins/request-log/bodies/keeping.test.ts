/** Which bodies are kept, how much of them, for how long, and what happens when there is no room or no database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import plugin from '../../../../plugins/request-log/index.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { prepare } from '../../../helpers/fakes.ts';
import { fc } from '../../../helpers/properties.ts';
import { alice, bob, startStage } from './stage.ts';

const everything = { bodies: { of: [{}] } };
const failed = { status: 502, error: new GatewayError('upstream_timeout', 'no') };

test('without the section no body is read or kept', async () => {
  const stage = await startStage({});
  const exchange = await stage.pass({ outcome: failed });
  await stage.part.lifecycle!.stop!();
  assert.equal(exchange.watcher, undefined);
  assert.equal(await stage.count(), 0);
  assert.equal(stage.bodies.isEnabled, false);
  await assert.rejects(
    stage.bodies.record({ accountId: alice, errorsOnly: false, until: stage.host.clock.now() + 1 }, 'x'),
    {
      kind: 'invalid_request',
    },
  );
  await stage.store.close();
});

test('with an empty section no body is read either, until a recording begins', async () => {
  const stage = await startStage({ bodies: {} });
  assert.equal((await stage.pass()).watcher, undefined);
  assert.equal(stage.bodies.isEnabled, true);
  await stage.store.close();
});

test('both bodies are kept as sent, without their secrets, until they expire', async () => {
  const stage = await startStage({ bodies: { of: [{}], retention: '2h' } });
  const { id } = await stage.pass({
    request: '{"model": "m", "password": "hunter2"}',
    answer: ['data: {"a":', '"naï', 've"}\n\n', 'data: [DONE]\n\n'],
    answerHeaders: { 'content-type': 'text/event-stream; charset=utf-8' },
  });
  await stage.part.lifecycle!.stop!();
  const now = stage.host.clock.now();
  assert.deepEqual(await stage.bodies.find(id), {
    requestId: id,
    accountId: alice,
    receivedAt: now,
    expiresAt: now + 7_200_000,
    request: { text: '{"model": "m", "password": "***"}', mediaType: 'application/json', bytes: 37, leftOut: 0 },
    answer: {
      text: 'data: {"a":"naïve"}\n\ndata: [DONE]\n\n',
      mediaType: 'text/event-stream',
      bytes: 36,
      leftOut: 0,
    },
  });
  const lines = JSON.stringify(stage.host.lines);
  assert.equal(lines.includes('naïve') || lines.includes('hunter2'), false);
  stage.host.advance(7_200_000);
  assert.equal(await stage.bodies.find(id), undefined);
  await stage.run('prune bodies');
  assert.equal(await stage.count(), 0);
  await stage.store.close();
});

test('each selector matches, and all conditions of a rule must apply', async () => {
  const key = randomUUID();
  for (const [rules, passing, isKept] of [
    [[{ accounts: ['alice'] }], {}, true],
    [[{ accounts: [alice] }], {}, true],
    [[{ accounts: ['alice', 'carol'] }], { account: bob }, false],
    [[{ keys: [key] }], { key }, true],
    [[{ keys: [key] }], {}, false],
    [[{ models: ['m'] }], { model: 'm' }, true],
    [[{ models: ['m'] }], { model: 'other' }, false],
    [[{ models: ['m'] }], {}, false],
    [[{ models: ['m'], accounts: ['alice'] }], { model: 'm', account: bob }, false],
    [[{ models: ['m'] }, { accounts: [bob] }], { account: bob }, true],
    [[{ when: 'errors' }], {}, false],
    [[{ when: 'errors' }], { outcome: failed }, true],
    [[{ when: 'errors' }], { outcome: { kind: 'failed', status: 200 } }, true],
    [[{ when: 'errors' }], { outcome: { kind: 'client_left', status: 499 } }, false],
    [[{ when: 'errors' }], { outcome: { status: 401 }, error: new Error('inside') }, true],
    [[{ when: 'errors' }, { accounts: ['alice'] }], {}, true],
    [[], {}, false],
  ] as const) {
    const stage = await startStage({ bodies: { of: rules } }, await shared());
    const { id } = await stage.pass(passing);
    await stage.part.lifecycle!.stop!();
    assert.equal((await stage.bodies.find(id)) !== undefined, isKept, JSON.stringify([rules, passing]));
  }
});

let database: TestDatabase | undefined;
async function shared(): Promise<TestDatabase> {
  database ??= await openDatabase({ plugins: ['request-log'] });
  return database;
}

test('check warns of a gateway that keeps the bodies of all requests', async () => {
  for (const [of, count] of [
    [[{}], 1],
    [[{ share: 0.5 }, { when: 'errors' }, { models: ['m'] }], 0],
    [[], 0],
  ] as const) {
    const { part } = await startStage({ bodies: { of } }, await shared());
    assert.equal(part.checks!.notices!().length, count);
  }
});

test('any bytes are stored, and never prevent another body', async () => {
  const stage = await startStage(everything, await shared());
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), async (chunks) => {
      const text = '{"a":"\0 \\u0000 \\ud800"}';
      const ids = [
        await stage.pass({ request: chunks[0] ?? '', answer: chunks }),
        await stage.pass({ answer: [text] }),
      ];
      await stage.flush();
      const [wild, tame] = await Promise.all(ids.map(({ id }) => stage.bodies.find(id)));
      assert.equal(
        wild!.answer?.bytes ?? 0,
        chunks.reduce((sum, { length }) => sum + length, 0),
      );
      assert.equal(tame!.answer!.text, text.replace('\0', '\ufffd'));
    }),
    { numRuns: 60 },
  );
});

test('a share selects its part of the requests', async () => {
  const stage = await startStage({ bodies: { of: [{ share: 0.2 }] } });
  for (let request = 0; request < 1_000; request++) await stage.pass();
  await stage.part.lifecycle!.stop!();
  const count = await stage.count();
  assert.ok(count > 140 && count < 260, `${count}`);
  await stage.store.close();
});

test('the beginning of a long body is kept, with the omitted length', async () => {
  const stage = await startStage({ bodies: { of: [{}], largest: '2KB' } });
  const answer = Array.from({ length: 100 }, (_, index) => `line ${index} of one hundred lines\n`);
  const { id } = await stage.pass({ answer, answerHeaders: { 'content-type': 'text/plain' } });
  await stage.part.lifecycle!.stop!();
  const kept = (await stage.bodies.find(id))!.answer!;
  const whole = answer.join('');
  assert.ok(whole.startsWith(kept.text));
  assert.ok(kept.text.length > 1_900 && kept.text.length <= 2_048, `${kept.text.length}`);
  assert.deepEqual([kept.bytes, kept.leftOut], [whole.length, whole.length - 2_048]);
  await stage.store.close();
});

test('a binary body is kept as type, length and digest; of a form the fields are kept', async () => {
  const stage = await startStage(everything);
  const line = '--limit';
  const part = (head: string, content: string) =>
    `${line}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  const film = await stage.pass({
    request: `${part('name="prompt"', 'a fox, password: hunter2')}${part('name="image"; filename="a.png"\r\nContent-Type: image/png', '\x89PNG bytes')}${line}--`,
    requestType: 'multipart/form-data; boundary=limit',
    answer: [Buffer.from([0, 1, 2, 255])],
    answerHeaders: { 'content-type': 'video/mp4' },
  });
  const packed = await stage.pass({ answer: [Buffer.from([31, 139])], answerHeaders: { 'content-encoding': 'gzip' } });
  await stage.part.lifecycle!.stop!();
  const kept = (await stage.bodies.find(film.id))!;
  assert.equal(kept.answer!.text, '[video/mp4: 4 bytes, sha256 3d1f57c984978ef9]');
  assert.match(kept.request!.text, /name="prompt"\r\n\r\na fox, password: \*\*\*/);
  assert.match(kept.request!.text, /\[image\/png: 11 bytes, sha256 [0-9a-f]{16}\]/);
  assert.doesNotMatch(kept.request!.text, /PNG bytes|hunter2/);
  assert.match((await stage.bodies.find(packed.id))!.answer!.text, /^\[gzip: 2 bytes/);
  await stage.store.close();
});

test('when the memory is full bodies are dropped and counted, and requests continue', async () => {
  const stage = await startStage({ bodies: { of: [{}], largest: '1MB', memory: '1MB' } });
  const large = 'word '.repeat(60_000);
  const { id } = await stage.pass({ request: large, answer: [large, large] });
  const small = await stage.pass();
  await stage.flush();
  assert.equal(await stage.bodies.find(id), undefined);
  assert.ok(await stage.bodies.find(small.id));
  const warnings = stage.host.lines.filter(({ message }) => message.startsWith('bodies were not kept'));
  assert.deepEqual(
    warnings.map(({ fields }) => fields),
    [{ requests: 1 }],
  );
  await stage.flush();
  assert.equal(stage.host.lines.filter(({ message }) => message.startsWith('bodies were not kept')).length, 1);
  await stage.store.close();
});

test('while the database is away bodies wait within their memory, and lost ones are counted', async () => {
  const stage = await startStage({ bodies: { of: [{}], largest: '256KB', memory: '2MB' } });
  const { execute } = stage.store.orm;
  stage.store.orm.execute = () => {
    throw new Error('away');
  };
  const text = JSON.stringify('word '.repeat(30_000));
  const ids: string[] = [];
  for (let request = 0; request < 20; request++) ids.push((await stage.pass({ request: text })).id);
  await assert.rejects(stage.flush(), /away/);
  stage.store.orm.execute = execute;
  await stage.flush();
  const found = await Promise.all(ids.map((id) => stage.bodies.find(id)));
  const kept = found.filter((one) => one !== undefined).length;
  assert.ok(kept >= 3 && kept <= 6, `${kept} of 20`);
  assert.notEqual(found.at(-1), undefined);
  const lost = stage.host.lines.find(({ message }) => message.startsWith('bodies of requests were lost'));
  assert.deepEqual(lost!.fields, { rows: 20 - kept });
  await stage.store.close();
});

test('a recording keeps the matching bodies, in every process, until it ends or is stopped', async () => {
  const stage = await startStage({ bodies: {} });
  const other = await startStage({ bodies: {} }, stage.store);
  const { host, bodies } = stage;
  const until = host.clock.now() + 60_000;
  const recording = await bodies.record({ accountId: alice, errorsOnly: false, until }, 'tester');
  assert.deepEqual(await bodies.recordings(), [{ ...recording, keyId: undefined, model: undefined }]);
  for (const one of [stage, other]) {
    await one.run('follow recordings of bodies');
    const kept = await one.pass();
    const foreign = await one.pass({ account: bob });
    await one.flush();
    assert.ok(await bodies.find(kept.id));
    assert.equal(await bodies.find(foreign.id), undefined);
  }
  host.advance(60_000);
  const late = await stage.pass();
  assert.equal(late.watcher, undefined);
  assert.deepEqual(await bodies.recordings(), []);
  const next = await bodies.record({ model: 'm', errorsOnly: true, until: until + 60_000 }, 'tester');
  await stage.run('follow recordings of bodies');
  assert.notEqual((await stage.pass({ model: 'm', outcome: failed })).watcher, undefined);
  await bodies.stopRecording(next.id);
  await stage.run('follow recordings of bodies');
  assert.equal((await stage.pass({ model: 'm', outcome: failed })).watcher, undefined);
  await assert.rejects(bodies.stopRecording(next.id), { kind: 'not_found' });
  await stage.store.close();
});

test('recordings without an end, with a too late end, or without an account are refused', async () => {
  const { bodies, host, store } = await startStage({ bodies: {} });
  const until = host.clock.now() + 1_000;
  for (const terms of [
    { accountId: alice, errorsOnly: false, until: Number.NaN },
    { accountId: alice, errorsOnly: false, until: host.clock.now() },
    { accountId: alice, errorsOnly: false, until: until + 7 * 86_400_000 },
    { errorsOnly: false, until },
    { accountId: 'alice', errorsOnly: false, until },
    { model: 'm\0', errorsOnly: false, until },
  ])
    await assert.rejects(bodies.record(terms, 'x'), { kind: 'invalid_request' });
  await store.close();
});

test('kept bodies are deleted at once: of a request, of an account, or all', async () => {
  const stage = await startStage(everything);
  const [one, two, three] = [await stage.pass(), await stage.pass(), await stage.pass({ account: bob })];
  await stage.pass({ account: bob });
  await stage.flush();
  assert.equal(await stage.bodies.delete({ requestId: one.id }), 1);
  assert.equal(await stage.bodies.delete({ requestId: three.id, accountId: alice }), 0);
  assert.equal(await stage.bodies.delete({ accountId: 'nonsense' }), 0);
  assert.equal(await stage.bodies.find(one.id), undefined);
  assert.equal(await stage.bodies.delete({ accountId: alice }), 1);
  assert.equal(await stage.bodies.find(two.id), undefined);
  assert.equal(await stage.bodies.delete({}), 2);
  assert.equal(await stage.count(), 0);
  await stage.store.close();
});

test('a changed section applies from the next request on, and a shorter retention to bodies kept before', async () => {
  const stage = await startStage(everything);
  await stage.pass();
  await stage.flush();
  (await prepare(plugin, stage.part, { bodies: { of: [{ accounts: ['alice'], when: 'errors' }], retention: '1m' } }))();
  assert.notEqual((await stage.pass({ outcome: failed })).watcher, undefined);
  assert.equal((await stage.pass({ account: bob, outcome: failed })).watcher, undefined);
  stage.host.advance(60_001);
  await stage.run('prune bodies');
  await stage.flush();
  assert.equal(await stage.count(), 1);
  (await prepare(plugin, stage.part, {}))();
  assert.equal((await stage.pass({ outcome: failed })).watcher, undefined);
  await stage.store.close();
});

test('bodies are not kept for longer than rows, nor without bounds', async () => {
  const { part, store } = await startStage({});
  for (const section of [
    { retention: '90d', bodies: { retention: '31d' } },
    { bodies: { largest: '2MB' } },
    { bodies: { memory: '1KB' } },
    { bodies: { of: [{ share: 0 }] } },
    { bodies: { of: [{ account: ['alice'] }] } },
    { bodies: { of: [{ keys: ['sk-a'] }] } },
  ])
    await assert.rejects(prepare(plugin, part, section), JSON.stringify(section));
  for (const [section, path] of [
    [{ retention: '1d', bodies: { retention: '2d' } }, ['bodies', 'retention']],
    [{ retention: '1d', bodies: {} }, ['bodies', 'retention']],
    [{ retention: '1d', bodies: { retention: '1d' } }, undefined],
    [{ retention: '1d' }, undefined],
  ] as const)
    assert.deepEqual(
      (await startStage(section, store)).part.checks!.problems!()[0]?.path,
      path,
      JSON.stringify(section),
    );
  await store.close();
});
