/**
 * The recording of a terminal in the documents: its commands are run again, and must print what it shows.
 * `npm run recording` takes it again, into `plugins/docs/recordings`.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../helpers/free-port.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { until } from '../helpers/until.ts';
import { type Step, terminalSvg } from './svg.ts';

const folder = 'plugins/docs/recordings';
const file = `${folder}/terminal.svg`;
const title =
  'A first start, a first call, and a coding client connected and put back; records of the log are left out';
const home = temporaryDirectory('recording-');
const firstCall = callBelow('First call');
/** Elsewhere `script`, which makes the terminal, takes other words. */
const skip = process.platform !== 'linux';
let ports: readonly [number, number];
let stop: () => Promise<void>;
let printed = '';
let key: string;

/** The first command below a heading of the README. */
function callBelow(heading: string): string {
  return /```sh\n((?:.*\\\n)*.*)\n/.exec(readFileSync('README.md', 'utf8').split(`\n## ${heading}\n`)[1]!)![1]!;
}

/** The start greets people at a terminal alone. */
before(async () => {
  if (skip) return;
  ports = [await freePort(), await freePort()];
  const child = spawn('script', ['-qfec', 'npm start', '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, PORT: `${ports[0]}`, ALT_PORT: `${ports[1]}`, DATA_DIR: home },
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const ended = once(child, 'exit');
  stop = async () => {
    child.stdin.write('\u0003');
    await ended;
  };
  await until('both gateways listen', () => printed.split('"msg":"listening"').length > 2);
  key = /sk-gw-\w+/.exec(printed)![0];
});
after(() => stop?.());

/** As on a machine where the usual ports are free, with keys as they are shown. */
function plain(text: string): string[] {
  return text
    .replaceAll('\r', '')
    .replaceAll(`:${ports[0]}`, ':8080')
    .replaceAll(home, '~')
    .replace(/sk-gw-[\w-]{9,}/g, 'sk-gw-…')
    .trimEnd()
    .split('\n');
}

async function run(command: string): Promise<string> {
  const environment = { HOME: home, GATEWAY_KEY: key, GATEWAY_URL: `http://localhost:${ports[0]}` };
  const words = ['-c', command.replaceAll(':8080', `:${ports[0]}`)];
  const { stdout } = await promisify(execFile)('sh', words, { env: { ...process.env, ...environment } });
  return stdout;
}

/** The first gateway's greeting, from its address on. */
function greeting(): string[] {
  const lines = plain(printed);
  const first = lines.findIndex((line) => line.includes('The gateway "demo" listens'));
  return lines.slice(first, lines.indexOf('  First calls:')).filter((line) => line !== '');
}

/** What a first call is made for; other lines of its answer as dots. */
function excerpt(lines: readonly string[]): string[] {
  const shown = lines.map((line) =>
    /^[{}]|"(?:model|role|content|finish_reason|usage|prompt_tokens|completion_tokens|total_tokens)":/.test(line)
      ? line
      : `${/^ */.exec(line)![0]}…`,
  );
  return shown.filter((line, index) => !(line.endsWith('…') && shown[index - 1]?.endsWith('…')));
}

const connect = 'npm run -s gateway -- connect claude-code';

async function steps(): Promise<Step[]> {
  const answer = plain(await run(`${firstCall} -s`));
  const connected = plain(await run(`${connect} --yes`));
  const undone = plain(await run(`${connect} --undo`));
  return [
    { command: 'npm start', output: greeting() },
    { command: 'export GATEWAY_KEY=sk-gw-…', output: [] },
    { command: firstCall, output: excerpt(answer) },
    { command: `${connect} --yes`, output: connected },
    { command: `${connect} --undo`, output: undone },
  ];
}

test('the recording shows what its commands print', { skip }, async () => {
  const taken = terminalSvg(title, await steps());
  for (const words of ['This is gpt-5.4-mini in the sandbox', 'has answered. Next: claude', 'As before: ~/.claude'])
    assert.ok(taken.includes(words), taken);
  if (process.env['RECORDING'] === 'take') {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, taken);
  }
  assert.equal(readFileSync(file, 'utf8'), taken, 'take it again: npm run recording');
  assert.ok(taken.length < 150_000);
});
