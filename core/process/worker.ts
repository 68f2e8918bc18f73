/** A worker: one of several processes behind one address, controlled by their primary. */
import cluster from 'node:cluster';
import type { ProcessGroup } from '../contract/process-group.ts';
import { Serving } from './serving.ts';

/** A message to a worker. Primary and worker may differ in version: an update replaces only the workers. */
export type Order =
  | { readonly order: 'reload'; readonly files: readonly string[] }
  /** A replacement serves already. */
  | { readonly order: 'retire' }
  | { readonly order: 'stop'; readonly signal: string };

/** A message to the primary. */
export type Report = { readonly report: 'serving' } | { readonly report: 'saved'; readonly file: string };

/** The environment variable with the worker's ProcessGroup. */
const processGroupVariable = 'GATEWAY_CREW';

/** The environment of a worker. */
export function processGroupEnvironment(processGroup: ProcessGroup): Record<string, string> {
  return { [processGroupVariable]: JSON.stringify(processGroup) };
}

/** Serves until the primary or SIGTERM stops it. Rejects when the gateways cannot be served. */
export async function runWorker(files: readonly string[]): Promise<void> {
  const processGroup = JSON.parse(process.env[processGroupVariable]!) as ProcessGroup;
  const serving = new Serving();
  let stopping = false;
  // A worker that is stopped during its start finishes the start first, so that nothing stays half done.
  const retire = () => void begun.then(() => serving.retire()).finally(() => process.exit(0));
  const stop = (why: object, deadlineMs?: number) => {
    if (stopping) return;
    stopping = true;
    void begun.then(() => serving.stop(why, deadlineMs)).finally(() => process.exit(0));
  };
  // A terminal's signals reach all processes; workers leave them to the primary.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {});
  process.on('SIGTERM', () => stop({ signal: 'SIGTERM' }));
  process.on('message', (message: Order) => {
    if (message.order === 'reload') serving.reload(message.files);
    else if (message.order === 'retire') retire();
    else if (message.order === 'stop') stop({ signal: message.signal });
  });
  // A worker without its primary settles and stops; by default Node would end it at once.
  cluster.worker!.exitedAfterDisconnect = true;
  process.on('disconnect', () => stop({ primary: 'gone' }, 0));
  const begun = serving.begin(files, {
    processGroup: processGroup,
    onSaved: (file) => send({ report: 'saved', file }),
  });
  await begun;
  send({ report: 'serving' });
}

function send(report: Report): void {
  if (process.connected) process.send!(report);
}
