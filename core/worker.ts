/** A worker: one of several processes that serve the same gateways behind one address, as their primary tells it. */
import cluster from 'node:cluster';
import type { Crew } from './crew.ts';
import { Serving } from './serving.ts';

/** What a primary tells a worker. Both may be of different versions: an update replaces the workers alone. */
export type Order =
  | { readonly order: 'reload'; readonly files: readonly string[] }
  /** Others serve in its place already. */
  | { readonly order: 'retire' }
  | { readonly order: 'stop'; readonly signal: string };

/** What a worker tells its primary. */
export type Report = { readonly report: 'serving' } | { readonly report: 'saved'; readonly file: string };

/** Where a primary writes, and its worker reads, who the worker is. */
const crewVariable = 'GATEWAY_CREW';

/** The environment of a worker that is to be this one. */
export function crewEnvironment(crew: Crew): Record<string, string> {
  return { [crewVariable]: JSON.stringify(crew) };
}

/** Serves until the primary, or SIGTERM, says otherwise. Rejects where the gateways cannot be served. */
export async function work(files: readonly string[]): Promise<void> {
  const crew = JSON.parse(process.env[crewVariable]!) as Crew;
  const serving = new Serving();
  let stopping = false;
  // Whoever is told to end before it serves finishes its start, so that it leaves nothing half done.
  const retire = () => void begun.then(() => serving.retire()).finally(() => process.exit(0));
  const stop = (why: object, deadlineMs?: number) => {
    if (stopping) return;
    stopping = true;
    void begun.then(() => serving.stop(why, deadlineMs)).finally(() => process.exit(0));
  };
  // Signals of a terminal reach all of its processes; the primary tells what they mean.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {});
  process.on('SIGTERM', () => stop({ signal: 'SIGTERM' }));
  process.on('message', (message: Order) => {
    if (message.order === 'reload') serving.reload(message.files);
    else if (message.order === 'retire') retire();
    else if (message.order === 'stop') stop({ signal: message.signal });
  });
  // Without its primary it gets no connections any more; Node would end it at once, without a settlement.
  cluster.worker!.exitedAfterDisconnect = true;
  process.on('disconnect', () => stop({ primary: 'gone' }, 0));
  const begun = serving.begin(files, { crew, onSaved: (file) => tell({ report: 'saved', file }) });
  await begun;
  tell({ report: 'serving' });
}

function tell(report: Report): void {
  if (process.connected) process.send!(report);
}
