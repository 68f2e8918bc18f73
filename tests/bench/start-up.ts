/**
 * How long `npm start` takes: from the command until both demo gateways are ready, and until a call is answered; and what it costs.
 *
 * `npm run bench:start -- [--runs 5] [--against DIRECTORY]…`. The first start of a run has an empty data directory and no caches,
 * the second has those of the first. `--against`: other checkouts, started in turn with this one; the first is what ratios are to.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '../helpers/free-port.ts';
import { median } from './measure.ts';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, against: { type: 'string', multiple: true, default: [] } },
});
const checkouts = ['.', ...values.against];
const pollMs = 10;
const longestMs = 120_000;
const tickMs = 10;

/** Removed at the end: for some seconds ext4 searches for places among those of removed files, which takes a first start up to a second more. */
const homes = mkdtempSync(join(tmpdir(), 'bench-start-'));

const phases = ['ready', 'answered', 'processor'] as const;
type Start = Readonly<Record<(typeof phases)[number], number>>;
interface Run {
  readonly first: Start;
  readonly second: Start;
}

/** Both starts of one run. */
async function measure(path: string): Promise<Run> {
  const checkout = resolve(path);
  const home = mkdtempSync(join(homes, 'run-'));
  const { start: first, key } = await startOnce(checkout, home, undefined);
  const { start: second } = await startOnce(checkout, home, key);
  return { first, second };
}

async function startOnce(checkout: string, home: string, knownKey: string | undefined) {
  const ports = [await freePort(), await freePort()] as const;
  const began = performance.now();
  const child = launch(checkout, home, ports);
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const until = async (attempt: () => unknown) => {
    while (!(await attempt())) {
      if (child.exitCode !== null || performance.now() - began > longestMs) throw new Error(output);
      await pause(pollMs);
    }
    return performance.now() - began;
  };
  try {
    const whenReady = ports.map((port) => until(() => isOk(`http://127.0.0.1:${port}/readyz`)));
    let key = knownKey;
    const answered = await until(async () => {
      // Logged at the first start alone.
      key ??= /"key":"(sk-[^"]+)"/.exec(output)?.[1];
      return key !== undefined && (await isOk(`http://127.0.0.1:${ports[0]}/v1/chat/completions`, call(key)));
    });
    const ready = Math.max(...(await Promise.all(whenReady)));
    return { start: { ready, answered, processor: processorMs(child.pid!) }, key };
  } finally {
    await end(child);
  }
}

/** What `npm start` runs, without npm; whatever is kept between starts is kept below `home`. */
function launch(checkout: string, home: string, [port, otherPort]: readonly [number, number]): ChildProcess {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const temporary = join(home, 'tmp');
  mkdirSync(temporary, { recursive: true });
  return spawn('sh', ['-c', `exec ${scripts.start}`], {
    cwd: checkout,
    env: {
      PATH: `${join(checkout, 'node_modules/.bin')}:${process.env['PATH']}`,
      HOME: home,
      TMPDIR: temporary,
      DATA_DIR: join(home, 'data'),
      PORT: String(port),
      ALT_PORT: String(otherPort),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

async function isOk(url: string, options: RequestInit = {}): Promise<boolean> {
  try {
    const answer = await fetch(url, options);
    await answer.text();
    return answer.ok;
  } catch {
    return false; // It does not listen yet.
  }
}

function call(key: string): RequestInit {
  return {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }] }),
  };
}

/** Processor time of a process and all below it, those that have ended too. */
function processorMs(id: number): number {
  const fields = readFileSync(`/proc/${id}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * tickMs;
  const below = readdirSync(`/proc/${id}/task`)
    .flatMap((thread) => readFileSync(`/proc/${id}/task/${thread}/children`, 'utf8').split(' '))
    .filter((child) => child.trim() !== '');
  return own + below.reduce((sum, child) => sum + processorMs(Number(child)), 0);
}

function report(runs: ReadonlyMap<string, readonly Run[]>): void {
  const [, reference] = checkouts;
  for (const which of ['first', 'second'] as const) {
    for (const phase of phases) {
      const medianOf = (checkout: string) => median(runs.get(checkout)!.map((run) => run[which][phase]));
      const reported = checkouts.map((checkout) => {
        const ratio = reference === undefined ? '' : `, ${(medianOf(checkout) / medianOf(reference)).toFixed(2)}`;
        return `${checkout} ${Math.round(medianOf(checkout))} ms${ratio}`;
      });
      console.log(`${which} start, ${phase}: ${reported.join('; ')}`);
    }
  }
}

const runs = new Map<string, Run[]>(checkouts.map((checkout) => [checkout, []]));
try {
  for (let round = 0; round < Number(values.runs); round++) {
    for (const [checkout, done] of runs) done.push(await measure(checkout));
  }
  report(runs);
} finally {
  rmSync(homes, { recursive: true, force: true });
}
