/** The last good copy: made while clients go on, small where little has changed, and gone back to when the directory is damaged. */
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type EmbeddedBackend, openBackend } from '../../../plugins/storage/embedded/backend.ts';
import { useEmbedded } from '../../../plugins/storage/embedded/keeper.ts';
import { query } from '../../../plugins/storage/embedded/wire.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fillDirectory } from '../../helpers/template.ts';

async function send(backend: EmbeddedBackend, text: string): Promise<string> {
  let answer = '';
  await backend.run(query(text), (bytes) => {
    answer += Buffer.from(bytes).toString('latin1');
  });
  return answer;
}

const countOf = async (backend: EmbeddedBackend) =>
  /rows (\d+)/.exec(await send(backend, "select 'rows ' || count(*) from credits"))?.[1];
const atOnce = (work: () => Promise<void>) => work();

async function newDirectory(context: TestContext): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  await fillDirectory(directory);
  return directory;
}

/** A directory with one row before its copy and one behind it, its process gone without a word. */
async function copied(context: TestContext): Promise<string> {
  const directory = await newDirectory(context);
  const backend = await openBackend(directory);
  await send(backend, 'create table credits (n int primary key); insert into credits values (1)');
  await backend.copy(atOnce);
  await send(backend, 'insert into credits values (2)');
  const left = `${directory}-left`;
  context.after(() => rmSync(left, { recursive: true, force: true }));
  cpSync(directory, left, { recursive: true });
  await backend.close();
  return left;
}

async function reopen(context: TestContext, directory: string) {
  const reported: string[] = [];
  const backend = await openBackend(directory, (text) => reported.push(text));
  context.after(() => backend.close());
  return { backend, reported: reported.join('\n') };
}

test('a copy is due when there is none, or much is new, or any change is and it is requested; the second links unchanged files', async (context) => {
  const directory = await newDirectory(context);
  const backend = await openBackend(directory);
  context.after(() => backend.close());
  const past = new Date(Date.now() - 60_000);
  const tables = join('base', '5');
  for (const name of readdirSync(join(directory, 'postgres', tables))) {
    utimesSync(join(directory, 'postgres', tables, name), past, past);
  }
  assert.equal(await backend.copyDue(false), true);
  await backend.copy(atOnce);
  assert.equal(await backend.copyDue(true), false);
  await send(backend, 'create table credits (n int)');
  assert.deepEqual([await backend.copyDue(false), await backend.copyDue(true)], [false, true]);
  const largeObjects = '2613';
  const copyOf = () => statSync(join(directory, 'postgres.copy', 'data', tables, largeObjects)).ino;
  const before = copyOf();
  await backend.copy(atOnce);
  assert.equal(copyOf(), before);
  assert.deepEqual(
    readdirSync(directory).filter((name) => /draft|old/.test(name)),
    [],
  );
});

for (const [what, harm] of [
  ['a control file that is missing', (live: string) => rmSync(join(live, 'global', 'pg_control'))],
  ['a control file of zeros', (live: string) => writeFileSync(join(live, 'global', 'pg_control'), Buffer.alloc(8192))],
  ['a folder that is missing', (live: string) => rmSync(join(live, 'global'), { recursive: true })],
] as const) {
  test(`${what}: the directory is restored from copy and log with every commit, and the log says so`, async (context) => {
    const directory = await copied(context);
    harm(join(directory, 'postgres'));
    const { backend, reported } = await reopen(context, directory);
    assert.equal(await countOf(backend), '2');
    assert.match(reported, /did not open whole and has been restored from the last copy and the log since then/);
    assert.ok(existsSync(join(directory, 'postgres.broken')));
    await backend.copy(atOnce);
    assert.equal(existsSync(join(directory, 'postgres.broken')), false, 'gone with the next good copy');
  });
}

/** Everything behind the copy, several pages of it, so that its lack shows. */
async function withMuchBehind(context: TestContext): Promise<string> {
  const directory = await newDirectory(context);
  const backend = await openBackend(directory);
  await send(backend, 'create table credits (n int primary key); insert into credits values (1)');
  await backend.copy(atOnce);
  for (let n = 2; n < 200; n += 1) await send(backend, `insert into credits values (${n})`);
  await backend.close();
  return directory;
}

test('a directory that is lost with its log is not opened without the acknowledged commits, until the operator accepts it', async (context) => {
  const directory = await withMuchBehind(context);
  rmSync(join(directory, 'postgres'), { recursive: true });
  for (let start = 0; start < 3; start += 1) {
    await assert.rejects(
      openBackend(directory),
      /postgres lacks commits that were acknowledged.*delete .*postgres\.mark/,
    );
  }
  rmSync(join(directory, 'postgres.mark'));
  const { backend } = await reopen(context, directory);
  assert.equal(await countOf(backend), '1');
});

test('a log that was damaged in the middle is not opened as if it ended there', async (context) => {
  const directory = await copied(context);
  const backend = await openBackend(directory);
  for (let n = 3; n < 400; n += 1) await send(backend, `insert into credits values (${n})`);
  const left = `${directory}-damaged`;
  context.after(() => rmSync(left, { recursive: true, force: true }));
  cpSync(directory, left, { recursive: true });
  await backend.close();
  const [, name, end] = / (\w+) (\d+)\n/.exec(readFileSync(join(left, 'postgres.mark'), 'latin1'))!;
  const path = join(left, 'postgres', 'pg_wal', name!);
  const data = readFileSync(path);
  data.fill(0xff, Number(end) - 2 * 8192, Number(end) - 8192);
  writeFileSync(path, data);
  await assert.rejects(openBackend(left), /lacks commits that were acknowledged/);
});

test('listeners of copies are called before a copy is made and once it is durable, in the serving process', async (context) => {
  const directory = await newDirectory(context);
  const host = fakeHost();
  const embedded = await useEmbedded(directory, 'serve', host.log);
  context.after(() => embedded.release());
  const heard: string[] = [];
  embedded.onCopy(() => {
    heard.push('begin');
    return () => heard.push('safe');
  });
  await Promise.all([embedded.copy(), embedded.copy()]);
  assert.deepEqual(heard, ['begin', 'safe']);
  assert.ok(existsSync(join(directory, 'postgres.copy', 'manifest.json')));
});
