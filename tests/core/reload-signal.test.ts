/** SIGHUP of a real process: its gateways read their files again, each by itself, and go on. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

const directory = mkdtempSync(join(tmpdir(), 'signal-'));
const vendors: Server[] = [];
let child: ChildProcess;
let output = '';

const vendor = (index: number) => `http://127.0.0.1:${(vendors[index]!.address() as AddressInfo).port}`;
const file = (name: string) => join(directory, `${name}.yaml`);

function write(name: string, index: number): void {
  writeFileSync(
    file(name),
    `gateway: ${name}\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "${vendor(index)}" }\n`,
  );
}

const port = (name: string) => new RegExp(`"gateway":"${name}","port":(\\d+),"msg":"listening"`).exec(output)?.[1];
const ask = async (name: string) => (await fetch(`http://127.0.0.1:${port(name)}/a`)).text();

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    assert(tries < 600, output);
    await pause(20);
  }
}

before(async () => {
  for (const index of [0, 1]) {
    const server = createServer((_request, response) => void response.end(String(index)));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    vendors.push(server);
  }
  write('first', 0);
  write('second', 0);
  const words = ['core/main.ts', 'serve', file('first'), file('second')];
  child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  await until(() => port('first') !== undefined && port('second') !== undefined);
});

after(async () => {
  if (child.exitCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const server of vendors) server.close();
  rmSync(directory, { recursive: true, force: true });
});

test('SIGHUP takes up what is good, refuses what is broken, and neither ends the process', async () => {
  write('first', 1);
  writeFileSync(file('second'), 'gateway: second\nplugins: [passthrough]\npassthrough: { up: 1 }\n');
  child.kill('SIGHUP');
  await until(() => output.includes('in force') && output.includes('what ran goes on'));
  assert.match(output, /"gateway":"second".*second\.yaml:3/);
  assert.deepEqual([await ask('first'), await ask('second')], ['1', '0']);
  write('second', 1);
  child.kill('SIGHUP');
  await until(() => /"gateway":"second".*in force/.test(output));
  assert.equal(await ask('second'), '1');
});

test('SIGUSR2, which is for those who have workers, does not end it', async () => {
  child.kill('SIGUSR2');
  await until(() => output.includes('without --workers'));
  assert.equal(await ask('second'), '1');
});

test('SIGTERM still ends it in order', async () => {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
});
