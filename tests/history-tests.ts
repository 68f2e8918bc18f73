/** `npm run test:histories`: the test files with random histories, at their full length, with the time that they need and new seeds. */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';

const files = globSync('tests/**/*.test.ts').filter((file) =>
  /from '[./]*\/helpers\/histories\.ts'/.test(readFileSync(file, 'utf8')),
);
const setUp = ['--import', './tests/helpers/quick-start.ts', '--test-global-setup=tests/helpers/in-memory.ts'];
const flags = [...setUp, '--test', '--test-concurrency=2', '--test-timeout=900000'];
const child = spawn(process.execPath, [...flags, ...files.toSorted()], {
  stdio: 'inherit',
  env: { TEST_SEED: 'random', ...process.env, TEST_HISTORIES: 'whole' },
});
child.once('exit', (code) => process.exit(code ?? 1));
