/** The command `serve`: one process, or a primary with workers; and the handling of signals. */
import cluster from 'node:cluster';
import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { GatewayError } from '../contract/errors.ts';
import { createLog, logPrinted } from '../gateway/log.ts';
import { Primary } from './primary.ts';
import { noteServed } from './served-files.ts';
import { Serving } from './serving.ts';
import { runWorker } from './worker.ts';

const mostWorkers = 256;

/** Serves the gateways of these files. `workers`: a number of processes, or `auto`: one for each core. */
export async function serve(files: readonly string[], workers: string | undefined): Promise<void> {
  endOnBug();
  logPrinted(createLog('warn'));
  if (cluster.isWorker) return runWorker(files);
  if (workers === undefined) return serveAlone(files);
  const primary = new Primary(files, countOf(workers));
  handleSignals({ stop: (signal) => primary.stop(signal), reload: () => primary.reload(), kill: () => primary.kill() });
  process.on('SIGUSR2', () => primary.restart());
  noteServed(files);
  await primary.run();
}

async function serveAlone(files: readonly string[]): Promise<void> {
  const serving = new Serving();
  handleSignals({
    stop: async (signal) => {
      await serving.stop({ signal });
      process.exit(0);
    },
    reload: () => serving.reload(),
    kill: () => {},
  });
  // Without a handler the signal would kill the process silently.
  process.on('SIGUSR2', () => {
    createLog('warn').warn({}, 'SIGUSR2 replaces workers: this process was started without --workers');
  });
  await serving.begin(files);
  noteServed(files);
}

interface SignalHandlers {
  readonly stop: (signal: string) => Promise<void>;
  readonly reload: () => void;
  /** Right before the process ends at once. */
  readonly kill: () => void;
}

/** SIGTERM and SIGINT stop gracefully, a second one at once; SIGHUP reloads the files. */
function handleSignals({ stop, reload, kill }: SignalHandlers): void {
  const hasTerminal = process.stdin.isTTY === true;
  let stopping = false;
  const end = (signal: string) => {
    if (stopping) {
      kill();
      process.exit(1);
    }
    stopping = true;
    void stop(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end);
  process.on('SIGHUP', () => {
    if (hasTerminal && isTerminalGone()) end('SIGHUP');
    else if (!stopping) reload();
  });
}

function endOnBug(): void {
  process.on('uncaughtException', (error) => {
    createLog('error').error({ error }, 'a bug ended the process; its charges are in the journal');
    process.exit(1);
  });
}

/** Whether SIGHUP came because the terminal was closed, which means stop; otherwise it means reload. */
function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}

function countOf(workers: string): number {
  if (workers === 'auto') return availableParallelism();
  const count = Number(workers);
  if (/^\d+$/.test(workers) && count >= 1 && count <= mostWorkers) return count;
  throw new GatewayError('invalid_request', `--workers must be "auto" or a number from 1 to ${mostWorkers}.`);
}
