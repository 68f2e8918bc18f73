/**
 * The lease lifecycle of one node: it starts without leases, sends heartbeats, listens to other nodes, and stops
 * without leases.
 */
import type { Host } from '../../../core/contract/contract.ts';
import type { Database } from '../../common/domain/database.ts';
import type { LeaseManager } from './manager.ts';
import type { Leases, Node } from './store.ts';

const turnMs = 50;
const checkMs = 1_000;
const aliveMs = 5_000;
const reclaimMs = 30_000;

export interface LeaseLifecycle {
  /** Starts once the journal is applied: leases of an earlier run are returned. Fails when there are too many nodes. */
  begin(): Promise<void>;
  /** No more calls arrive: unreserved money is returned now, the remainder as calls end. */
  drain(): void;
  /** The journal is applied and no call follows: all leases are returned. */
  end(): Promise<void>;
}

export interface LeaseLifecycleOptions {
  readonly host: Host;
  readonly database: Database;
  readonly leases: Leases;
  /** Shares of scopes, which begin and end with the leases. */
  readonly shares: Pick<Leases, 'returnAll'> & { reclaim(node: Node): Promise<void> };
  readonly manager: LeaseManager;
  readonly node: Node;
  /** The most nodes that may live at once. */
  readonly nodeLimit: number;
}

export function openLeaseLifecycle(options: LeaseLifecycleOptions): LeaseLifecycle {
  const { host, database, leases, shares, manager, node, nodeLimit } = options;
  let living = false;
  return {
    begin: async () => {
      const others = await leases.countOthers(node.journal);
      if (others >= nodeLimit) {
        await leases.heartbeat(node, false);
        throw new Error(
          `${others} other processes serve from this database and billing.nodes is ${nodeLimit}: raise it in all of them`,
        );
      }
      await leases.returnAll(node);
      await shares.returnAll(node);
      living = true;
      database.onChange('lease wanted', (subject) => manager.wanted(subject));
      database.onChange('lease returned', (subject) => manager.returned(subject));
      host.every(turnMs, 'return unused leases', () => manager.turn());
      host.every(checkMs, 'look after leases', () => manager.look());
      host.every(aliveMs, 'tell that this node lives', async () => {
        if (living) await leases.heartbeat(node, true);
      });
      host.every(reclaimMs, 'reclaim forgotten leases', async () => {
        manager.reclaim(await leases.accountsOf(node));
        await shares.reclaim(node);
      });
    },
    drain: () => manager.drain(),
    end: async () => {
      living = false;
      await leases.returnAll(node);
      await shares.returnAll(node);
      await leases.heartbeat(node, false);
    },
  };
}
