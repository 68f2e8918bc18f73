/** How modules are loaded: what was compiled is kept in a safe place, and each folder's kind and each package is looked up once. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const run = promisify(execFile);
/** Without what is loaded before each process of the tests: it remembers modules, too. */
const bare = { ...process.env, NODE_OPTIONS: '' };
const loading = new URL('../../core/process/loading.ts', import.meta.url).href;

/** A gateway's folder with nothing but what is tested. */
function checkout(): string {
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'core/process'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  copyFileSync(new URL(loading), join(folder, 'core/process/loading.ts'));
  return folder;
}

/** Where a process keeps what it compiled; undefined: nowhere. */
async function keptBy(environment: Readonly<Record<string, string>>, folder = checkout()): Promise<string | undefined> {
  const code = `import { getCompileCacheDir } from 'node:module';
    const { keepCompiled } = await import('${join(folder, 'core/process/loading.ts')}');
    keepCompiled();
    console.log(JSON.stringify([getCompileCacheDir(), process.env.NODE_COMPILE_CACHE]));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { env: environment });
  const [directory, passedOn] = JSON.parse(stdout) as [string | null, string | null];
  assert.equal(passedOn, directory === null ? (environment['NODE_COMPILE_CACHE'] ?? null) : join(directory, '..'));
  return passedOn ?? undefined;
}

test("compiled code is kept in the user's own directory, for child processes too", async () => {
  const home = temporaryDirectory();
  const own = join(home, '.cache', 'model-gateway');
  assert.equal(await keptBy({ HOME: home }), own);
  assert.equal(statSync(own).mode & 0o777, 0o700);
  const other = temporaryDirectory();
  assert.equal(await keptBy({ HOME: home, XDG_CACHE_HOME: other }), join(other, 'model-gateway'));
  assert.equal(await keptBy({ HOME: home, NODE_COMPILE_CACHE: other }), other);
});

test('nothing is kept in a directory that others can write, or where writing fails', async () => {
  const home = temporaryDirectory();
  const own = join(home, '.cache', 'model-gateway');
  mkdirSync(own, { recursive: true });
  chmodSync(own, 0o777);
  assert.equal(await keptBy({ HOME: home }), undefined);
  chmodSync(own, 0o700);
  assert.equal(await keptBy({ HOME: home }), own);
  if (process.getuid?.() === 0) {
    chownSync(own, 12_345, 12_345);
    assert.equal(await keptBy({ HOME: home }), undefined);
  }
  assert.equal(await keptBy({ HOME: '/dev/null' }), undefined);
  assert.equal(await keptBy({ HOME: home, NODE_DISABLE_COMPILE_CACHE: '1' }), undefined);
});

test('compiled code is kept beside the packages where it was built, unless others can write there or the packages are linked', async () => {
  const [folder, home] = [checkout(), temporaryDirectory()];
  const own = join(home, '.cache', 'model-gateway');
  const built = join(folder, 'node_modules/.cache/model-gateway');
  mkdirSync(built, { recursive: true, mode: 0o755 });
  assert.equal(await keptBy({ HOME: home }, folder), built);
  const other = temporaryDirectory();
  assert.equal(await keptBy({ HOME: home, NODE_COMPILE_CACHE: other }, folder), other);
  chmodSync(built, 0o777);
  assert.equal(await keptBy({ HOME: home }, folder), own);
  chmodSync(built, 0o755);
  const linked = checkout();
  symlinkSync(join(folder, 'node_modules'), join(linked, 'node_modules'));
  assert.equal(await keptBy({ HOME: home }, linked), own);
});

const built = fileURLToPath(new URL('../../node_modules/.cache/model-gateway', import.meta.url));

test('npm start loads what npm ci has compiled', {
  skip: !existsSync(built) && 'npm run build:compiled has not run',
}, async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { start: string } };
  const { PATH, HOME } = process.env;
  const folder = temporaryDirectory();
  const gateway = spawn('sh', ['-c', scripts.start], {
    detached: true,
    env: { PATH, HOME, DATA_DIR: join(folder, 'data'), PORT: '0', ALT_PORT: '0', NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const of = (word: string) => said.split(word).length - 1;
  const ended = once(gateway, 'close');
  for (const stream of [gateway.stdout, gateway.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (of('"msg":"listening"') === 2) endGroup(gateway);
    });
  await ended;
  const [accepted, compiled] = [of('was accepted'), of('was not initialized')];
  assert.ok(accepted > 1_000 && compiled < accepted / 5, `${accepted} accepted, ${compiled} compiled`);
});

/** The shell may stand between. */
function endGroup({ pid }: { readonly pid?: number | undefined }): void {
  try {
    process.kill(-pid!, 'SIGTERM');
  } catch {
    // It has ended.
  }
}

test('a folder is read once, and each keeps its own module kind', async () => {
  const directory = temporaryDirectory();
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text);
  mkdirSync(join(directory, 'old'));
  put('package.json', '{"type":"module"}');
  put('old/package.json', '{"type":"commonjs"}');
  put(
    'one.js',
    "import two from './two.js'; import three from './three.js'; import four from './old/four.js'; export default [two, three, four];",
  );
  put('two.js', 'export default 2;');
  put(
    'three.js',
    "import four from './old/four.js'; import { five } from './old/five.js'; export default 3 + four + five;",
  );
  put('old/four.js', 'module.exports = 4;');
  put('old/five.js', "exports.five = require('./six.js') - 1;");
  put('old/six.js', 'module.exports = 6;');
  put('lost.js', "import './nowhere.js';");
  const code = `import { registerHooks } from 'node:module';
    const requested = [];
    registerHooks({ resolve: (specifier, context, next) => (requested.push(specifier), next(specifier, context)) });
    const { rememberModules } = await import('${loading}');
    rememberModules();
    requested.length = 0;
    const { default: numbers } = await import('./one.js');
    const lost = await import('./lost.js').catch(({ message }) => message);
    console.log(JSON.stringify({ numbers, requested, lost }));`;
  put('all.mjs', code);
  const { stdout } = await run(process.execPath, [join(directory, 'all.mjs')], { env: bare });
  const { numbers, requested, lost } = JSON.parse(stdout) as { numbers: number[]; requested: string[]; lost: string };
  assert.deepEqual(numbers, [2, 12, 4]);
  assert.deepEqual(
    requested.filter((specifier) => !specifier.includes('old/')),
    ['./one.js', './six.js'],
  );
  assert.match(lost, /nowhere\.js/);
});

test('a package is searched once, and a folder with its own packages uses those', async () => {
  const directory = temporaryDirectory();
  const put = (name: string, text: string) => {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  };
  put('package.json', '{"type":"module"}');
  for (const place of ['', 'plugins/three/']) {
    put(`${place}node_modules/@some/pack/package.json`, '{"type":"module","exports":{"./part":"./part.js"}}');
    put(`${place}node_modules/@some/pack/part.js`, `import many from 'many'; export default 'of /${place}' + many;`);
    put(`${place}node_modules/many/package.json`, '{"type":"module","main":"./index.js"}');
    put(`${place}node_modules/many/index.js`, `export default ', many of /${place}';`);
  }
  const loaders = [
    'plugins/one/index.js',
    'plugins/two/index.js',
    'plugins/three/deep/index.js',
    'plugins/four/index.js',
  ];
  for (const name of loaders)
    put(name, "export { default as pack } from '@some/pack/part'; export { default as many } from 'many';");
  put(
    'core/process/all.js',
    `import { registerHooks } from 'node:module';
    const asked = [];
    registerHooks({ resolve: (specifier, context, next) => (asked.push(specifier), next(specifier, context)) });
    const { rememberModules } = await import('./loading.ts');
    rememberModules();
    rememberModules();
    const found = [];
    for (const name of ${JSON.stringify(loaders)}) found.push({ ...(await import('../../' + name)) });
    const lost = [];
    for (const time of [1, 2]) lost.push(await import('lost').catch(({ code }) => code));
    console.log(JSON.stringify({ found, asked: asked.filter((name) => name === 'many' || name === '@some/pack/part'), lost }));`,
  );
  copyFileSync(fileURLToPath(loading), join(directory, 'core/process/loading.ts'));
  const { stdout } = await run(process.execPath, [join(directory, 'core/process/all.js')], { env: bare });
  const { found, asked: requested, lost } = JSON.parse(stdout) as Record<'found' | 'asked' | 'lost', unknown[]>;
  const [shared, own] = ['/', '/plugins/three/'].map((place) => ({
    pack: `of ${place}, many of ${place}`,
    many: `, many of ${place}`,
  }));
  assert.deepEqual(found, [shared, shared, own, shared]);
  // Once for all that share them, and each time in the folder that has its own.
  assert.deepEqual(requested.toSorted(), ['@some/pack/part', '@some/pack/part', 'many', 'many', 'many']);
  assert.deepEqual(lost, ['ERR_MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND']);
  // The working directory asks for what `--import` names.
  put('core/process/first.js', "import { rememberModules } from './loading.ts'; rememberModules();");
  const imports = ['./core/process/first.js', 'many'].flatMap((name) => ['--import', name]);
  const options = { env: bare, cwd: directory };
  assert.equal((await run(process.execPath, [...imports, '--eval', "console.log('runs')"], options)).stdout, 'runs\n');
});
