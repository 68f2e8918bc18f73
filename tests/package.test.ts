/** The npm package: packed, unpacked below node_modules in an empty directory, and run there as `npx` runs it. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { dropSchema } from './end-to-end/house.ts';
import { databaseUrl } from './helpers/database.ts';
import { fillDirectory } from './helpers/template.ts';

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), 'package-'));
const command = join(home, 'node_modules/.bin/model-gateway');
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  name: string;
  dependencies: Record<string, string>;
  bin: Record<string, string>;
};
const environment = (store: string) => ({ PATH: process.env['PATH'], DATA_DIR: join(home, store) });
const schema = `package_${process.pid}`;
let serving: ChildProcess | undefined;

before(async () => {
  if (!existsSync('plugins/console/web/dist')) await run('npm', ['run', 'build:console']);
  await run(process.execPath, ['--disable-warning=ExperimentalWarning', 'docker/pack.mjs']);
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', home]);
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const folder = join(home, 'node_modules', manifest.name);
  mkdirSync(join(home, 'node_modules/.bin'), { recursive: true });
  mkdirSync(folder);
  await run('tar', ['-xzf', join(home, filename), '-C', folder, '--strip-components=1']);
  // As an installation without the development packages would have it.
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(home, 'node_modules', name)), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', name), join(home, 'node_modules', name));
  }
  symlinkSync(join(folder, manifest.bin['model-gateway']!), command);
  await fillDirectory(environment('serve').DATA_DIR);
});

after(async () => {
  if (serving !== undefined && serving.exitCode === null) {
    serving.kill('SIGKILL');
    await once(serving, 'exit');
  }
  rmSync(home, { recursive: true, force: true });
  await dropSchema(schema);
});

test('an older Node is told in one sentence which one is needed', async () => {
  for (const [version, isEnough] of [
    ['22.18.0', false],
    ['20.11.1', false],
    ['22.19.0', true],
  ] as const) {
    const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
    const told = await run(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, command, '--help'],
      {
        env: environment('old'),
      },
    ).catch((error: { code: number; stderr: string; stdout: string }) => error);
    const code = 'code' in told ? told.code : 0;
    assert.equal(code, isEnough ? 0 : 1, told.stderr);
    if (!isEnough) assert.equal(told.stderr, `${manifest.name} needs Node 22.19 or later; this is Node ${version}.\n`);
  }
});

test('the package has no TypeScript and no tests in it, but the web app', async () => {
  const { stdout } = await run('find', [join(home, 'node_modules', manifest.name), '-type', 'f']);
  const files = stdout.split('\n');
  assert.deepEqual(
    files.filter((file) => /\.tsx?$|\.test\.|\/tests\//.test(file)),
    [],
  );
  for (const file of ['dist/plugins/console/web/dist/index.html', 'dist/config/vendors.yaml'])
    assert(
      files.some((packed) => packed.endsWith(file)),
      file,
    );
});

test('it says what is wrong with a file', async () => {
  writeFileSync(join(home, 'wrong.yaml'), 'gateway: wrong\nplugins: [storage, nonsense]\n');
  await assert.rejects(run(command, ['check', 'wrong.yaml'], { cwd: home, env: environment('embedded') }), (error) => {
    assert.match((error as { stdout: string }).stdout, /wrong\.yaml:2.*"nonsense"/);
    return true;
  });
});

for (const [words, store] of [
  [['serve'], 'embedded'],
  [['serve', '--workers', '2'], databaseUrl],
] as const) {
  // Workers need a database that several processes may open.
  if (store === undefined) continue;
  test(`\`${words.join(' ')}\` serves calls and the console from an empty directory`, async () => {
    const text = `include: node_modules/${manifest.name}/dist/config/demo.yaml
gateway: packed
schema: ${schema}
listen: 127.0.0.1:0
storage: { database: "${store}" }
plans: { default: free, offers: { free: { price: 0, limits: {} } } }
`;
    writeFileSync(join(home, 'mine.yaml'), text);
    const child = spawn(command, [...words, 'mine.yaml'], { cwd: home, env: environment(words.join('')) });
    serving = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    for (let tries = 0; !/First calls:[\s\S]*"msg":"listening"/.test(output); tries++) {
      assert(child.exitCode === null && tries < 2_000, output);
      await pause(50);
    }
    const origin = `http://127.0.0.1:${/"port":(\d+),"msg":"listening"/.exec(output)![1]}`;
    const key = /^ {6}(\S+)$/m.exec(output.slice(output.indexOf('It is shown only now')))![1];
    const answer = await fetch(`${origin}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key!, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-5.4-mini', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    assert.equal(answer.status, 200, await answer.text());
    const page = await fetch(`${origin}/console/`);
    assert.match(await page.text(), /<script type="module"/);
    child.kill('SIGTERM');
    assert.equal((await once(child, 'exit'))[0], 0);
    assert.doesNotMatch(output, /ExperimentalWarning|"level":"error"/);
  });
}
