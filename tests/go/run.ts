/** `npm run test:go`: Google's client in Go before vendors that fall silent. Exit 77: Go or the client cannot be had, nothing was tested. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hold } from '../conformance/results.ts';
import { models, readsSilence } from '../sdk/silence.ts';

const notTested = 77;
const folder = await mkdtemp(join(tmpdir(), 'go-'));
const program = join(folder, 'silence');
try {
  const built = await promisify(execFile)('go', ['build', '-o', program, '.'], {
    cwd: import.meta.dirname,
    timeout: 600_000,
  }).catch((error: Error) => {
    console.error(`Google's client in Go cannot be built: ${error.message.slice(0, 500)}\nNothing was tested.`);
  });
  process.exitCode = built === undefined ? notTested : await readsSilence(program, []);
  const version = /genai (v\S+)/.exec(readFileSync(join(import.meta.dirname, 'go.mod'), 'utf8'))![1]!;
  const result = { what: 'google.golang.org/genai', version, counts: { 'silent streams': models.length } };
  if (process.exitCode === 0) hold('go', [result], 'npm run test:go');
} finally {
  await rm(folder, { recursive: true, force: true });
}
