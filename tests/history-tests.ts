/** `npm run test:histories`: the test files with random histories, at their full length, with the time that they need and new seeds. */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';

const files = globSync('tests/**/*.test.ts').filter((file) =>
  /from '[./]*\/helpers\/histories\.ts'/.test(readFileSync(file, 'utf8')),
);
const runner = ['--import', './tests/runner/quick-start.ts', 'tests/runner/run.ts', '--workers=2', '--minutes=15'];
const child = spawn(process.execPath, [...runner, ...files.toSorted()], {
  stdio: 'inherit',
  env: { TEST_SEED: 'random', ...process.env, TEST_HISTORIES: 'whole' },
});
child.once('exit', (code) => process.exit(code ?? 1));
