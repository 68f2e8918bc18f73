/** Applied configurations: kept once for a fleet, compared, restored with what a save checks, and shown to no role that may not read them. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { configFiles } from '../../../core/contract/config-files.ts';
import { systemClock, systemRandom } from '../../../core/gateway/system.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { digestOf } from '../../../plugins/console/config-history/history.ts';
import { lineDiff } from '../../../plugins/console/config-history/line-diff.ts';
import { mostVersions, openHistoryStore } from '../../../plugins/console/config-history/store.ts';
import { loadSecrets, type Secrets } from '../../../plugins/console/people/secrets.ts';
import { consoleTables } from '../../../plugins/console/people/tables.ts';
import { until } from '../../helpers/until.ts';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startFile, type TestConsole } from './start-console.ts';

const literal = 'sk-literal-secret-of-a-vendor';
/** What the test's gateway adds to its file. */
let added = '';
const top = (price: number) => `include:
  - shared.yaml
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, console]
plans: { default: free, offers: { free: { price: 0 }, pro: { price: ${price}, duration: 30d } } }
console: { sign_up: open }
reload: signal
${added}`;
const shared = `providers:
  main: { keys: ${literal}, speaks: { chat: "http://127.0.0.1:9" } }
`;

let directory: string;
let testbed: TestConsole;
let boss: Browser;
let secrets: Secrets;
before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'history-'));
  await writeFile(join(directory, 'shared.yaml'), shared);
  testbed = await startFile(top(10), directory);
  added = (await onDisk()).slice(top(10).length);
  boss = await operatorOf(testbed);
  const { orm, schema } = testbed.gateway.find(database)!;
  secrets = await loadSecrets(orm, consoleTables(schema), [], systemRandom);
});
after(async () => {
  await testbed.stop();
  rmSync(directory, { recursive: true, force: true });
});

const history = async () => (await boss.send('/admin/config/history')).json;
const name = () => join(directory, 'gateway.yaml');
const onDisk = () => readFile(name(), 'utf8');
const kept = (texts: { path: string; text: string }[]) => ({ texts, source: 'file' as const });

test('a start, a save, a changed file and a reload each add one version with source, person, reason and changed files', async () => {
  await until('the start', async () => (await history()).rows.length === 1);
  const save = { file: name(), text: top(20), previous: top(10), reason: 'costs rose' };
  assert.equal((await boss.send('/admin/config/save', { body: save })).status, 200);
  await writeFile(name(), top(30));
  await testbed.gateway.reload();
  await until('the signal', async () => (await history()).rows.length === 3);
  await writeFile(join(directory, 'shared.yaml'), shared.replace(':9', ':8'));
  assert.equal((await boss.send('/admin/config/reload', { body: {} })).status, 200);
  await testbed.gateway.reload();
  const { rows, running } = await history();
  assert.deepEqual(
    rows.map((row: { source: string; actor: string; reason: string; changed: string[] }) => [
      ...[row.source, row.actor, row.reason, row.changed],
    ]),
    [
      ['reload', 'oscar@example.test', null, ['shared.yaml']],
      ['signal', null, null, ['gateway.yaml']],
      ['save', 'oscar@example.test', 'costs rose', ['gateway.yaml']],
      ['start', null, null, []],
    ],
  );
  assert.equal(running, 4);
  const audit = (await boss.send('/admin/audit?action=config.')).json.rows;
  assert.deepEqual(
    audit.map(({ action, configVersion }: { action: string; configVersion: number }) => [action, configVersion]),
    [
      ['config.reload', 4],
      ['config.save', 2],
    ],
  );
});

test('versions are compared with one another and with what runs; auditors see masks, clients and strangers nothing', async () => {
  const between = (await boss.send('/admin/config/history/difference?from=1&to=3')).json.files;
  assert.deepEqual(between, [{ path: 'gateway.yaml', before: top(10), after: top(30) }]);
  const paths = (await boss.send('/admin/config/history/difference?from=1')).json.files.map(
    ({ path }: { path: string }) => path,
  );
  assert.deepEqual(paths.sort(), ['gateway.yaml', 'shared.yaml']);
  const ada = await clientOf(testbed);
  for (const path of ['', '/difference?from=1']) {
    assert.equal((await ada.send(`/admin/config/history${path}`)).status, 403);
    assert.equal((await testbed.browser().send(`/admin/config/history${path}`)).status, 401);
  }
  const { rows } = (await boss.send('/admin/people?text=ada')).json;
  await boss.send(`/admin/people/${rows[0].id}`, { method: 'PATCH', body: { role: 'auditor', reason: 'audits' } });
  await ada.send('/auth/sign-in/email', { body: { email: 'ada@example.test', password: 'another long password' } });
  const seen = await ada.send('/admin/config/history/difference?from=1');
  assert.equal(seen.status, 200, seen.text);
  assert.match(seen.text, /keys: \\"\*\*\*\\"/);
  assert.ok(!seen.text.includes(literal));
  assert.equal((await ada.send('/admin/config/history/1/restore', { body: {} })).status, 403);
  const { orm, schema } = testbed.gateway.find(database)!;
  const stored = JSON.stringify(await orm.select().from(consoleTables(schema).configTexts));
  assert.ok(!stored.includes(literal) && !stored.includes(Buffer.from(literal).toString('base64').slice(0, 20)));
});

test('a restoration shows check and difference first, and is refused where a file has changed since', async () => {
  const plan = (await boss.send('/admin/config/history/1/check', { body: { files: ['gateway.yaml'] } })).json;
  assert.deepEqual(plan.files, [{ path: 'gateway.yaml', before: top(30), after: top(10) }]);
  assert.deepEqual(plan.check.changes, [{ section: 'plans', restart: false }]);
  await writeFile(name(), top(31));
  const body = { files: ['gateway.yaml'], state: plan.state, reason: 'back' };
  const refused = await boss.send('/admin/config/history/1/restore', { body });
  assert.deepEqual([refused.status, refused.json.error.code], [409, 'config_changed']);
  assert.equal(await onDisk(), top(31));
  await writeFile(name(), top(30));
  assert.equal((await boss.send('/admin/config/history/1/restore', { body })).status, 200);
  assert.deepEqual(
    [await onDisk(), await readFile(join(directory, 'shared.yaml'), 'utf8')],
    [top(10), shared.replace(':9', ':8')],
  );
  const { rows, running } = await history();
  assert.deepEqual([rows[0].source, rows[0].reason, rows[0].version, running], ['restore', 'back', 5, 5]);
  assert.equal((await boss.send('/admin/config/history/99/restore', { body: {} })).status, 404);
});

test('a restoration whose check fails writes none of its files', async () => {
  const { running } = await history();
  const store = storeOf('elsewhere');
  const broken = [
    { path: 'gateway.yaml', text: top(40) },
    { path: 'shared.yaml', text: 'providers: { main: { kyes: x } }\n' },
  ];
  await store.record(kept(broken));
  const { check } = (await boss.send('/admin/config/history/6/check', { body: {} })).json;
  assert.match(check.problems[0].message, /kyes/);
  const reply = await boss.send('/admin/config/history/6/restore', { body: { reason: 'no' } });
  assert.deepEqual([reply.status, reply.json.error.code], [400, 'config_invalid']);
  assert.equal(await onDisk(), top(10));
  assert.equal((await history()).running, running);
});

test('a fleet that takes up one change adds one version; a step back adds another; two nodes with texts of their own add two', async () => {
  const size = async () => (await history()).rows.length;
  const at = (text: string) => kept([{ path: 'gateway.yaml', text }]);
  const [one, two, three] = ['node-1', 'node-2', 'node-3'].map(storeOf) as [Store, Store, Store];
  const first = await size();
  for (const node of [one, two, three, one]) await node.record(at('a: 1\n'));
  assert.equal((await size()) - first, 1);
  await Promise.all([one, two, three].map((node) => node.record(at('a: 2\n'))));
  assert.equal((await size()) - first, 2);
  for (const node of [one, two]) await node.record(at('a: 1\n'));
  assert.equal((await size()) - first, 3, 'a step back');
  for (let start = 0; start < 5; start++)
    for (const [index, node] of [one, two].entries()) await node.record(at(`own: ${index}\n`));
  assert.equal((await size()) - first, 5, 'starts of nodes with their own texts');
});

test('the last 50 are kept and texts that none of them has are deleted; a tree that is too large has no text', async () => {
  const store = storeOf('busy');
  for (let version = 0; version < mostVersions + 2; version++)
    await store.record(kept([{ path: 'gateway.yaml', text: `version: ${version}\n` }]));
  const { rows } = await history();
  assert.equal(rows.length, mostVersions);
  assert.equal((await store.texts([digestOf('version: 0\n'), digestOf('version: 5\n')])).size, 1);
  const huge = 'x'.repeat(9 * 2 ** 20);
  await store.record(kept([{ path: 'gateway.yaml', text: huge }]));
  const latest = (await history()).rows[0].version;
  const reply = await boss.send(`/admin/config/history/difference?from=${latest}`);
  assert.deepEqual([reply.status, reply.json.error.code], [409, 'config_unreadable']);
});

test('commands list, compare and restore; the serving gateway takes up what they write', async () => {
  await writeFile(name(), top(50));
  await testbed.gateway.reload();
  await writeFile(name(), top(60));
  await testbed.gateway.reload();
  await until('both', async () => (await history()).running === (await history()).rows[0].version);
  const version = (await history()).rows[1].version;
  const gateway = testbed.gateway;
  const run = (command: string, values: Record<string, string | boolean>) =>
    gateway.commands.find((one) => one.name === command)!.run(values);
  assert.match((await run('config history', {})).text, /signal/);
  assert.match((await run('config diff', { from: String(version) })).text, /^- .*price: 50[\s\S]*^\+ .*price: 60/m);
  const dry = await run('config restore', { version: String(version), dryRun: true });
  assert.match(dry.text, /^- .*price: 60[\s\S]*^\+ .*price: 50/m);
  await assert.rejects(run('config restore', { version: String(version) }), /Say why/);
  assert.equal(await onDisk(), top(60));
  await run('config restore', { version: String(version), reason: 'too dear' });
  assert.equal(await onDisk(), top(50));
  const { rows } = await history();
  assert.deepEqual([rows[0].source, rows[0].reason], ['command', 'too dear']);
  assert.match(rows[0].actor, /^command line \(/);
});

test('files that an unfinished restoration wrote are put back, and a file that is no longer included is made again', async () => {
  const files = testbed.gateway.find(configFiles)!;
  const extra = { path: 'extra.yaml', text: 'log: debug\n' };
  const main = {
    path: 'gateway.yaml',
    text: top(70).replace('shared.yaml', 'shared.yaml\n  - extra.yaml'),
  };
  const disk = await files.onDisk(['gateway.yaml', 'extra.yaml', '../elsewhere.yaml'].slice(0, 2));
  await assert.rejects(files.onDisk(['../elsewhere.yaml']), /not read from a file of that name/);
  await assert.rejects(
    files.saveAll([extra, main], new Map([...disk, ['gateway.yaml', 'other']])),
    /changed meanwhile/,
  );
  await assert.rejects(readFile(join(directory, 'extra.yaml')), /ENOENT/);
  assert.deepEqual((await files.saveAll([extra, main], disk)).problems, []);
  assert.equal(await readFile(join(directory, 'extra.yaml'), 'utf8'), 'log: debug\n');
});

test('a difference of lines keeps two lines of context and folds the rest', () => {
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index}`);
  const changed = lines.map((line, index) => (index === 6 ? 'other' : line)).concat('last');
  assert.deepEqual(lineDiff(lines.join('\n'), changed.join('\n')), [
    ...['  line 4', '  line 5', '- line 6', '+ other', '  line 7', '  line 8', '  …'],
    ...['  line 10', '  line 11', '+ last'],
  ]);
  assert.deepEqual(lineDiff('same', 'same'), []);
});

type Store = ReturnType<typeof openHistoryStore>;
function storeOf(node: string): Store {
  const store = testbed.gateway.find(database)!;
  return openHistoryStore({ store, clock: systemClock, random: systemRandom, secrets: () => secrets, node });
}
