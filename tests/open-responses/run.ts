/**
 * `npm run test:open-responses -- DIR`: runs the compliance tests of a checkout of Open Responses, with its packages installed,
 * on a gateway before each family of upstreams. Exit 1: a case failed. Exit 77: they are not in DIR, and nothing was tested.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { hold, type Result } from '../conformance/results.ts';
import { startStage } from './requests.ts';

const notTested = 77;
/** One upstream of each family, and one that the gateway calls over WebSocket. */
const places = ['chat', 'responses', 'messages', 'gemini', 'socket'];

/** The commit of the checkout. */
const version = () =>
  execFileSync('git', ['-C', resolve(directory), 'rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim();
const seen: Result[] = [];

interface Report {
  readonly summary: { readonly passed: number; readonly failed: number; readonly skipped: number };
  readonly results: readonly { readonly id: string; readonly status: string; readonly errors?: readonly string[] }[];
}

const [directory = '.'] = process.argv.slice(2);
const program = resolve(directory, 'bin/compliance-test.ts');
if (isMissing()) {
  console.error(`${program} is not there, or the packages beside it are not installed.\nNothing was tested.`);
  process.exitCode = notTested;
} else {
  const stage = await startStage();
  try {
    for (const place of places) if (!(await passes(stage.origin, place))) process.exitCode = 1;
    if (process.exitCode !== 1) hold('open-responses-program', seen, 'npm run test:open-responses -- DIR');
  } finally {
    await stage.stop();
  }
}

function isMissing(): boolean {
  if (!existsSync(program)) return true;
  try {
    createRequire(program).resolve('zod');
    return false;
  } catch {
    return true;
  }
}

async function passes(origin: string, place: string): Promise<boolean> {
  const words = ['--base-url', `${origin}/v1`, '--api-key', 'sk-test', '--model', `model-${place}-eager`, '--json'];
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), program, ...words], {
    cwd: join(program, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const { summary, results } = JSON.parse(said) as Report;
  console.log(`${place}: ${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`);
  for (const { id, status, errors = [] } of results)
    if (status !== 'passed') console.log(`  ${id} ${status}: ${errors.join('; ')}`);
  seen.push({ what: place, version: version(), counts: { ...summary } });
  return summary.passed > 0 && summary.failed === 0;
}
