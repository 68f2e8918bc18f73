/**
 * Loaded before each process of a mutant's suites (`--import`): puts the mutant's text in where its file is loaded, says on descriptor 3 which
 * test file begins and which test failed, and counts what each file executes where MUTANTS_COVERAGE names a file for it.
 */
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { registerHooks } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { type Executed, flattened } from './executed.ts';

const root = join(import.meta.dirname, '../..');
const isWorker = isMainThread && process.argv[1] === join(root, 'tests/runner/worker.ts');
const { MUTANT: substituted, MUTANTS_COVERAGE: coverage } = process.env;

const beginsWith: ((file: string) => void)[] = [];
if (isWorker && coverage !== undefined) beginsWith.push(counting(coverage));
if (isWorker) beginsWith.push((file) => writeSync(3, `${JSON.stringify({ begins: file })}\n`));

const mutant =
  substituted === undefined
    ? undefined
    : (JSON.parse(readFileSync(substituted, 'utf8')) as { file: string; text: string });
const mutatedUrl = mutant && pathToFileURL(join(root, mutant.file)).href;
registerHooks({
  load(url, context, next) {
    if (url === mutatedUrl) return { format: 'module-typescript', source: mutant!.text, shortCircuit: true };
    if (beginsWith.length > 0 && url.endsWith('.test.ts')) {
      for (const begin of beginsWith) begin(relative(root, fileURLToPath(url)));
    }
    return next(url, context);
  },
});

/** Writes what each test file has executed of the product when the process ends. */
function counting(path: string): (file: string) => void {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const found: Record<string, Record<string, Executed>> = {};
  let current = '';
  const take = () =>
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
      const files: Record<string, Executed> = { ...found[current] };
      found[current] = files;
      for (const { url, functions } of result) {
        if (!url.startsWith('file:') || url.includes('/node_modules/')) continue;
        const file = relative(root, fileURLToPath(url));
        if (/^(?:core|plugins)\//.test(file)) files[file] = flattened(functions);
      }
    });
  process.once('exit', () => {
    take();
    delete found[''];
    writeFileSync(path, JSON.stringify(found));
  });
  return (file) => {
    take();
    current = file;
  };
}
