/**
 * `npm run test:mcp`: runs the protocol's own suite against `/mcp` with a server of the official library behind it, and against the gateway as a
 * client of the suite's servers. Failures that are expected stand in expected.yaml with their reasons; one that passes fails the run too.
 * Exit 77: the suite cannot be had, and nothing was tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { installed, NotInstalled } from '../clients/install.ts';
import { hold, type Result } from '../conformance/results.ts';
import { startClients } from './clients.ts';
import { startFront } from './front.ts';
import { openGateway } from './gateway.ts';
import { startSuiteServer } from './server.ts';

const notTested = 77;
const version = '0.1.16';
const suitePackage = {
  version,
  package: `@modelcontextprotocol/conformance@${version}`,
  binary: '@modelcontextprotocol/conformance/dist/index.js',
};
const server = 'suite';
const expected = 'tests/mcp/expected.yaml';
const results: Result[] = [];
const ends: (() => Promise<void>)[] = [];

try {
  await run(await installed('mcp-conformance', suitePackage));
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`${error.message}\nNothing was tested.`);
  process.exitCode = notTested;
} finally {
  for (const end of ends.reverse()) await end();
}

async function run(program: string): Promise<void> {
  const behind = await startSuiteServer();
  ends.push(() => behind.stop());
  const gateway = await openGateway();
  ends.push(() => gateway.stop());
  await gateway.add(server, { url: `${behind.origin}/mcp`, allow_private: true });
  const front = await startFront(gateway.origin, server, gateway.key);
  ends.push(() => front.stop());
  await suite(program, 'as a server', ['server', '--url', `${front.origin}/mcp`, '--suite', 'active']);
  const clients = await startClients(gateway);
  ends.push(() => clients.stop());
  const command = `${process.execPath} ${join(import.meta.dirname, 'ask.mjs')} ${clients.origin}`;
  await suite(program, 'as a client', ['client', '--command', command, '--suite', 'core', '--timeout', '120000']);
  if (process.exitCode === undefined) hold('mcp', results, 'npm run test:mcp');
}

async function suite(program: string, what: string, words: readonly string[]): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'mcp-suite-'));
  try {
    const child = spawn(process.execPath, [program, ...words, '--expected-failures', expected, '-o', directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    const counts = countsIn(directory);
    console.log(`${what}: ${counts['scenarios passed']} scenarios passed, ${counts['failed as expected']} failed`);
    if (code !== 0) {
      console.error(said.slice(-6_000));
      process.exitCode = 1;
    }
    results.push({ what, version: `@modelcontextprotocol/conformance ${version}`, counts });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Scenarios: how many checks one has depends on how often it was asked. */
function countsIn(directory: string) {
  const scenarios = globSync(join(directory, '**/checks.json')).map(
    (file) => JSON.parse(readFileSync(file, 'utf8')) as { readonly status: string }[],
  );
  const failed = scenarios.filter((checks) =>
    checks.some(({ status }) => status === 'FAILURE' || status === 'WARNING'),
  );
  return { 'scenarios passed': scenarios.length - failed.length, 'failed as expected': failed.length };
}
