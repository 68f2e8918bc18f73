/** Runs test files one after the other in one process, with a mutant or without, until the first failing test or the end of their time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
const imported = (path: string) => `--import=${pathToFileURL(join(root, path)).href}`;

interface Suite {
  readonly file: string;
  /** The longest that it may take, with what it loads. */
  readonly limitMs: number;
}

export interface SuitesRun {
  readonly suites: readonly Suite[];
  /** The file whose text is another one. */
  readonly mutant?: { readonly file: string; readonly text: string };
  /** Where to write what each test file executes; then failing tests end nothing. */
  readonly coverage?: string;
}

export interface SuitesResult {
  /** The first test that failed, or what else ended the process. */
  readonly failure?: { readonly file: string; readonly test: string };
  /** Files that ended. */
  readonly ended: readonly { readonly file: string; readonly ms: number; readonly passed: boolean }[];
}

type Message = { begins: string } | { fails: string; file?: string } | { ends: string; ms: number; passed: boolean };

/** A process that hangs in a loop answers no signal but the last. */
const graceMs = 3_000;

export async function runSuites(run: SuitesRun): Promise<SuitesResult> {
  const directory = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    return await inDirectory(run, directory);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

function inDirectory({ suites, mutant, coverage }: SuitesRun, directory: string): Promise<SuitesResult> {
  const files = suites.map(({ file }) => file);
  const queue = { shared: files, alone: [], workers: 1, timeoutMs: Math.max(...suites.map(({ limitMs }) => limitMs)) };
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  writeFileSync(join(directory, 'queue.json'), JSON.stringify(queue));
  const { MUTANT: _, MUTANTS_COVERAGE: __, NODE_TEST_CONTEXT: ___, ...own } = process.env;
  const env: NodeJS.ProcessEnv = {
    ...own,
    TEST_KEPT: process.env['TEST_KEPT'] ?? tmpdir(),
    TMPDIR: temporary,
    TEST_QUEUE: directory,
    NODE_TEST_CONTEXT: 'mutants',
    NODE_OPTIONS: `${imported('tests/runner/quick-start.ts')} ${imported('tests/mutants/preload.ts')}`,
  };
  if (coverage !== undefined) env['MUTANTS_COVERAGE'] = coverage;
  if (mutant !== undefined) {
    env['MUTANT'] = join(directory, 'mutant.json');
    writeFileSync(env['MUTANT'], JSON.stringify(mutant));
  }
  endWithThis();
  const reporter = pathToFileURL(join(root, 'tests/mutants/reporter.ts')).href;
  const flags = [`--test-reporter=${reporter}`, '--test-reporter-destination=stdout', '--no-wasm-inlining'];
  const child = spawn(process.execPath, [...flags, join(root, 'tests/runner/worker.ts')], {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  return watched(child, suites, coverage !== undefined);
}

function watched(child: ChildProcess, suites: readonly Suite[], isWhole: boolean): Promise<SuitesResult> {
  const limits = new Map(suites.map(({ file, limitMs }) => [file, limitMs]));
  const ended: SuitesResult['ended'][number][] = [];
  let failure: SuitesResult['failure'];
  let current = suites[0]!.file;
  let timer: NodeJS.Timeout | undefined;
  const fail = (test: string, file = current) => {
    failure ??= { file, test };
    end(child);
  };
  const arm = () => {
    clearTimeout(timer);
    timer = setTimeout(() => fail('(its time is over)'), limits.get(current) ?? 60_000);
  };
  const hear = (message: Message) => {
    if ('begins' in message) {
      current = message.begins;
      arm();
    } else if ('ends' in message) {
      ended.push({ file: message.ends, ms: message.ms, passed: message.passed });
    } else if (!isWhole) {
      const file = message.file === undefined ? current : relative(root, message.file);
      fail(message.fails, limits.has(file) ? file : current);
    }
  };
  running.add(child);
  arm();
  let rest = '';
  (child.stdio[3] as NodeJS.ReadableStream).setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) hear(JSON.parse(line));
  });
  return new Promise((resolve) => {
    child.once('close', () => {
      clearTimeout(timer);
      const isCut = ended.length < suites.length;
      if (isCut && !isWhole) failure ??= { file: current, test: '(the process ended)' };
      killGroup(child);
      running.delete(child);
      resolve({ ...(failure !== undefined && { failure }), ended });
    });
  });
}

const running = new Set<ChildProcess>();
let isWatched = false;

/** Groups of their own outlive this process otherwise. */
function endWithThis(): void {
  if (isWatched) return;
  isWatched = true;
  process.once('exit', () => running.forEach(killGroup));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
}

/** Ends the process and all that it has started. */
function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  setTimeout(() => killGroup(child), graceMs).unref();
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // All of it has ended.
  }
}
