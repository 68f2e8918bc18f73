/** The life of one node among others: it begins without leases, tells that it lives, hears the others, and leaves with none. */
import type { Host } from '../../../core/contract.ts';
import type { Database } from '../../../core/vocabulary.ts';
import type { Lessor } from './lessor.ts';
import { countOthers, giveAllBack, leasedAccounts, type Node, tellAlive } from './store.ts';

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
  readonly lessor: Lessor;
  readonly node: Node;
  /** Nodes that may live at once. */
  readonly nodeLimit: number;
}

export function settleIn({ host, database, lessor, node, nodeLimit }: LettingsParts): Lettings {
  const { orm, schema } = database;
  let living = false;
  return {
    begin: async () => {
      const others = await countOthers(orm, schema, node.journal);
      if (others >= nodeLimit) {
        await tellAlive(orm, schema, node, false);
        throw new Error(
          `${others} other processes serve from this database and billing.nodes is ${nodeLimit}: raise it in all of them`,
        );
      }
      await giveAllBack(orm, schema, node);
      living = true;
      database.onChange('lease wanted', (subject) => lessor.wanted(subject));
      database.onChange('lease returned', (subject) => lessor.returned(subject));
      host.every(turnMs, 'give back what is left of leases', () => lessor.turn());
      host.every(lookMs, 'look after leases', () => lessor.look());
      host.every(aliveMs, 'tell that this node lives', async () => {
        if (living) await tellAlive(orm, schema, node, true);
      });
      host.every(reclaimMs, 'reclaim forgotten leases', async () => {
        lessor.reclaim(await leasedAccounts(orm, schema, node));
      });
    },
    drain: () => lessor.drain(),
    end: async () => {
      living = false;
      await giveAllBack(orm, schema, node);
      await tellAlive(orm, schema, node, false);
    },
  };
}
