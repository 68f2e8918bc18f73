/** A primary with workers on a PostgreSQL, its vendor as a process of its own, and what both have recorded. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { dropSchema } from '../end-to-end/testbed.ts';
import { freePort } from '../helpers/free-port.ts';
import { compare, readCharges } from '../kill/compare.ts';
import type { RollingClients } from './clients.ts';

export interface StageOptions {
  readonly workers: number;
  /** `postgres://…`, or `embedded`. */
  readonly database: string;
  /** How long a start waits for the database; undefined: as long as it does by itself. */
  readonly startTimeout?: string;
  /** Whether a line is logged of each request. */
  readonly lines?: boolean;
  /** The module of one more plugin. */
  readonly plugin?: string;
  /** A sandbox that makes videos: there are tasks and batches then. */
  readonly studio?: string;
}

/** With what is ordered now and made later, taken up quickly by another worker. */
const orders = {
  plugins: ', files, uploads, batches, task-store',
  models: '  film: { owned_by: studio, kind: video, targets: [studio/f], price: { second: 0.05 } }\n',
  sections: `files: { disk: shared, fetch: { allow_private: true } }
batches: { lease: 1s }
task-store: { expose: [videos], lease: 1s, reconcile: 1s, poll: { first: 100ms, longest: 300ms }, retry: { first: 100ms, longest: 300ms } }
`,
} as const;

type Judged = Pick<RollingClients, 'acknowledged'> & Pick<Parameters<typeof compare>[0], 'films'>;

export class Stage {
  readonly port: number;
  readonly keys: string[] = [];
  readonly file: string;
  readonly directory = mkdtempSync(join(tmpdir(), 'rolling-'));
  readonly #options: StageOptions;
  readonly #schema = `rolling_${randomInt(1e9)}`;
  #vendor: ChildProcess | undefined;
  #vendorOrigin = 'http://127.0.0.1:9';
  #primary: ChildProcess | undefined;
  #output = '';
  #version = 1;

  private constructor(port: number, options: StageOptions) {
    this.port = port;
    this.#options = options;
    this.file = join(this.directory, 'gateway.yaml');
  }

  /** Nothing serves yet. */
  static async build(options: StageOptions): Promise<Stage> {
    const stage = new Stage(await freePort(), options);
    stage.#vendor = spawnNode(['plugins/sandbox/main.ts']);
    stage.#vendorOrigin = String((await once(stage.#vendor.stdout!, 'data'))[0]).trim();
    if (options.plugin !== undefined) writeFileSync(join(stage.directory, 'more.mts'), options.plugin);
    stage.write();
    return stage;
  }

  get primary(): ChildProcess {
    return this.#primary!;
  }

  /** All that the processes have written. */
  get output(): string {
    return this.#output;
  }

  /** Processes of the workers that live. */
  get workerIds(): number[] {
    const text = readFileSync(`/proc/${this.primary.pid}/task/${this.primary.pid}/children`, 'utf8');
    return text.trim().split(' ').filter(Boolean).map(Number);
  }

  /** Writes the file; prices and limits are those of its version. */
  write(version = this.#version, broken = ''): void {
    this.#version = version;
    const { studio } = this.#options;
    const more = studio === undefined ? { plugins: '', models: '', sections: '' } : orders;
    writeFileSync(
      this.file,
      `gateway: rolling
schema: ${this.#schema}
listen: 127.0.0.1:${this.port}
data: ${this.directory}
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert, websockets, welcome${more.plugins}${this.#options.plugin === undefined ? '' : ', ./more.mts'}]
storage: { database: "${this.#options.database}"${this.#options.startTimeout === undefined ? '' : `, start_timeout: ${this.#options.startTimeout}`} }
request-log: { lines: ${this.#options.lines === true} }
plans:
  default: free
  offers:
    free: { price: 0, limits: { rpm: ${10_000_000 + version} } }
    granted: { price: 0, limits: {}, multiplier: 1.3, grant: { amount: 1, every: day }, windows: { 5h: 0.005 } }
providers:
  vendor: { keys: key, speaks: { chat: "${this.#vendorOrigin}/v1" } }
  relayed: { keys: key, speaks: { responses: "${this.#vendorOrigin}/v1" }, dialect: { responses: { websocket: true } } }
${studio === undefined ? '' : `  studio: { keys: key, speaks: { xai-videos: "${studio}/imagine/v1" } }\n`}models:
${more.models}  m: { owned_by: vendor, targets: [vendor], context: 100k, max_output: 4k, price: { input: ${version}, cache_read: 0.1, output: ${2 * version} } }
  relayed: { owned_by: vendor, targets: [relayed], context: 100k, max_output: 4k, price: { input: ${version}, cache_read: 0.1, output: ${2 * version} } }
welcome: { account: welcomed }
${more.sections}${broken}`,
    );
  }

  /** So many accounts with money. */
  async openAccounts(count: number): Promise<void> {
    const gateway = await boot(this.file, { mode: 'command', log: createLog('silent') });
    for (let index = 0; index < count; index++) {
      const account = await gateway.find(accounts)!.create(`account-${index}`, index % 2 === 0 ? 'free' : 'granted');
      const entry = { kind: 'top-up' as const, reason: 'test', reference: `test-${index}` };
      await gateway.find(ledger)!.credit(account.id, parseUsd('10000'), entry);
      this.keys.push((await gateway.find(accounts)!.createKey(account.id, { name: 'test' })).key);
    }
    await gateway.stop(0);
  }

  /** Starts the primary and does not wait. */
  launch(workers = String(this.#options.workers)): void {
    const words = ['core/process/main.ts', 'serve', '--workers', workers, this.file];
    const child = spawnNode(words);
    const note = (chunk: unknown) => {
      this.#output += chunk;
    };
    child.stdout!.on('data', note);
    child.stderr!.on('data', note);
    this.#primary = child;
  }

  /** Starts the primary and waits until all workers serve. */
  async start(): Promise<void> {
    const before = this.count('a worker serves');
    this.launch();
    await this.until(() => this.count('a worker serves') >= before + this.#options.workers, 'the workers serve');
  }

  count(text: string): number {
    return this.#output.split(text).length - 1;
  }

  /** Throws, with what was written last, where it takes longer than two minutes or the primary ends. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    const beganAt = performance.now();
    while (!isSo()) {
      const ended = this.primary.exitCode !== null || this.primary.signalCode !== null;
      if (ended || performance.now() - beganAt > 120_000)
        throw new Error(`waited for: ${what}\n${this.#output.slice(-3_000)}`);
      await pause(20);
    }
  }

  /** A rolling restart, to its end. */
  async restart(): Promise<void> {
    const before = this.count('the workers are replaced');
    this.primary.kill('SIGUSR2');
    await this.until(() => this.count('the workers are replaced') > before, 'the workers are replaced');
  }

  /** Other prices and limits, in force in each worker that serves and stays. */
  async reload(): Promise<void> {
    const before = this.count('the changed files are in force');
    this.write(this.#version + 1);
    this.primary.kill('SIGHUP');
    const isEverywhere = () => this.count('the changed files are in force') >= before + this.#options.workers;
    await this.until(isEverywhere, 'every worker has taken the file up');
  }

  /** Resolves with its exit code. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> {
    if (this.primary.exitCode !== null) return this.primary.exitCode;
    this.primary.kill(signal);
    return (await once(this.primary, 'exit'))[0];
  }

  /** Holds clients, vendor and ledger against each other, once nothing serves. */
  async judge(clients: Judged): Promise<ReturnType<typeof compare> & { readonly requests: number }> {
    const bill = (await (await fetch(`${this.#vendorOrigin}/bill`)).json()) as Parameters<typeof compare>[0]['bill'];
    const charges = await readCharges(this.file);
    const keyed = { accountIds: new Set<string>(), sent: 0, lost: 0 };
    return { ...compare({ ...clients, bill, charges, keyed }), requests: bill.requests };
  }

  /** Places that have a journal. */
  places(): string[] {
    return readdirSync(this.directory).filter((name) => name === 'journal' || name.startsWith('worker-'));
  }

  async close(): Promise<void> {
    if (this.#primary !== undefined && this.#primary.exitCode === null && this.#primary.signalCode === null) {
      this.#primary.kill('SIGKILL');
      await once(this.#primary, 'exit');
      await pause(1_000); // Workers that lose their primary settle first.
    }
    this.#vendor?.kill();
    rmSync(this.directory, { recursive: true, force: true });
    await dropSchema(this.#schema);
  }
}

function spawnNode(words: readonly string[]): ChildProcess {
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
}
