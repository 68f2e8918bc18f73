/** `npm run prepare`: the pages on one core, what else is built on another, and then a first start. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

async function build(name) {
  const words = ['run', '--silent', `build:${name}`];
  const [code] = await once(spawn('npm', words, { stdio: 'inherit', shell: process.platform === 'win32' }), 'exit');
  if (code !== 0) throw new Error(`npm run build:${name} has failed`);
}

await Promise.all([build('console'), build('connect').then(() => build('database'))]);
await build('compiled');
