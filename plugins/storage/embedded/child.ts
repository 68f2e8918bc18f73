/** The process of the embedded database: lock, backend, server; it ends when the gateway that started it does. */
import { mkdirSync, rmSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { EmbeddedBackend } from './backend.ts';
import { lockDirectory, readOwner } from './lock.ts';
import type { FromChild, ToChild } from './messages.ts';
import type { EmbeddedServer } from './server.ts';

const upkeepIntervalMs = 30_000;
/** Rounds of upkeep after which whatever is new is copied, however little. */
const copyRounds = 30;
const maxUpkeepSteps = 20;
const closeTimeoutMs = 10_000;
const niceness = 5;
/** About the bytes of code that a function has run when V8 compiles it anew, better: by default 13 million. */
const optimizedAfterBytes = 400_000_000;

const [directory, address, waitMs, holdTimeoutMs] = process.argv.slice(2) as [string, string, string, string];
let copy: () => Promise<void> = async () => undefined;
/** Until the server listens there is nothing to close: the kernel takes the lock back. */
let stop: () => Promise<void> = async () => undefined;
let stopping = false;

// Who stops the gateway by its process group must not stop the database before it: only the gateway does that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => void end(0));
process.on('message', (message: ToChild) => {
  if (message.kind === 'close') void end(0);
  else if (message.kind === 'copy') void makeCopy();
  else tell({ kind: 'pong' });
});
// A start runs much of the database's code, and little of it often: compiling that twice would cost more than all the rest
// of the start. Under load the same functions get there within seconds.
setFlagsFromString(`--wasm-tiering-budget=${optimizedAfterBytes}`);
// Requests are served first: the journal waits for the database, clients do not. Not too low, or the backlog grows.
// Who was started nicer than that may not become less so.
setPriority(Math.max(niceness, getPriority()));
process.umask(0o077);
run().catch((error: Error) => {
  tell({ kind: 'failed', reason: error.message });
  void end(1);
});

async function run(): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const lock = await lockDirectory(directory, Number(waitMs));
  if (lock === undefined) {
    tell({ kind: 'held', owner: readOwner(directory) });
    return end(0);
  }
  // Late, because a process that does not get the lock has no use for it.
  const [{ openBackend }, { EmbeddedServer: Server }] = await Promise.all([
    import('./backend.ts'),
    import('./server.ts'),
  ]);
  const backend = await openBackend(directory, (text) => tell({ kind: 'notice', text }));
  const server = new Server({
    backend,
    settings: backend.settings,
    holdTimeoutMs: Number(holdTimeoutMs),
    onBroken(error) {
      tell({ kind: 'failed', reason: error.message });
      process.exit(1); // At once: the backend may be inside a call that never returns. Its log brings it back.
    },
  });
  rmSync(address, { force: true });
  await server.listen(address);
  stop = async () => {
    await server.close();
    await backend.close().finally(() => lock.release());
  };
  copy = () => backend.copy((work) => server.whenFree(work));
  lock.publish(address);
  tell({ kind: 'ready' });
  let round = 0;
  setInterval(() => void upkeep(server, backend, ++round), upkeepIntervalMs);
}

async function makeCopy(): Promise<void> {
  try {
    await copy();
    tell({ kind: 'copied', failure: undefined });
  } catch (error) {
    tell({ kind: 'copied', failure: (error as Error).message });
  }
}

/** Step by step, so that clients have their turn in between. */
async function upkeep(server: EmbeddedServer, backend: EmbeddedBackend, round: number): Promise<void> {
  try {
    if (await server.whenFree(() => backend.copyDue(round % copyRounds === 0))) tell({ kind: 'copy-due' });
    for (let step = 0; step < maxUpkeepSteps; step += 1) if (!(await server.whenFree(backend.upkeep))) return;
  } catch (error) {
    tell({ kind: 'notice', text: `upkeep of the embedded database failed: ${(error as Error).message}` });
  }
}

async function end(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  setTimeout(() => process.exit(1), closeTimeoutMs);
  await stop().catch(() => undefined);
  process.exit(code);
}

function tell(message: FromChild): void {
  if (process.connected) process.send?.(message);
}
