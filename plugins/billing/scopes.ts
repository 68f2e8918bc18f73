/** Connects the tallies of scopes with the runtime, and with other processes. */
import type { Host } from '../../core/contract/contract.ts';
import type { Database } from '../common/domain/database.ts';
import { Tallies } from './budgets/tallies.ts';
import { leaseTimes } from './leases/manager.ts';
import type { BillingRuntime } from './runtime.ts';

/** `limit`: the most scopes in memory. `runtime` is there while calls come. */
export function openTallies(
  { clock, log }: Host,
  store: Database,
  limit: number,
  runtime: () => BillingRuntime | undefined,
): Tallies {
  const announce = (topic: string) => (key: string) => {
    store.announce(topic, `${runtime()?.scopes.node} ${key}`).catch((error: unknown) => {
      log.warn({ error, topic }, 'other nodes could not be notified of a share');
    });
  };
  const tallies = new Tallies({
    ...{ clock, log, limit },
    drained: () => runtime()!.scopes.drained(),
    take: (requests) => runtime()!.scopes.take(requests),
    times: store.shared === true ? leaseTimes(store.bridgeMs ?? 0) : undefined,
    recall: announce('scope wanted'),
    returned: announce('scope returned'),
  });
  // Other processes want what this one has of a scope, or have returned what they had.
  const ofOthers = (work: (subject: string) => void) => (subject: string) => {
    const serving = runtime();
    if (serving !== undefined && !subject.startsWith(`${serving.scopes.node} `)) work(subject);
  };
  const onChange = (topic: string, work: (subject: string) => void) => store.onChange(topic, ofOthers(work));
  onChange('scope wanted', (subject) => tallies.wanted(subject));
  onChange('scope returned', (subject) => tallies.wasReturned(subject));
  return tallies;
}
