/** The command `connect` as the one file that gateways serve: in an empty home, from a pipe, by a Node without packages. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { connectCommand } from '../../../core/tools/client-programs.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { type Demo, startDemo } from '../../sdk/demo.ts';

const run = promisify(execFile);
let demo: Demo;
before(async () => {
  // A checkout whose packages were installed without their scripts.
  if (!existsSync('plugins/docs/dist/connect.cjs'))
    await run(process.execPath, ['--disable-warning=ExperimentalWarning', 'plugins/docs/connect/build.ts']);
  demo = await startDemo();
});
after(() => demo.stop());

test('the line of the pages sets a program up in an empty home and takes it back, with the file from the gateway alone', async () => {
  const home = temporaryDirectory('connect-program-');
  const env = { HOME: home, PATH: process.env['PATH'], GATEWAY_KEY: demo.keys.good };
  const bash = (line: string) => run('bash', ['-o', 'pipefail', '-c', line], { cwd: home, env });
  const line = connectCommand('claude-code', demo.origin, 'gpt-5.4-mini');
  assert.ok(
    (await fetch(`${demo.origin}/docs/clients/claude-code.md`).then((page) => page.text())).includes(
      connectCommand('claude-code', demo.origin).split(' --gateway')[0]!,
    ),
  );

  // There is no terminal to ask at.
  await assert.rejects(run('setsid', ['bash', '-c', line], { cwd: home, env }), /repeat the command with --yes/);
  const { stdout } = await bash(`${line} --yes`);
  const settings = join(home, '.claude/settings.json');
  assert.ok(readFileSync(settings, 'utf8').includes(demo.origin));
  assert.match(stdout, /gpt-5\.4-mini has answered/);
  await bash(/Take it back: (.*)/.exec(stdout)![1]!);
  assert.ok(!existsSync(settings));

  // The address may come by a variable, as SDKs write it.
  const byVariable = line.replace(` --gateway ${demo.origin}`, ' --yes');
  const again = await run('bash', ['-o', 'pipefail', '-c', byVariable], {
    cwd: home,
    env: { ...env, GATEWAY_URL: `${demo.origin}/v1/` },
  });
  await bash(/Take it back: (.*)/.exec(again.stdout)![1]!);
  assert.ok(!existsSync(settings));
});

test('the file is ASCII, small, needs no package, and says what it takes', async () => {
  const answer = await fetch(`${demo.origin}/docs/connect.cjs`);
  const text = await answer.text();
  assert.match(answer.headers.get('content-type')!, /^text\/javascript/);
  assert.ok(text.length < 160_000, `${text.length} bytes`);
  assert.equal(/[^\t\n\r\x20-\x7e]/.exec(text)?.[0], undefined);
  const needed = new Set(Array.from(text.matchAll(/\brequire\(["'`]([^"'`]+)["'`]\)/g), ([, name]) => name!));
  const own = new Set(process.getBuiltinModule('node:module').builtinModules);
  assert.deepEqual(
    [...needed].filter((name) => !own.has(name.replace('node:', ''))),
    [],
  );
  await assert.rejects(run(process.execPath, ['plugins/docs/dist/connect.cjs']), /--gateway <url>/);
});

test('a model with an odd name is one word of the line, in each shell', () => {
  assert.match(connectCommand('codex', 'https://g.example', "a'b c"), / --model 'a'\\''b c'$/);
  assert.match(connectCommand('codex', 'https://g.example', "a'b c", 'powershell'), / --model 'a''b c'$/);
});
