/** The life of one node among others: it begins without leases, tells that it lives, hears the others, and leaves with none. */
import type { Host } from '../../../core/contract.ts';
import type { Database } from '../../../core/vocabulary.ts';
import type { Lessor } from './lessor.ts';
import type { Leases, Node } from './store.ts';

const turnMs = 50;
const lookMs = 1_000;
const aliveMs = 5_000;
const reclaimMs = 30_000;

export interface Lettings {
  /** Its journal is in the ledger: what an earlier run had leased goes back. Fails when there are too many nodes. */
  begin(): Promise<void>;
  /** No calls will come: what none has spoken for goes back now, the rest as calls end. */
  drain(): void;
  /** Its journal is in the ledger and no call will come: all goes back. */
  end(): Promise<void>;
}

export interface LettingsParts {
  readonly host: Host;
  readonly database: Database;
  readonly leases: Leases;
  readonly lessor: Lessor;
  readonly node: Node;
  /** Nodes that may live at once. */
  readonly nodeLimit: number;
}

export function settleIn({ host, database, leases, lessor, node, nodeLimit }: LettingsParts): Lettings {
  let living = false;
  return {
    begin: async () => {
      const others = await leases.countOthers(node.journal);
      if (others >= nodeLimit) {
        await leases.tellAlive(node, false);
        throw new Error(
          `${others} other processes serve from this database and billing.nodes is ${nodeLimit}: raise it in all of them`,
        );
      }
      await leases.giveAllBack(node);
      living = true;
      database.onChange('lease wanted', (subject) => lessor.wanted(subject));
      database.onChange('lease returned', (subject) => lessor.returned(subject));
      host.every(turnMs, 'give back what is left of leases', () => lessor.turn());
      host.every(lookMs, 'look after leases', () => lessor.look());
      host.every(aliveMs, 'tell that this node lives', async () => {
        if (living) await leases.tellAlive(node, true);
      });
      host.every(reclaimMs, 'reclaim forgotten leases', async () => {
        lessor.reclaim(await leases.accountsOf(node));
      });
    },
    drain: () => lessor.drain(),
    end: async () => {
      living = false;
      await leases.giveAllBack(node);
      await leases.tellAlive(node, false);
    },
  };
}
