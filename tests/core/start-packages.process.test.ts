/** What a start loads: of the packages those that what is configured needs. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Packages of package.json that a process has loaded, printed when it ends. */
const watcher = `import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
const names = new Set();
registerHooks({
  load(url, context, next) {
    const name = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
    if (name !== undefined) names.add(name);
    return next(url, context);
  },
});
process.on('exit', () => writeSync(1, 'loaded: ' + JSON.stringify([...names]) + '\\n'));`;

test('a start loads only the packages that its configuration needs', {
  timeout: 60_000,
}, async () => {
  const directory = temporaryDirectory();
  const preload = `data:text/javascript,${encodeURIComponent(watcher)}`;
  const child = spawn(process.execPath, ['--import', preload, 'core/process/main.ts', 'serve', 'config/demo.yaml'], {
    env: { ...process.env, DATA_DIR: directory, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text;
    if (output.includes('"msg":"listening"')) child.kill('SIGTERM');
  }
  const loaded = new Set(JSON.parse(/^loaded: (.*)$/m.exec(output)![1]!) as string[]);
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
  assert.deepEqual(
    Object.keys(dependencies).filter((name) => loaded.has(name)),
    [
      '@hono/zod-openapi',
      'commander',
      'drizzle-orm',
      'find-my-way',
      'flydrive',
      'hono',
      'http-proxy-3',
      'lru-cache',
      'pino',
      'postgres',
      'standardwebhooks',
      'undici',
      'ws',
      'yaml',
      'zod',
    ],
  );
});
