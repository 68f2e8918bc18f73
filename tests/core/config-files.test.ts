/** The gateway's own files as people see, try and save them. */
import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, readFile, rmdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { type ConfigFiles, configFiles } from '../../core/contract/config-files.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import { isShipped } from '../../core/gateway/files/own-file.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

const secretKey = 'very-secret-value-of-a-variable';
const yaml = [
  'gateway: test',
  'listen: 127.0.0.1:0',
  'plugins: [providers, passthrough]',
  '# what an operator wrote stays',
  'passthrough: { upstream: "http://127.0.0.1:9" }',
  'providers:',
  '  main: { keys: "${VENDOR_KEY}", speaks: { chat: "http://127.0.0.1:9" } }',
  '',
].join('\n');

let gateway: TestGateway;
afterEach(() => gateway.stop());

async function open(text = yaml): Promise<{ configFiles: ConfigFiles; name: string }> {
  gateway = await startGateway(text, { environment: { VENDOR_KEY: secretKey, UPSTREAM_URL: 'http://127.0.0.1:9' } });
  return { configFiles: gateway.gateway.find(configFiles)!, name: join(gateway.directory, 'gateway.yaml') };
}

const onDisk = (name = 'gateway.yaml') => readFile(join(gateway.directory, name), 'utf8');
const refusal = (kind: string, code?: string) => (error: GatewayError) => {
  assert.equal(error.kind, kind, error.message);
  assert.equal(error.code, code);
  return true;
};

test('the view has every file as written, without the values of variables, and the schema', async () => {
  const { configFiles, name } = await open(yaml.split('providers:\n')[0]);
  await mkdir(join(gateway.directory, 'more'));
  const base = join(gateway.directory, 'more/base.yaml');
  await writeFile(base, 'providers: { main: { keys: "${VENDOR_KEY}", speaks: { chat: "http://127.0.0.1:9" } } }\n');
  const before = await onDisk();
  await configFiles.save(name, `include: more/base.yaml\n${before}`, before);
  const view = await configFiles.view();
  assert.deepEqual(
    view.files.map((file) => [file.name, file.writable, file.readOnly, file.includes]),
    [
      [name, true, undefined, [base]],
      [base, true, undefined, []],
    ],
  );
  assert.equal(view.files[0]!.text, await onDisk());
  assert.match(view.files[1]!.text, /\$\{VENDOR_KEY\}/);
  assert(!JSON.stringify(view).includes(secretKey));
  assert.equal(view.generation, 1);
  assert('passthrough' in (view.schema as { properties: object }).properties);
});

test('the view has the tree of files wherever the gateway lies, and says which of them come with the product', async () => {
  const { configFiles, name } = await open('include: config/passthrough.yaml\n'.concat(yaml));
  const shipped = { name: 'config/passthrough.yaml', readOnly: 'shipped', includes: [] };
  assert.deepEqual(
    (await configFiles.view()).files.map(({ name, readOnly, includes }) => ({ name, readOnly, includes })),
    [{ name, readOnly: undefined, includes: [shipped.name] }, shipped],
  );
  const folder = new URL('../../config/', import.meta.url);
  const listed = (await readdir(folder)).filter((file) => file.endsWith('.yaml'));
  for (const file of listed) assert(isShipped(new URL(file, folder).pathname), file);
  assert.equal(isShipped(new URL('mine.yaml', folder).pathname), false);
});

test('a check returns the changes, and every problem with its line, and changes nothing', async () => {
  const { configFiles, name } = await open();
  const good = await configFiles.check(name, yaml.replace(':9" }', ':10" }').replace('127.0.0.1:0', '127.0.0.1:1'));
  assert.deepEqual(good.problems, []);
  assert.deepEqual(good.changes, [
    { section: 'listen', restart: true },
    { section: 'passthrough', restart: false },
  ]);
  const bad = await configFiles.check(name, yaml.replace('upstream', 'up').replace('chat: "', 'chat: "${VENDOR_KEY}'));
  assert.deepEqual(
    bad.problems.map(({ where }) => where),
    [`${name}:7`, `${name}:5`, `${name}:5`],
  );
  assert(!JSON.stringify(bad).includes(secretKey));
  assert.deepEqual((await configFiles.check(name, `${yaml}listen: 1\n`)).problems, [
    { where: `${name}:8`, message: '"listen" stands twice in this mapping; keep one of them' },
  ]);
  assert.equal(await onDisk(), yaml);
  assert.equal((await configFiles.view()).generation, 0);
  assert.deepEqual(await readdir(gateway.directory), ['gateway.yaml']);
});

test('a saved file is written whole and applied, with the earlier text kept beside it', async () => {
  const { configFiles, name } = await open();
  await chmod(name, 0o640);
  const text = yaml.replace(':9" }', ':10" }');
  const { changes } = await configFiles.save(name, text, yaml);
  assert.deepEqual(changes, [{ section: 'passthrough', restart: false }]);
  assert.deepEqual([await onDisk(), await onDisk('gateway.yaml.bak')], [text, yaml]);
  assert.equal((await stat(name)).mode & 0o777, 0o640);
  assert.deepEqual((await readdir(gateway.directory)).sort(), ['gateway.yaml', 'gateway.yaml.bak']);
  const { loadedAt, generation } = await configFiles.view();
  assert.equal(generation, 1);
  assert(Math.abs(loadedAt - Date.now()) < 10_000);
});

test('a text with a problem, an outdated text and another file are refused, and nothing is written', async () => {
  const { configFiles, name } = await open();
  const good = yaml.replace(':9" }', ':10" }');
  await assert.rejects(
    configFiles.save(name, yaml.replace('upstream', 'up'), yaml),
    refusal('invalid_request', 'config_invalid'),
  );
  await assert.rejects(configFiles.save(name, 'gateway: [', yaml), refusal('invalid_request', 'config_invalid'));
  await assert.rejects(configFiles.save(name, good, `${yaml}\n`), refusal('conflict', 'config_changed'));
  for (const other of ['/etc/passwd', `${name}.bak`, 'gateway.yaml', `${gateway.directory}/./gateway.yaml`, '']) {
    await assert.rejects(configFiles.save(other, good, yaml), refusal('not_found'));
    await assert.rejects(configFiles.check(other, good), refusal('not_found'));
  }
  assert.equal(await onDisk(), yaml);
  assert.deepEqual(await readdir(gateway.directory), ['gateway.yaml']);
});

test('checking a draft runs no code and reads nothing outside of the configuration', async () => {
  const { configFiles, name } = await open();
  const stranger = join(gateway.directory, 'stranger.ts');
  await writeFile(stranger, 'globalThis.strangerRan = true; export default {};');
  for (const plugin of ['./stranger.ts', stranger, 'data:text/javascript,globalThis.strangerRan=true', 'typescript']) {
    const { problems } = await configFiles.check(name, yaml.replace('passthrough]', `passthrough, "${plugin}"]`));
    assert.match(problems[0]!.message, /can only be added by hand/);
    assert.equal(problems[0]!.where, `${name}:3`);
  }
  assert.equal('strangerRan' in globalThis, false);
  const outside = join(gateway.directory, '../elsewhere.yaml');
  for (const file of ['/etc/hostname', '/dev/zero', outside]) {
    const { problems } = await configFiles.check(name, `include: ${file}\n${yaml}`);
    assert.deepEqual(
      problems.map(({ message }) => message),
      [`${file}: lies elsewhere: it can only be included by hand`],
    );
  }
});

test('one of two concurrent saves gets a conflict', async () => {
  const { configFiles, name } = await open();
  const saves = await Promise.allSettled(
    ['10', '11'].map((port) => configFiles.save(name, yaml.replace(':9" }', `:${port}" }`), yaml)),
  );
  assert.deepEqual(saves.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
});

test('a file that cannot be written is not applied either', async () => {
  const { configFiles, name } = await open();
  for (const place of [`${name}.bak.new`, `${name}.new`]) {
    await mkdir(place);
    await assert.rejects(
      configFiles.save(name, yaml.replace(':9" }', ':10" }'), yaml),
      refusal('forbidden', 'config_read_only'),
    );
    await rmdir(place);
  }
  assert.equal(await onDisk(), yaml);
  assert.equal((await configFiles.view()).generation, 0);
  assert.deepEqual(gateway.gateway.file.sections['passthrough'], { upstream: 'http://127.0.0.1:9' });
});

test('saving through a symbolic link replaces its target, and keeps the link', async () => {
  const { configFiles, name } = await open();
  const { rename } = await import('node:fs/promises');
  await rename(name, join(gateway.directory, 'real.yaml'));
  await symlink('real.yaml', name);
  await configFiles.save(name, yaml.replace(':9" }', ':10" }'), yaml);
  assert.match(await onDisk('real.yaml'), /:10" }/);
  assert.deepEqual((await readdir(gateway.directory)).sort(), ['gateway.yaml', 'real.yaml', 'real.yaml.bak']);
});

test('a manual reload applies the files on the disk', async () => {
  const { configFiles, name } = await open();
  await writeFile(name, yaml.replace(':9" }', ':10" }'));
  assert.notEqual((await configFiles.view()).files[0]!.text, yaml, 'what would be edited is what is there');
  assert.deepEqual((await configFiles.reload()).changes, [{ section: 'passthrough', restart: false }]);
  await writeFile(name, 'gateway: [');
  assert.equal((await configFiles.reload()).problems.length > 0, true);
});
