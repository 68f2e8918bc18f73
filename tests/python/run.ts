/**
 * `npm run test:python [-- test_openai]`: the official Python clients before the demo gateway.
 * Exit 1: a test failed. Exit 77: Python or a client could not be had, nothing was tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { hold, type Result } from '../conformance/results.ts';
import { pythonWith } from '../helpers/python.ts';
import { caFile, startTlsFront } from '../helpers/tls-front.ts';
import { startDemo } from '../sdk/demo.ts';
import { readsSilence } from '../sdk/silence.ts';
import { calls, nameOf, writeSnippets } from '../sdk/snippet-calls.ts';

const here = import.meta.dirname;
const notTested = 77;

const python = await pythonWith(join(here, 'requirements.txt')).catch((error: Error) => {
  console.error(`The Python clients cannot be installed: ${error.message.slice(0, 500)}\nNothing was tested.`);
});
process.exitCode = python === undefined ? notTested : await runAll(python);

/** The silence takes longer than the processor is needed for, so the other tests run beside it. */
async function runAll(interpreter: string): Promise<number> {
  const isWhole = process.argv.length <= 2;
  const silence = isWhole ? readsSilence(interpreter, [join(here, 'silence.py')]) : 0;
  const [tests, silent] = await Promise.all([runTests(interpreter), silence]);
  return tests || silent;
}

async function runTests(interpreter: string): Promise<number> {
  const demo = await startDemo();
  const front = await startTlsFront(demo.origin);
  const snippets = await mkdtemp(join(tmpdir(), 'snippets-'));
  try {
    await writeSnippets(snippets, 'python', { base: demo.origin, key: demo.keys.good });
    const wanted = calls.map(({ says, makes }, index) => [nameOf(index), { says: says?.source, makes }] as const);
    const refused = 'http://127.0.0.1:9';
    const files = process.argv.slice(2);
    const words = files.length > 0 ? ['-v', ...files] : ['discover', '-v'];
    const child = spawn(interpreter, ['-m', 'unittest', ...words], {
      cwd: here,
      stdio: ['ignore', 'inherit', 'pipe'],
      timeout: 180_000,
      env: {
        PATH: process.env['PATH'],
        PYTHONDONTWRITEBYTECODE: '1',
        HTTP_PROXY: refused,
        HTTPS_PROXY: refused,
        NO_PROXY: '127.0.0.1,localhost',
        GATEWAY_ORIGIN: demo.origin,
        GATEWAY_TLS_ORIGIN: front.origin,
        SSL_CERT_FILE: caFile,
        GATEWAY_KEYS: JSON.stringify(demo.keys),
        SNIPPETS: snippets,
        SNIPPETS_WANTED: JSON.stringify(Object.fromEntries(wanted)),
      },
    });
    child.stderr.pipe(process.stderr);
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>]);
    if (code === 0 && files.length === 0) hold('python', resultsOf(said), 'npm run test:python');
    const { violations } = await demo.audit();
    for (const violation of violations) console.error('the ledger:', violation);
    return violations.length > 0 ? 1 : (code ?? 1);
  } finally {
    front.close();
    await rm(snippets, { recursive: true, force: true });
    await demo.stop();
  }
}

/** What unittest says of each test, by the package that the file is about; the console's code stands for all of them. */
function resultsOf(said: string): Result[] {
  const passed = said.matchAll(/^\w+ \(test_(\w+)\.[^)]*\)(?:\n[^\n]*)? \.\.\. ok$/gm);
  const groups = Map.groupBy(passed, ([, file]) => file!);
  const pins = readFileSync(join(here, 'requirements.txt'), 'utf8').trim().split('\n');
  const packages: Readonly<Record<string, string>> = { google: 'google-genai' };
  return [...groups].map(([file, tests]) => {
    const pin = pins.find((one) => one.startsWith(`${packages[file] ?? file}==`));
    const what = pin === undefined ? 'code that the console shows' : pin.split('==')[0]!;
    return {
      what,
      version: (pin === undefined ? pins : [pin]).join(', ').replaceAll('==', ' '),
      counts: { tests: tests.length },
    };
  });
}
