/**
 * `npm run build:compiled`: starts what `npm start` serves once and answers a few calls, so that what Node compiles of it is kept below node_modules,
 * and the first start of a person need not compile it. Without it, as with packages for production alone, a first start takes a second longer.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
/** `core/process/loading.ts` reads it. */
const compiled = join(root, 'node_modules/.cache/model-gateway');
const longestMs = 60_000;
const calls = 3;

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const home = mkdtempSync(join(tmpdir(), 'gateway-compile-'));
rmSync(compiled, { recursive: true, force: true });
mkdirSync(compiled, { recursive: true, mode: 0o700 });
const { PATH, SystemRoot } = process.env;
const gateway = spawn(scripts.start, {
  shell: true,
  detached: true,
  cwd: root,
  env: {
    ...{ PATH, SystemRoot, HOME: home, TMPDIR: home, DATA_DIR: join(home, 'data') },
    ...{ PORT: '0', ALT_PORT: '0' },
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const timer = setTimeout(() => signal('SIGKILL'), longestMs);
const ended = once(gateway, 'exit');
try {
  const { port, key } = await listening();
  for (let made = 0; made < calls; made += 1) await call(port, key);
  signal('SIGTERM');
  await ended;
} catch (error) {
  // Nothing depends on it but time.
  console.error(`the first start will compile the gateway: ${error.message}`);
  rmSync(compiled, { recursive: true, force: true });
  signal('SIGKILL');
} finally {
  clearTimeout(timer);
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}

/** Port and key of the first gateway, once both serve. */
function listening() {
  let text = '';
  return new Promise((resolve, reject) => {
    gateway.stdout.setEncoding('utf8').on('data', (piece) => {
      text += piece;
      const ports = [...text.matchAll(/^\{.*"port":(\d+),"msg":"listening"/gm)].map(([, port]) => port);
      const key = /"key":"(sk-[^"]+)"/.exec(text)?.[1];
      if (ports.length === 2 && key !== undefined) resolve({ port: ports[0], key });
    });
    gateway.once('exit', () => reject(new Error(`it did not start: ${text.slice(-2_000)}`)));
  });
}

async function call(port, key) {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }], stream: true }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.text();
}

/** The shell may stand between. */
function signal(name) {
  try {
    process.kill(-gateway.pid, name);
  } catch {
    // It has ended.
  }
}
