/** The npm package: packed, unpacked below node_modules in an empty directory, and run there as `npx` runs it. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { dropSchema } from './end-to-end/testbed.ts';
import { copyExamples, installPacked, manifest } from './examples/packed.ts';
import { databaseUrl } from './helpers/database.ts';

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), 'package-'));
const command = join(home, 'node_modules/.bin/model-gateway');
/** What was compiled once is read by the next process. */
const environment = (store: string) => ({
  PATH: process.env['PATH'],
  DATA_DIR: join(home, store),
  NODE_COMPILE_CACHE: join(home, 'compiled'),
});
const schema = `package_${process.pid}`;
let serving: ChildProcess | undefined;

before(async () => {
  await installPacked(home);
});

after(async () => {
  if (serving !== undefined && serving.exitCode === null) {
    serving.kill('SIGKILL');
    await once(serving, 'exit');
  }
  rmSync(home, { recursive: true, force: true });
  await dropSchema(schema);
});

test('an older Node is refused with one sentence that names the required version', async () => {
  for (const [version, isEnough] of [
    ['22.18.0', false],
    ['20.11.1', false],
    ['22.19.0', true],
  ] as const) {
    const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
    const reply = await run(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, command, '--help'],
      {
        env: environment('old'),
      },
    ).catch((error: { code: number; stderr: string; stdout: string }) => error);
    const code = 'code' in reply ? reply.code : 0;
    assert.equal(code, isEnough ? 0 : 1, reply.stderr);
    if (!isEnough) assert.equal(reply.stderr, `${manifest.name} needs Node 22.19 or later; this is Node ${version}.\n`);
  }
});

test('the package has no TypeScript except declarations, no tests, and the web app', async () => {
  const { stdout } = await run('find', [join(home, 'node_modules', manifest.name), '-type', 'f']);
  const files = stdout.split('\n');
  assert.deepEqual(
    files.filter((file) => /(?<!\.d)\.tsx?$|\.test\.|\/tests\//.test(file)),
    [],
  );
  for (const file of ['dist/plugins/console/web/dist/index.html', 'dist/config/vendors.yaml'])
    assert(
      files.some((packed) => packed.endsWith(file)),
      file,
    );
});

test('its package.json has nothing for development, and all that an installation reads', () => {
  const packed = JSON.parse(readFileSync(join(home, 'node_modules', manifest.name, 'package.json'), 'utf8'));
  for (const member of ['scripts', 'devDependencies', 'allowScripts']) assert.equal(packed[member], undefined, member);
  for (const member of ['name', 'version', 'type', 'engines', 'bin', 'exports', 'dependencies', 'license'] as const)
    assert.deepEqual(packed[member], manifest[member], member);
});

test('the examples run from the package, and its declarations fit them', async () => {
  const files = copyExamples(home);
  // One process loads the package once for all of them.
  const words = ['--test', '--test-isolation=none', '--test-reporter=dot', '--no-wasm-inlining', ...files];
  await run(process.execPath, words, { cwd: home, env: environment('examples') });
  for (const name of ['@types', 'undici-types', 'drizzle-orm'])
    if (!existsSync(join(home, 'node_modules', name)))
      symlinkSync(join(process.cwd(), 'node_modules', name), join(home, 'node_modules', name));
  const options = {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  };
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }');
  writeFileSync(
    join(home, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: options,
      include: ['examples/*/index.ts', 'examples/ollama/plugin', 'examples/cache', 'examples/notes'],
    }),
  );
  await run(join(process.cwd(), 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: home });
});

test('`plugin new` writes a plugin that runs unchanged', async () => {
  const { stdout } = await run(command, ['plugin', 'new', 'word-list'], { cwd: home, env: environment('new') });
  assert.match(stdout, /wrote word-list\/index\.ts/);
  await run(process.execPath, ['--test', 'word-list/index.test.ts'], { cwd: home, env: environment('new') });
  const text =
    'gateway: mine\nplugins: [providers, models, ./word-list, route, protocol-convert]\nproviders: {}\nmodels: {}\n';
  writeFileSync(join(home, 'new.yaml'), text);
  const checked = await run(command, ['check', 'new.yaml'], { cwd: home, env: environment('new') });
  assert.match(checked.stdout, /fits together/);
});

test('a package beside the YAML file is found from there', async () => {
  const folder = join(home, 'elsewhere');
  cpSync('tests/examples/notes', join(folder, 'node_modules/gateway-notes'), { recursive: true });
  writeFileSync(join(folder, 'notes.yaml'), 'gateway: notes\nplugins: [storage, console, gateway-notes]\n');
  await assert.rejects(
    run(command, ['check', 'elsewhere/notes.yaml'], { cwd: home, env: environment('new') }),
    ({ stdout }) => {
      // Node strips no types below node_modules.
      assert.match(stdout, /"gateway-notes" \(.*gateway-notes\/index\.ts\) cannot be loaded: .*node_modules/);
      return true;
    },
  );
  const text = stripTypeScriptTypes(readFileSync(join(folder, 'node_modules/gateway-notes/index.ts'), 'utf8'));
  writeFileSync(join(folder, 'node_modules/gateway-notes/index.js'), text);
  writeFileSync(
    join(folder, 'node_modules/gateway-notes/package.json'),
    '{ "name": "gateway-notes", "type": "module", "exports": "./index.js" }',
  );
  const checked = await run(command, ['check', 'elsewhere/notes.yaml'], { cwd: home, env: environment('new') });
  assert.match(checked.stdout, /fits together/);
});

test('the packed program reports the faults of a file', async () => {
  writeFileSync(join(home, 'wrong.yaml'), 'gateway: wrong\nplugins: [storage, nonsense]\n');
  await assert.rejects(run(command, ['check', 'wrong.yaml'], { cwd: home, env: environment('embedded') }), (error) => {
    assert.match((error as { stdout: string }).stdout, /wrong\.yaml:2.*"nonsense"/);
    return true;
  });
});

/** The program of the lowest Node that package.json allows. */
const { LOWEST_NODE: lowest } = process.env;

for (const [words, store, node] of [
  [['serve'], 'embedded', process.execPath],
  [['serve'], lowest === undefined ? undefined : 'embedded', lowest],
  [['serve', '--workers', '2'], databaseUrl, process.execPath],
] as const) {
  // Workers need a database that several processes may open.
  if (store === undefined || node === undefined) continue;
  const where = node === lowest ? ' on the lowest Node' : '';
  test(`\`${words.join(' ')}\` serves calls and the console from an empty directory${where}`, async () => {
    const text = `include: node_modules/${manifest.name}/dist/config/demo.yaml
gateway: packed
schema: ${schema}
listen: 127.0.0.1:0
storage: { database: "${store}" }
plans: { default: free, offers: { free: { price: 0, limits: {} } } }
billing: { statements: { zone: Europe/Berlin }, budgets: [{ of: account, amount: 5, every: week, first: 2026-04-06 }] }
`;
    writeFileSync(join(home, 'mine.yaml'), text);
    const env = environment(words.join('') + where);
    const child = spawn(node, [realpathSync(command), ...words, 'mine.yaml'], { cwd: home, env });
    serving = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    for (let tries = 0; !/"first_calls":[\s\S]*"msg":"listening"/.test(output); tries++) {
      assert(child.exitCode === null && tries < 2_000, output);
      await pause(50);
    }
    const origin = `http://127.0.0.1:${/"port":(\d+),"msg":"listening"/.exec(output)![1]}`;
    const key = /"key":"([^"]+)"/.exec(output)![1];
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
