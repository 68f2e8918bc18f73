/** The operator's commands about bodies: showing, recording for a while, deleting. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alice, bob, type Stage, startStage } from './stage.ts';

function run({ part }: Stage, name: string, values: Record<string, string | boolean> = {}) {
  const command = part.commandLine!.commands!.find((known) => known.name === name);
  assert.ok(command, name);
  return command.run(values);
}

test('`requests show --bodies` prints the kept bodies, and says where none were kept', async () => {
  const stage = await startStage({ bodies: { of: [{ accounts: ['alice'] }], largest: '1KB' } });
  const kept = await stage.pass({ request: '{"say":"\\u001b[31m red"}', answer: ['word '.repeat(400), '\x1b[2J'] });
  const unkept = await stage.pass({ account: bob });
  await stage.part.lifecycle!.stop!();
  const shown = await run(stage, 'requests show', { id: `req_${kept.id}`, bodies: true });
  assert.match(shown.text, /-- request, kept until 20\d\d-.*: 24 bytes of application\/json\n\{"say":/);
  assert.match(shown.text, /-- answer: 2004 bytes of application\/json\nword word/);
  assert.match(shown.text, /\n-- 980 bytes were left out$/);
  assert.equal(shown.text.includes('\x1b'), false);
  assert.equal((shown.json as { bodies: { requestId: string } }).bodies.requestId, kept.id);
  assert.match(
    (await run(stage, 'requests show', { id: unkept.id, bodies: true })).text,
    /No bodies were kept of it\.$/,
  );
  const plain = await run(stage, 'requests show', { id: kept.id });
  assert.equal(plain.text.includes('word') || 'bodies' in (plain.json as object), false);
  await stage.store.close();
});

test('a recording is begun, listed and stopped by command', async () => {
  const stage = await startStage({ bodies: {} });
  assert.equal((await run(stage, 'requests recordings')).text, 'None runs.');
  const begun = await run(stage, 'requests record', { account: 'alice', model: 'm', errors: true, for: '1h' });
  const { id, until, accountId } = begun.json as { id: string; until: number; accountId: string };
  assert.deepEqual([until, accountId], [stage.host.clock.now() + 3_600_000, alice]);
  const { text } = await run(stage, 'requests recordings');
  assert.equal(text, begun.text);
  assert.match(text, new RegExp(`^${id}  until .*  account ${alice}, model m, errors only  \\(command line\\)$`));
  await run(stage, 'requests stop-recording', { id });
  assert.equal((await run(stage, 'requests recordings')).text, 'None runs.');
  for (const [values, kind] of [
    [{ account: 'alice' }, 'invalid_request'],
    [{ account: 'alice', for: 'soon' }, 'invalid_request'],
    [{ account: 'alice', for: '8d' }, 'invalid_request'],
    [{ account: 'missing', for: '1h' }, 'not_found'],
    [{ for: '1h' }, 'invalid_request'],
  ] as const)
    await assert.rejects(run(stage, 'requests record', values), { kind }, JSON.stringify(values));
  await stage.store.close();
});

test('bodies are deleted for the named account, and for all only on explicit request', async () => {
  const stage = await startStage({ bodies: { of: [{}] } });
  const one = await stage.pass();
  await stage.pass();
  await stage.pass({ account: bob });
  await stage.flush();
  for (const values of [{}, { all: true, account: 'alice' }])
    await assert.rejects(run(stage, 'requests forget-bodies', values), { kind: 'invalid_request' });
  assert.equal(await stage.count(), 3);
  assert.match((await run(stage, 'requests forget-bodies', { request: `req_${one.id}` })).text, /of 1 requests/);
  assert.deepEqual((await run(stage, 'requests forget-bodies', { account: 'alice' })).json, { forgotten: 1 });
  assert.deepEqual((await run(stage, 'requests forget-bodies', { all: true })).json, { forgotten: 1 });
  await stage.store.close();
});
