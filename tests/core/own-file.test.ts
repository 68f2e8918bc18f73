/** The operator's own file over a gateway that is shipped: made by a save, found at each start, and nothing where it cannot be. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { configFiles } from '../../core/contract/config-files.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { boot, type Gateway } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { loadYaml } from '../../core/gateway/yaml.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const shipped = fileURLToPath(new URL('../../config/passthrough.yaml', import.meta.url));
const before = readFileSync(shipped, 'utf8');
const mine = 'passthrough:\n  upstream: http://127.0.0.1:10\n';
const running: Gateway[] = [];
after(() => Promise.all(running.map((gateway) => gateway.stop(0))));

async function start(data: string) {
  const environment = { PORT: '0', UPSTREAM_URL: 'http://127.0.0.1:9', DATA_DIR: data };
  const gateway = await boot(shipped, { mode: 'serve', environment, log: createLog('silent') });
  running.push(gateway);
  return { gateway, files: gateway.find(configFiles)!, own: join(data, 'passthrough.own.yaml') };
}
const upstreamOf = (gateway: Gateway) => (gateway.file.sections['passthrough'] as { upstream: string }).upstream;

test('a save makes the own file in a fresh data directory, applies it, and the next start finds it', async () => {
  const data = join(temporaryDirectory('own-'), 'not/yet/there');
  const { gateway, files, own } = await start(data);
  const [first, second] = (await files.view()).files;
  const { name, text, writable, readOnly } = first!;
  assert.deepEqual({ name, text, writable, readOnly }, { name: own, text: '', writable: true, readOnly: undefined });
  assert.deepEqual([first!.includes, second!.readOnly], [['config/passthrough.yaml'], 'shipped']);
  assert.deepEqual((await files.save(own, mine, '')).changes, [{ section: 'passthrough', restart: false }]);
  assert.deepEqual([readFileSync(own, 'utf8'), upstreamOf(gateway)], [mine, 'http://127.0.0.1:10']);
  assert.equal(readFileSync(shipped, 'utf8'), before);
  const { gateway: next, files: nextFiles } = await start(data);
  assert.equal(upstreamOf(next), 'http://127.0.0.1:10');
  const kept = nextFiles.running().map(({ path, text: running }) => [path, running]);
  assert.deepEqual([kept.length, kept[0]![1], kept[1]], [2, mine, ['passthrough.yaml', before]]);
});

test('a configuration from before the own file is brought back as an empty one', async () => {
  const { gateway, files, own } = await start(temporaryDirectory('own-'));
  const atFirst = files.running().slice(0, 1);
  assert.equal((await files.onDisk([atFirst[0]!.path])).get(atFirst[0]!.path), '');
  await files.save(own, mine, '');
  await assert.rejects(
    files.save(own, `${mine}# more\n`, ''),
    (error: GatewayError) => error.code === 'config_changed',
  );
  await files.saveAll(atFirst, await files.onDisk(atFirst.map(({ path }) => path)));
  assert.deepEqual([readFileSync(own, 'utf8'), upstreamOf(gateway)], ['', 'http://127.0.0.1:9']);
});

test('a fault in the own file is reported with its line, and a draft of it reads no other file of the data directory', async () => {
  const data = temporaryDirectory('own-');
  const { files, own } = await start(data);
  assert.deepEqual(
    (await files.check(own, `${mine}  up: 1\n`)).problems.map(({ where }) => where),
    [`${own}:3`],
  );
  writeFileSync(join(data, 'other.yaml'), 'log: debug\n');
  const { problems } = await files.check(own, 'include: other.yaml\n');
  assert.match(problems[0]!.message, /other\.yaml: lies elsewhere/);
});

test('where the data directory cannot be written the view says so and a save is refused', async () => {
  const place = join(temporaryDirectory('own-'), 'file');
  writeFileSync(place, '');
  const { files, own } = await start(join(place, 'data'));
  assert.equal((await files.view()).files[0]!.readOnly, 'data');
  await assert.rejects(files.save(own, mine, ''), (error: GatewayError) => error.code === 'config_read_only');
});

test('a gateway file of the operator, and the file of a fleet, have no own file beside them', () => {
  const directory = temporaryDirectory('own-');
  mkdirSync(join(directory, 'data'));
  writeFileSync(join(directory, 'data', 'passthrough.own.yaml'), mine);
  const top = join(directory, 'gateway.yaml');
  writeFileSync(top, `include: ${shipped}\n`);
  const environment = { UPSTREAM_URL: 'http://127.0.0.1:9', DATA_DIR: join(directory, 'data') };
  assert.equal(loadYaml(top, environment).own, undefined);
  assert.equal(loadYaml(shipped, environment).own, join(directory, 'data', 'passthrough.own.yaml'));
  assert.equal(loadYaml(shipped.replace('passthrough', 'fleet'), environment).own, undefined);
});
