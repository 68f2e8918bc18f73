/** The process of the embedded database: lock, backend, server; it ends when the gateway that started it does. */
import { accessSync, constants, rmSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { makeDirectory, unwritableSentence } from '../../../core/tools/unwritable.ts';
import type { EmbeddedBackend } from './backend.ts';
import { Early } from './early.ts';
import { lockDirectory, readOwner } from './lock.ts';
import { cheapStart, type FromChild, type Open, type ToChild } from './messages.ts';
import type { EmbeddedServer } from './server.ts';

const upkeepIntervalMs = 30_000;
/** Rounds of upkeep after which whatever is new is copied, however little. */
const copyRounds = 30;
const maxUpkeepSteps = 40;
const closeTimeoutMs = 10_000;
const niceness = 5;
const isCheap = process.argv.includes(cheapStart);
/** About the bytes of code that a function has run when V8 compiles it again, better: by default 13 million. */
const optimizedAfterBytes = isCheap ? 2_000_000_000 : 400_000_000;

let copy: () => Promise<void> = async () => undefined;
/** Until the server listens there is nothing to close: the kernel takes the lock back. */
let stop: () => Promise<void> = async () => undefined;
let stopping = false;
let isCopying = false;
/** Said once somebody listens. */
const notices: string[] = [];
let isHeard = false;
const early = new Early({
  lock: async ({ directory, waitMs }) => {
    makeWritable(directory);
    return lockDirectory(directory, waitMs);
  },
  open: async ({ directory, schema }) => {
    const [{ openBackend }] = await parts;
    return openBackend(directory, notice, { isSmall: isCheap, schema });
  },
});

// Who stops the gateway by its process group must not stop the database before it: only the gateway does that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => void end(0));
process.on('message', (message: ToChild) => {
  if (message.kind === 'prepare') early.begin(message);
  else if (message.kind === 'open') open(message);
  // A copy that is being made would go on in a directory that is given up.
  else if (message.kind === 'close') void (message.keep && !isCopying ? stopKept() : end(0));
  else if (message.kind === 'copy') void makeCopy();
  else send({ kind: 'pong' });
});
// A start runs much of the database's code, and little of it often: compiling that twice would cost more than all the rest
// of the start. Under load the same functions get there within seconds.
setFlagsFromString(`--wasm-tiering-budget=${optimizedAfterBytes}`);
// Most functions are never called: each is checked at its first call.
setFlagsFromString('--wasm-lazy-validation');
// Requests are served first: the journal waits for the database, clients do not. Not too low, or the backlog grows.
// Who was started nicer than that may not become less so.
setPriority(Math.max(niceness, getPriority()));
process.umask(0o077);
// Most of a start is the same for every directory.
const parts = Promise.all([import('./backend.ts'), import('./server.ts')]);
parts.catch(() => undefined); // It is waited for once there is a directory.

function open(message: Open): void {
  run(message).catch((error: Error) => {
    send({ kind: 'failed', reason: unwritableSentence(error, message.directory) ?? error.message });
    void end(1);
  });
}

/** Before anything else: what SQLite and the database say of a read-only directory does not name the cause. */
function makeWritable(path: string): void {
  try {
    makeDirectory(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(unwritableSentence(error, path) ?? (error as Error).message, { cause: error });
  }
}

function notice(text: string): void {
  if (isHeard) send({ kind: 'notice', text });
  else notices.push(text);
}

async function run(message: Open): Promise<void> {
  isHeard = true;
  const { directory, address, holdTimeoutMs } = message;
  const taken = await early.open(message);
  for (const text of notices.splice(0)) notice(text);
  if (taken === undefined) {
    send({ kind: 'held', owner: readOwner(directory) });
    return end(0);
  }
  const { lock, backend } = taken;
  const [, { EmbeddedServer: Server }] = await parts;
  const server = new Server({
    backend,
    settings: backend.settings,
    holdTimeoutMs,
    onBroken(error) {
      send({ kind: 'failed', reason: error.message });
      process.exit(1); // At once: the backend may be inside a call that never returns. Its log brings it back.
    },
  });
  backend.onWriteFailure(() => {
    send({ kind: 'failed', reason: `a file in ${directory} cannot be written` });
    process.exit(1);
  });
  rmSync(address, { force: true });
  await server.listen(address);
  let round = 0;
  const rounds = setInterval(() => void upkeep(server, backend, ++round), upkeepIntervalMs);
  stop = async () => {
    clearInterval(rounds);
    await server.close();
    await backend.close().finally(() => lock.release());
  };
  copy = () => backend.copy((work) => server.whenFree(work));
  lock.publish(address);
  send({ kind: 'ready' });
}

async function makeCopy(): Promise<void> {
  isCopying = true;
  try {
    await copy();
    send({ kind: 'copied', failure: undefined });
  } catch (error) {
    send({ kind: 'copied', failure: (error as Error).message });
  }
  isCopying = false;
}

/** Step by step, so that clients have their turn in between. */
async function upkeep(server: EmbeddedServer, backend: EmbeddedBackend, round: number): Promise<void> {
  try {
    if (await server.whenFree(() => backend.copyDue(round % copyRounds === 0))) send({ kind: 'copy-due' });
    for (let step = 0; step < maxUpkeepSteps; step += 1) if (!(await server.whenFree(backend.upkeep))) return;
  } catch (error) {
    send({ kind: 'notice', text: `upkeep of the embedded database failed: ${(error as Error).message}` });
  }
}

/** The next directory is opened by this process too, which has the database's program compiled. */
async function stopKept(): Promise<void> {
  await stop();
  [stop, copy] = [async () => undefined, async () => undefined];
  send({ kind: 'closed' });
}

async function end(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(() => process.exit(1), closeTimeoutMs);
  await stop().catch(() => undefined);
  await early.undo().catch(() => undefined);
  process.exit(code);
}

function send(message: FromChild): void {
  if (process.connected) process.send?.(message);
}
