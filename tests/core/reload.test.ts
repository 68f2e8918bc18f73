/** Changed files while a gateway serves: all of it holds at once, or nothing; and what waits for a restart is named. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { ConfigCheck } from '../../core/contract/config-files.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

/** Vendors that answer with their own name, at once or when they are let. */
const vendors: Record<string, Server> = {};
const held: (() => void)[] = [];

before(async () => {
  for (const name of ['one', 'two']) {
    const server = createServer((request, response) => {
      const answer = () => void response.end(name);
      if (request.url === '/slow') held.push(answer);
      else answer();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    vendors[name] = server;
  }
});

after(() => {
  for (const server of Object.values(vendors)) server.close();
});

const upstream = (name: string) => `http://127.0.0.1:${(vendors[name]!.address() as AddressInfo).port}`;
const yaml = (name: string, more = '') =>
  `gateway: test\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "${upstream(name)}" }\n${more}`;
const fileOf = ({ directory }: TestGateway) => join(directory, 'gateway.yaml');
const write = (gateway: TestGateway, text: string) => writeFile(fileOf(gateway), text);
const send = async ({ origin }: TestGateway, path = '/') => (await fetch(`${origin}${path}a`)).text();

test('a reload applies to new exchanges; running ones end with the old section', async (context) => {
  await using gateway = await startGateway(yaml('one'));
  context.after(() => gateway.stop());
  const slow = fetch(`${gateway.origin}/slow`).then((answer) => answer.text());
  while (held.length === 0) await pause(5);
  await write(gateway, yaml('two'));
  assert.equal(await send(gateway), 'one', 'a file that is written changes nothing by itself');
  const check = await gateway.gateway.reload();
  assert.deepEqual(check, { problems: [], notices: [], changes: [{ section: 'passthrough', restart: false }] });
  assert.equal(await send(gateway), 'two');
  held.pop()!();
  assert.equal(await slow, 'one');
  assert.deepEqual((await gateway.gateway.reload()).changes, []);
});

test('a file that cannot run is refused with its line, and the running configuration stays', async (context) => {
  await using gateway = await startGateway(yaml('one'));
  context.after(() => gateway.stop());
  const broken: [string, RegExp, number][] = [
    [yaml('two').replace('upstream:', 'upstraem:'), /passthrough\.upstraem: there is no such setting/, 4],
    [`${yaml('two')}mystery: {}\n`, /"mystery" is neither a setting/, 5],
    [yaml('two').replace('[passthrough]', '[passthrough, missing]'), /the plugin "missing" cannot be found/, 3],
    [`${yaml('two')}  - broken: [`, /./, 5],
    [yaml('two').replace(upstream('two'), '${NOT_SET_ANYWHERE}'), /NOT_SET_ANYWHERE is not set/, 4],
  ];
  for (const [text, message, line] of broken) {
    await write(gateway, text);
    const { problems, changes } = await gateway.gateway.reload();
    assert(
      problems.some((problem) => message.test(problem.message)),
      JSON.stringify(problems),
    );
    assert(
      problems.some(({ where }) => where === `${fileOf(gateway)}:${line}`),
      JSON.stringify(problems),
    );
    assert.deepEqual(changes, []);
    assert.equal(await send(gateway), 'one');
  }
  assert(
    gateway.lines.some(
      (line) => line.includes('are refused; the running configuration stays') && line.includes('upstraem'),
    ),
  );
  await write(gateway, yaml('two'));
  await gateway.gateway.reload();
  assert.equal(await send(gateway), 'two');
});

test('changes that need a restart are named and not applied; the rest is applied', async (context) => {
  const gateway = await startGateway(yaml('one'));
  context.after(() => gateway.stop());
  try {
    const more = 'schema: other\nserver: { header_limit: 1KB, drain: { grace: 0s } }\nlog: error\n';
    await write(
      gateway,
      yaml('two', more).replace('127.0.0.1:0', '127.0.0.1:1').replace('[passthrough]', '[passthrough, ./more.ts]'),
    );
    await writeFile(
      join(gateway.directory, 'more.ts'),
      `import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
       export default { name: 'more', config: z.strictObject({}), setup: () => ({}) };`,
    );
    const named = ({ changes, problems }: ConfigCheck, restart: boolean) => {
      assert.deepEqual(problems, []);
      return changes.filter((change) => change.restart === restart).map(({ section }) => section);
    };
    const waiting = ['listen', 'schema', 'plugins', 'server.header_limit'];
    const first = await gateway.gateway.reload();
    assert.deepEqual([named(first, true), named(first, false)], [waiting, ['log', 'server', 'passthrough']]);
    const second = await gateway.gateway.reload();
    assert.deepEqual([named(second, true), named(second, false)], [waiting, []], 'they are listed until it is done');
    const { server } = gateway.gateway.file.settings;
    assert.deepEqual([server.header_limit, server.drain.grace], [64 * 2 ** 10, 0]);
    assert.equal(await send(gateway), 'two');
    assert.equal(gateway.gateway.file.settings.listen.port, 0);
    assert(gateway.lines.some((line) => line.includes('these changes wait for a restart') && line.includes('plugins')));
  } finally {
    await gateway.stop();
  }
});

test('limits of the server apply to new requests', async (context) => {
  await using gateway = await startGateway(yaml('one'));
  context.after(() => gateway.stop());
  const status = async (bytes: number) =>
    (await fetch(`${gateway.origin}/a`, { method: 'POST', body: 'x'.repeat(bytes) })).status;
  assert.equal(await status(2_000), 200);
  await write(gateway, yaml('one', 'server: { body_limit: 1KB, headers: 2, timeout: 200ms }\n'));
  const { changes } = await gateway.gateway.reload();
  assert.deepEqual(changes, [{ section: 'server', restart: false }]);
  assert.equal(await status(10), 431);
  await write(gateway, yaml('one', 'server: { body_limit: 1KB, timeout: 200ms }\n'));
  await gateway.gateway.reload();
  assert.deepEqual([await status(2_000), await status(10)], [413, 200]);
  assert.equal((await fetch(`${gateway.origin}/slow`)).status, 504);
  held.pop()!();
});

test('with reload: watch a file is applied when it is written, replaced by a rename, or included', async (context) => {
  await using gateway = await startGateway(`${yaml('one')}reload: watch\n`);
  context.after(() => gateway.stop());
  const answers = async (expected: string) => {
    for (let tries = 0; tries < 1_200 && (await send(gateway)) !== expected; tries++) await pause(50);
    assert.equal(await send(gateway), expected);
  };
  await write(gateway, `${yaml('two')}reload: watch\n`);
  await answers('two');
  const { rename } = await import('node:fs/promises');
  await writeFile(`${fileOf(gateway)}.tmp`, `${yaml('one')}reload: watch\n`);
  await rename(`${fileOf(gateway)}.tmp`, fileOf(gateway));
  await answers('one');
  await writeFile(join(gateway.directory, 'vendor.yaml'), `passthrough: { upstream: "${upstream('two')}" }\n`);
  await write(gateway, `${yaml('one').replace(/^passthrough:.*$/m, 'include: vendor.yaml')}reload: watch\n`);
  await answers('two');
  await writeFile(join(gateway.directory, 'vendor.yaml'), `passthrough: { upstream: "${upstream('one')}" }\n`);
  await answers('one');
  await write(gateway, yaml('two'));
  await answers('two');
  await write(gateway, yaml('one'));
  await pause(800);
  assert.equal(await send(gateway), 'two', 'the file has said that it is no longer watched');
});

for (const [what, halfOf] of [
  // Valid in itself, but with another address.
  [
    'ends within a line',
    (text: string) => text.slice(0, text.indexOf('" }\n', text.indexOf('passthrough: {')) - 1) + '" }',
  ],
  ['is empty', () => ''],
  ['is the beginning of what it was', (_text: string, before: string) => before.slice(0, before.indexOf('log:'))],
] as const) {
  test(`with reload: watch a file that ${what} during writing is applied once it is complete`, async (context) => {
    const first = `${yaml('one')}reload: watch\nlog: debug\n`;
    await using gateway = await startGateway(first);
    context.after(() => gateway.stop());
    const before = await readFile(fileOf(gateway), 'utf8');
    const next = before.replace(upstream('one'), upstream('two'));
    await write(gateway, halfOf(next, before));
    await pause(1_200);
    assert.equal(await send(gateway), 'one');
    assert.deepEqual(
      gateway.lines.filter((line) => line.includes('changed files')),
      [],
    );
    await write(gateway, next);
    await until('the whole file is in force', async () => (await send(gateway)) === 'two');
  });
}

test('a manual reload of a half-written file applies all of it or nothing', async (context) => {
  await using gateway = await startGateway(yaml('one'));
  context.after(() => gateway.stop());
  const before = await readFile(fileOf(gateway), 'utf8');
  const next = before.replace(upstream('one'), upstream('two'));
  for (let end = 0; end < next.length; end += 3) {
    await write(gateway, next.slice(0, end));
    const { problems } = await gateway.gateway.reload();
    if (problems.length > 0) assert.match(await send(gateway), /^one$/, `at ${end}`);
    await write(gateway, before);
    await gateway.gateway.reload();
  }
});

test('two gateways in one process reload separately', async () => {
  const [first, second] = [await startGateway(yaml('one')), await startGateway(yaml('one'))];
  try {
    await write(first, yaml('two'));
    await write(second, 'gateway: [');
    await Promise.all([first.gateway.reload(), second.gateway.reload()]);
    assert.equal(await send(first), 'two');
    assert.equal(await send(second), 'one');
    assert.match(await readFile(fileOf(second), 'utf8'), /^gateway: \[/);
  } finally {
    await first.stop();
    await second.stop();
  }
});
