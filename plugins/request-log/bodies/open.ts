/** Bodies as a part of the request log: opened with it, changed with its section, kept in step with what operators ask for. */
import type { Host } from '../../../core/contract.ts';
import type { BodyDesk } from '../../../core/desk.ts';
import { accounts, type Database } from '../../../core/vocabulary.ts';
import { openBodyDesk } from './desk.ts';
import { accountsIn, BodyPolicy, type KnownAccounts } from './policy.ts';
import { BodyRecorder } from './recorder.ts';
import type { BodiesConfig } from './settings.ts';
import { BodyStore, recordingsTopic } from './store.ts';

const flushIntervalMs = 500;
const followIntervalMs = 30_000;
const pruneIntervalMs = 600_000;

export interface Bodies {
  readonly recorder: BodyRecorder;
  readonly desk: BodyDesk;
  start(): Promise<void>;
  prepare(config: BodiesConfig | undefined): Promise<() => void>;
}

export function openBodies(host: Host, database: Database, config: BodiesConfig | undefined): Bodies {
  const store = new BodyStore(database);
  const recorder = new BodyRecorder(host, store);
  // Names are looked up at the start: whoever knows accounts stands further down.
  if (config !== undefined) recorder.follow(new BodyPolicy(config, new Map()));

  /** Accounts may have come or been renamed; recordings may have been begun elsewhere. */
  const follow = async () => {
    const { policy } = recorder;
    if (policy === undefined) return;
    policy.follow(await accountsIn(policy.config, host.find(accounts)));
    const recordings = await store.recordings(host.clock.now());
    if (recorder.policy === policy) recorder.follow(policy, recordings);
  };
  const followNow = () =>
    follow().catch((error: unknown) => host.log.warn({ error }, 'recordings of bodies could not be looked up'));
  const prune = () => {
    const now = host.clock.now();
    const retention = recorder.policy?.config.retention;
    return store.prune(now, retention === undefined ? undefined : now - retention);
  };
  return {
    recorder,
    desk: openBodyDesk({
      store,
      clock: host.clock,
      random: host.random,
      keeps: () => recorder.policy !== undefined,
    }),
    async start() {
      database.onChange(recordingsTopic, () => void followNow());
      host.every(flushIntervalMs, 'write bodies', () => recorder.flush());
      host.every(followIntervalMs, 'follow recordings of bodies', follow);
      host.every(pruneIntervalMs, 'prune bodies', prune);
      await followNow();
    },
    async prepare(changed) {
      if (changed === undefined) return () => recorder.follow(undefined);
      // A database that is away is no reason to refuse: names that were known stay known until it is back.
      const known: KnownAccounts = recorder.policy?.ids ?? new Map();
      const ids = await accountsIn(changed, host.find(accounts)).catch(() => known);
      const policy = new BodyPolicy(changed, ids);
      return () => {
        recorder.follow(policy);
        void followNow();
      };
    },
  };
}
