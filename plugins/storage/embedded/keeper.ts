/** The gateway's side of the embedded database: one child process for each directory, shared, watched and restarted. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Log } from '../../../core/contract/host-tools.ts';
import { type BeginCopy, Copies } from './copies.ts';
import { type Owner, readOwner } from './lock.ts';
import { cheapStart, type FromChild, type ToChild } from './messages.ts';

const defaultWaitMs = 10_000;
const commandRetryMs = 250;
/** Longest silence of a client inside a transaction; the others wait meanwhile. */
const holdTimeoutMs = 15_000;
const pingIntervalMs = 10_000;
/** Unanswered pings after which the process counts as stuck: a statement of two minutes blocks all clients. */
const maxPings = 12;
const closeTimeoutMs = 12_000;
const firstRestartMs = 100;
const maxRestartMs = 10_000;
/** Longest path of a Unix socket that all systems take. */
const maxAddressBytes = 100;

export interface EmbeddedDatabase {
  /** Path of its socket; stays the same when the process is restarted. */
  readonly address: string;
  /** false while the process is being restarted. */
  alive(): boolean;
  /** Calls `begin` for copies of the directory, except those by another process. */
  onCopy(begin: BeginCopy): void;
  /** Makes a new last good copy now. */
  copy(): Promise<void>;
  /** Calls `listener` at each end of the process and each failed restart, with the reason. */
  onFailure(listener: (reason: Error) => void): void;
  release(): Promise<void>;
}

/** Another process owns the directory. */
class HeldError extends Error {
  constructor(directory: string, owner: Owner | undefined) {
    const who = owner === undefined ? 'another process' : `the gateway with process id ${owner.gatewayPid}`;
    super(
      `The embedded database in ${directory} is in use by ${who}: stop that first, or give this one its own data directory or a DATABASE_URL.`,
    );
  }
}

const keepers = new Map<string, Keeper>();

/** Started processes that have no directory now. */
const ready: ChildProcess[] = [];
let areKept = false;

/**
 * Starts the process that the first database is opened by, while this one is still busy loading. A new database of `directory`
 * is made meanwhile, and taken away if this process ends without opening it.
 */
export function warmUpEmbedded(directory: string, schema: string): void {
  if (ready.some(({ connected }) => connected) || keepers.size > 0) return;
  const child = forkChild();
  child.send({ kind: 'prepare', directory: resolve(directory), waitMs: defaultWaitMs, schema }, () => undefined);
  makeReady(child);
}

/** For programs that open hundreds of small databases, one after the other: processes are used again, and each start is cheap. */
export function keepEmbeddedProcesses(keep: boolean): void {
  areKept = keep;
}

function makeReady(child: ChildProcess): void {
  setHolding(
    child.on('error', () => undefined),
    false,
  );
  ready.push(child);
}

function takeChild(): ChildProcess {
  const child = ready.pop();
  if (child === undefined) return forkChild();
  if (!child.connected) return takeChild();
  setHolding(child, true);
  return child;
}

function forkChild(): ChildProcess {
  const script = fileURLToPath(new URL('./child.ts', import.meta.url));
  const { NODE_COMPILE_CACHE: compiled } = process.env;
  // Nothing else of the gateway's environment: it is full of keys. Type stripping alone runs the script, without a loader.
  return fork(script, areKept ? [cheapStart] : [], {
    env: { TMPDIR: tmpdir(), ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }) },
    // Code that is not compiled again need not count what it calls, which takes a quarter of a small database's time.
    execArgv: ['--disable-warning=ExperimentalWarning', ...(areKept ? ['--no-wasm-inlining'] : [])],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
}

/** Whether it keeps this process from ending; it ends by itself when this one has. */
function setHolding(child: ChildProcess, holds: boolean): void {
  for (const part of [child, child.channel, child.stderr as Socket]) {
    if (holds) part?.ref();
    else part?.unref();
  }
}

/**
 * The embedded database of `directory`. Serving, its process is started by the first user in this process and ends with
 * the last; for a command the database of a gateway that runs beside it is used, if there is one. A directory that is made
 * may have the tables of `schema` already.
 * Rejects with one sentence when another process keeps the directory for longer than `waitMs`, by default ten seconds.
 */
export async function useEmbedded(
  directory: string,
  mode: 'serve' | 'command',
  log: Log,
  waitMs = defaultWaitMs,
  schema?: string,
): Promise<EmbeddedDatabase> {
  const path = resolve(directory);
  if (mode === 'serve') return keeperOf(path, waitMs, log, schema).share();
  for (let waitedMs = 0; ; waitedMs += commandRetryMs) {
    const running = await reachOwner(path);
    if (running !== undefined) return running;
    try {
      return await keeperOf(path, 0, log, schema).share();
    } catch (error) {
      if (!(error instanceof HeldError) || waitedMs >= waitMs) throw error;
      await sleep(commandRetryMs); // Its owner is starting or stopping.
    }
  }
}

function keeperOf(directory: string, waitMs: number, log: Log, schema: string | undefined): Keeper {
  const keeper = keepers.get(directory) ?? new Keeper(directory, waitMs, log, schema);
  keepers.set(directory, keeper);
  return keeper;
}

/** The database of a gateway that serves this directory now. */
async function reachOwner(directory: string): Promise<EmbeddedDatabase | undefined> {
  const owner = readOwner(directory);
  if (owner === undefined || owner.address === '' || keepers.has(directory)) return undefined;
  const socket = connect(owner.address);
  try {
    await once(socket, 'connect');
    const [nothing, later] = [() => undefined, async () => undefined];
    return {
      address: owner.address,
      alive: () => true,
      onCopy: nothing,
      copy: later,
      onFailure: nothing,
      release: later,
    };
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

class Keeper {
  readonly address: string;
  readonly #directory: string;
  readonly #log: Log;
  readonly #schema: string | undefined;
  readonly #started: Promise<void>;
  #users = 0;
  #child: ChildProcess | undefined;
  #alive = false;
  #closing = false;
  #restarts = 0;
  #pings = 0;
  #errorText = '';
  readonly #copies: Copies;
  readonly #onFailure = new Set<(reason: Error) => void>();
  readonly #pinger: NodeJS.Timeout;

  constructor(directory: string, waitMs: number, log: Log, schema: string | undefined) {
    this.#directory = directory;
    this.#log = log;
    this.#schema = schema;
    this.#copies = new Copies(() => this.#send({ kind: 'copy' }), log);
    const address = join(directory, 'postgres.sock');
    const isShort = Buffer.byteLength(address) <= maxAddressBytes;
    this.address = isShort ? address : join(mkdtempSync(join(tmpdir(), 'gateway-socket-')), 'postgres.sock');
    this.#pinger = setInterval(() => this.#ping(), pingIntervalMs).unref();
    this.#started = this.#start(waitMs);
  }

  /** Resolves when the database can be used. */
  async share(): Promise<EmbeddedDatabase> {
    this.#users += 1;
    try {
      await this.#started;
    } catch (error) {
      await this.#release();
      throw error;
    }
    let released: Promise<void> | undefined;
    const listeners = new Set<(reason: Error) => void>();
    return {
      address: this.address,
      alive: () => this.#alive,
      onCopy: (begin) => this.#copies.onCopy(begin),
      copy: () => this.#copies.make(),
      onFailure: (listener) => {
        listeners.add(listener);
        this.#onFailure.add(listener);
      },
      release: () => {
        for (const listener of listeners) this.#onFailure.delete(listener);
        released ??= this.#release();
        return released;
      },
    };
  }

  /** Resolves when the process is ready, rejects when it cannot be. */
  #start(waitMs: number): Promise<void> {
    const child = takeChild();
    this.#child = child;
    this.#errorText = '';
    const { address } = this;
    this.#send({ kind: 'open', directory: this.#directory, address, waitMs, holdTimeoutMs, schema: this.#schema });
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#errorText = (this.#errorText + text).slice(-2_000);
    });
    return new Promise((resolve, reject) => {
      let failure: Error | undefined;
      child.on('message', (message: FromChild) => {
        if (message.kind === 'held') failure = new HeldError(this.#directory, message.owner);
        if (message.kind === 'failed') failure = new Error(`The embedded database failed: ${message.reason}`);
        if (message.kind === 'ready') {
          this.#ready(child);
          resolve();
        }
        this.#hear(message);
      });
      child.on('error', reject);
      child.on('close', (code, signal) => {
        const reason =
          failure ?? new Error(`The embedded database ended (${signal ?? code}). ${this.#errorText}`.trim());
        this.#copies.end('its process ended');
        if (this.#alive) this.#fell(reason);
        reject(reason);
      });
    });
  }

  #hear(message: FromChild): void {
    if (message.kind === 'notice') this.#log.warn({}, message.text);
    if (message.kind === 'pong') this.#pings = 0;
    if (message.kind === 'copy-due') void this.#copies.make().catch(() => undefined);
    if (message.kind === 'copied') this.#copies.end(message.failure);
  }

  #ready(child: ChildProcess): void {
    this.#alive = true;
    this.#pings = 0;
    // A process that forgets to release it may end all the same.
    setHolding(child, false);
  }

  #fell(reason: Error): void {
    this.#alive = false;
    if (this.#closing) return;
    this.#report(reason);
    this.#restart();
  }

  #restart(): void {
    const delayMs = Math.min(firstRestartMs * 2 ** this.#restarts++, maxRestartMs);
    const attempt = async () => {
      if (this.#closing) return;
      try {
        await this.#start(0);
        this.#restarts = 0;
      } catch (error) {
        this.#report(error as Error);
        this.#restart();
      }
    };
    setTimeout(attempt, delayMs).unref();
  }

  #report(reason: Error): void {
    for (const listener of this.#onFailure) listener(reason);
  }

  #ping(): void {
    if (!this.#alive) return;
    this.#pings += 1;
    if (this.#pings > maxPings) this.#child?.kill('SIGKILL');
    else this.#send({ kind: 'ping' });
  }

  #send(message: ToChild): void {
    if (this.#child?.connected === true) this.#child.send(message, () => undefined);
  }

  async #release(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#closing = true;
    keepers.delete(this.#directory);
    clearInterval(this.#pinger);
    await this.#end();
    if (!this.address.startsWith(this.#directory)) rmSync(dirname(this.address), { recursive: true, force: true });
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const isKept = areKept && this.#alive && child.connected;
    const end = once(child, 'exit').then(() => false);
    const closed = new Promise<boolean>((resolve) => {
      child.on('message', ({ kind }: FromChild) => kind === 'closed' && resolve(true));
    });
    setHolding(child, true);
    this.#send({ kind: 'close', keep: isKept });
    const timer = setTimeout(() => child.kill('SIGKILL'), closeTimeoutMs);
    const stays = await Promise.race([end, closed]);
    clearTimeout(timer);
    if (!stays) return;
    for (const event of ['message', 'error', 'close', 'exit']) child.removeAllListeners(event);
    child.stderr!.removeAllListeners('data');
    makeReady(child);
  }
}
