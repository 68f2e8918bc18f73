/** A process that serves gateway files in front of two vendors that answer with their number, and what it has written so far. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

const directory = mkdtempSync(join(tmpdir(), 'serving-'));
const vendors = await Promise.all(['0', '1'].map(numbered));
let child: ChildProcess | undefined;
let output = '';

// Here and not in a hook: hooks do not run where a file ends before its first test.
process.once('exit', () => {
  child?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});
after(() => {
  for (const vendor of vendors) vendor.close();
});

async function numbered(number: string) {
  const server = createServer((_request, response) => void response.end(number));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

export const fileOf = (gateway: string): string => join(directory, `${gateway}.yaml`);

/** Writes a gateway's file: it keeps nothing, and asks the vendor of that number. */
export function write(gateway: string, vendor: number): void {
  const { port } = vendors[vendor]!.address() as AddressInfo;
  const passthrough = `passthrough: { upstream: "http://127.0.0.1:${port}" }`;
  writeFileSync(
    fileOf(gateway),
    `gateway: ${gateway}\nlisten: 127.0.0.1:0\ndata: ${directory}/none\nplugins: [passthrough]\n${passthrough}\n`,
  );
}

export function serve(...words: string[]): ChildProcess {
  child = spawn(process.execPath, ['core/process/main.ts', 'serve', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  return child;
}

export const written = (): string => output;
/** How often it has written this. */
export const count = (text: string): number => output.split(text).length - 1;

/** Waits a minute at most, and while the process lives. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    assert(tries < 3_000 && child!.exitCode === null, output);
    await pause(20);
  }
}

export const portOf = (gateway: string): string | undefined =>
  new RegExp(`"gateway":"${gateway}".*?"port":(\\d+),"msg":"listening"`).exec(output)?.[1];

/** The number of the vendor that the gateway asks, over a connection of its own. */
export async function send(gateway: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${portOf(gateway)}/a`, { headers: { connection: 'close' } });
  return answer.text();
}
