/** Assembles the recording of bodies, applies changes of its section, and follows recordings in the database. */
import type { Host } from '../../../core/contract/contract.ts';
import { accounts } from '../../common/domain/accounts.ts';
import type { RecordedBodies } from '../../common/domain/admin/recorded-bodies.ts';
import type { Database } from '../../common/domain/database.ts';
import { lookMs } from '../../common/kit/pace.ts';
import { openRecordedBodies } from './admin.ts';
import { accountsIn, BodyPolicy, type KnownAccounts } from './policy.ts';
import { BodyRecorder } from './recorder.ts';
import type { BodiesConfig } from './settings.ts';
import { BodyStore, recordingsTopic } from './store.ts';

const followIntervalMs = 30_000;
const pruneIntervalMs = 600_000;

export interface Bodies {
  readonly recorder: BodyRecorder;
  readonly admin: RecordedBodies;
  start(): Promise<void>;
  prepare(config: BodiesConfig | undefined): Promise<() => void>;
}

export function openBodies(host: Host, database: Database, config: BodiesConfig | undefined): Bodies {
  const store = new BodyStore(database);
  const recorder = new BodyRecorder(host, store);
  // Account names are looked up at the start, because the accounts service is set up later.
  if (config !== undefined) recorder.applyConfig(new BodyPolicy(config, new Map()));

  /** Accounts may have been added or renamed, and other processes may have started recordings. */
  const reload = async () => {
    const { policy } = recorder;
    if (policy === undefined) return;
    policy.applyConfig(await accountsIn(policy.config, host.find(accounts)));
    const recordings = await store.recordings(host.clock.now());
    if (recorder.policy === policy) recorder.applyConfig(policy, recordings);
  };
  const followNow = () =>
    reload().catch((error: unknown) => host.log.warn({ error }, 'recordings of bodies could not be looked up'));
  const prune = () => {
    const now = host.clock.now();
    const retention = recorder.policy?.config.retention;
    return store.prune(now, retention === undefined ? undefined : now - retention);
  };
  return {
    recorder,
    admin: openRecordedBodies({
      store,
      clock: host.clock,
      random: host.random,
      keeps: () => recorder.policy !== undefined,
    }),
    async start() {
      database.onChange(recordingsTopic, () => void followNow());
      host.every(lookMs, 'write bodies', () => recorder.advance());
      host.every(followIntervalMs, 'follow recordings of bodies', reload);
      host.every(pruneIntervalMs, 'prune bodies', prune);
      await followNow();
    },
    async prepare(changed) {
      if (changed === undefined) return () => recorder.applyConfig(undefined);
      // An unavailable database must not refuse the section: known names stay in use until it is back.
      const known: KnownAccounts = recorder.policy?.ids ?? new Map();
      const ids = await accountsIn(changed, host.find(accounts)).catch(() => known);
      const policy = new BodyPolicy(changed, ids);
      return () => {
        recorder.applyConfig(policy);
        void followNow();
      };
    },
  };
}
