/** A primary whose gateway keeps nothing: its workers are replaced, reloaded, killed and stopped without any database. */
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

const directory = mkdtempSync(join(tmpdir(), 'primary-'));
const file = join(directory, 'gateway.yaml');
const vendors: Server[] = [];
let child: ChildProcess;
let output = '';

function write(index: number): void {
  const { port } = vendors[index]!.address() as AddressInfo;
  writeFileSync(
    file,
    `gateway: plain
listen: 127.0.0.1:0
data: ${directory}/none
plugins: [passthrough]
passthrough: { upstream: "http://127.0.0.1:${port}" }
`,
  );
}

const count = (text: string) => output.split(text).length - 1;

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    assert(tries < 3_000 && child.exitCode === null, output);
    await pause(20);
  }
}

async function ask(): Promise<string> {
  const port = /"port":(\d+),"msg":"listening"/.exec(output)![1];
  const answer = await fetch(`http://127.0.0.1:${port}/a`, { headers: { connection: 'close' } });
  return answer.text();
}

/** Of the worker that began to serve as the last one. */
const lastPid = () => Number([...output.matchAll(/"pid":(\d+),"msg":"a worker serves"/g)].at(-1)![1]);

before(async () => {
  for (const index of [0, 1]) {
    const server = createServer((_request, response) => void response.end(String(index)));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    vendors.push(server);
  }
  write(0);
  child = spawn(process.execPath, ['core/main.ts', 'serve', '--workers', '2', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  await until(() => count('a worker serves') === 2);
});

after(async () => {
  if (child.exitCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const server of vendors) server.close();
  rmSync(directory, { recursive: true, force: true });
});

test('all listen at one address, and a reload reaches each', async () => {
  const ports = new Set(Array.from(output.matchAll(/"port":(\d+),"msg":"listening"/g), ([, port]) => port));
  assert.equal(ports.size, 1);
  write(1);
  child.kill('SIGHUP');
  await until(() => count('in force') === 2);
  assert.deepEqual(await Promise.all([ask(), ask(), ask(), ask()]), ['1', '1', '1', '1']);
});

test('a worker that is killed has a successor', async () => {
  process.kill(lastPid(), 'SIGKILL');
  await until(() => count('a worker serves') === 3);
  assert.equal(await ask(), '1');
});

test('a worker that is told to end has one too', async () => {
  process.kill(lastPid(), 'SIGTERM');
  await until(() => count('a worker serves') === 4);
  assert.equal(await ask(), '1');
});

test('signals while workers are replaced replace them once more', async () => {
  for (let signal = 0; signal < 3; signal++) {
    child.kill('SIGUSR2');
    await pause(50);
  }
  await until(() => count('the workers are replaced') === 2);
  assert.equal(count('a worker serves'), 8);
  assert.equal(await ask(), '1');
});

test('SIGTERM ends all of them', async () => {
  child.kill('SIGTERM');
  assert.equal((await once(child, 'exit'))[0], 0);
  assert.throws(() => process.kill(lastPid(), 0));
});
