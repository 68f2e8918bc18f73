/** Gateways that the browser's tests visit: the stand-in API over fakes, and the demo gateway itself with its first operator. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../helpers/free-port.ts';
import { fillMigrated } from '../helpers/migrated.ts';
import { fakeConsole } from '../plugins/console/fake-console.ts';
import { serveFake } from '../plugins/console/fake-server.ts';

export interface Testbed {
  /** Scheme and host. */
  readonly origin: string;
  /** By which a script is the operator. */
  readonly operatorHeaders: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Password of every person that is made here. */
export const password = 'a password of a test';

export async function openStandIn(): Promise<Testbed> {
  const { origin, close } = await serveFake(fakeConsole({ now: Date.now, role: undefined }));
  return { origin, operatorHeaders: { cookie: 'fake=operator' }, close: async () => close() };
}

/** The demo gateway in a process of its own, with an embedded database and the sandbox for a vendor. */
export async function openDemo(): Promise<Testbed> {
  const directory = await mkdtemp(join(tmpdir(), 'console-demo-'));
  await fillMigrated(directory, 'demo');
  const port = await freePort();
  const env = { PORT: String(port), DATA_DIR: directory };
  const args = ['core/process/main.ts', 'serve', 'config/demo.yaml'];
  const { child, printed } = await started(args, env, /"msg":"listening"/);
  const origin = `http://localhost:${port}`;
  const token = await operatorToken(origin, /\/console\/first\?token=([\w%-]+)/.exec(printed)![1]!);
  return {
    origin,
    operatorHeaders: { authorization: `Bearer ${token}` },
    close: async () => {
      await ended(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Becomes the first operator by the printed link, and makes a token for scripts. */
async function operatorToken(origin: string, link: string): Promise<string> {
  const email = 'operator@example.test';
  await post(origin, '/first-operator', { token: decodeURIComponent(link), email, password, name: 'Oscar' });
  const signedIn = await post(origin, '/auth/sign-in/email', { email, password });
  const cookie = signedIn.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  const made = await post(origin, '/admin/tokens', { name: 'browser tests' }, { cookie });
  return ((await made.json()) as { token: string }).token;
}

/** A change by the API, as a page of this origin makes it; an answer that is not 2xx is an error. */
export async function post(
  origin: string,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const answer = await fetch(`${origin}/console/api${path}`, {
    method: 'POST',
    headers: {
      origin,
      'content-type': 'application/json',
      'x-console': '1',
      'idempotency-key': randomUUID(),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

async function started(args: string[], env: Record<string, string>, ready: RegExp) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (bytes) => {
      printed += bytes;
      if (ready.test(printed)) resolve();
    });
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${printed}`)));
  });
  return { child, printed };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(patience);
}
