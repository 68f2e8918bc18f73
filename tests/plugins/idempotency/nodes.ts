/** Processes that share one database of keyed calls, each with a connection and a memory of its own. */
import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database } from '../../../plugins/common/domain/database.ts';
import { Calls } from '../../../plugins/idempotency/calls.ts';
import type { KeyedCall } from '../../../plugins/idempotency/key.ts';
import { CallRows } from '../../../plugins/idempotency/rows.ts';
import { type StoredAnswer, storedAnswer } from '../../../plugins/idempotency/stored-answer.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';

export interface Node {
  readonly calls: Calls;
  readonly rows: CallRows;
  /** Moves this node's clock. */
  advance(milliseconds: number): void;
  /**
   * While true every statement of this node fails; those in `afterwards` are carried out all the same; how calls end is not
   * recorded; polls have shown that the database is down.
   */
  readonly faults: { down: boolean; afterwards: boolean; diskFull: boolean; isNoticed: boolean };
}

export interface Shop {
  readonly database: TestDatabase;
  /** A process of this owner, by default of one that has had none before. */
  node(owner?: string): Promise<Node>;
  /** What the ledger says of requests that were left behind; by default that they were not charged. */
  readonly ends: Map<string, boolean | 'open' | 'unknown'>;
  /** All leases run out; keys too, where asked for. */
  lapse(what?: 'lease' | 'key'): Promise<void>;
  states(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const database = await openDatabase({ plugins: ['idempotency'] });
  const table = sql`${sql.identifier(database.schema)}.idempotent_calls`;
  const ends = new Map<string, boolean | 'open' | 'unknown'>();
  const others: TestDatabase[] = [];
  return {
    database,
    ends,
    async node(owner = randomUUID()) {
      const own = await openDatabase({ schema: database.schema });
      others.push(own);
      const faults = { down: false, afterwards: false, diskFull: false, isNoticed: false };
      const rows = new CallRows(failing(own, faults), owner, { keepMs: 86_400_000, leaseMs: 60_000 });
      const { clock, log } = own.host;
      const calls = new Calls({
        rows,
        clock,
        log,
        mayBeCharged: async (id) => ends.get(id) ?? false,
        durable: async () => {
          if (faults.diskFull) throw new Error('the journal cannot be written');
        },
        healthy: () => !faults.isNoticed,
        keepMs: 86_400_000,
      });
      return { calls, rows, faults, advance: own.host.advance };
    },
    async lapse(what = 'lease') {
      const column = sql.identifier(what === 'lease' ? 'lease_until' : 'expires_at');
      await database.orm.execute(sql`update ${table} set ${column} = now() - interval '1 second'`);
    },
    async states() {
      const rows = await database.orm.execute(sql`select state from ${table} order by state`);
      return [...(rows as unknown as { state: string }[])].map(({ state }) => state);
    },
    async close() {
      for (const other of others) await other.close();
      await database.close();
    },
  };
}

function failing(database: Database, faults: Node['faults']): Database {
  const orm = new Proxy(database.orm, {
    get(target, name) {
      if (name !== 'execute') return Reflect.get(target, name);
      return async (statement: Parameters<typeof target.execute>[0]) => {
        if (!faults.down || faults.afterwards) {
          const result = await target.execute(statement);
          if (!faults.down) return result;
        }
        throw new Error('the database is down');
      };
    },
  });
  return { ...database, orm };
}

export const newKey = () => randomBytes(32).toString('hex');

export function callOf(keyHash: string, fingerprint = 'one body', accountId = 'alice'): KeyedCall {
  return { accountId, keyHash, fingerprint, requestId: randomUUID() };
}

export function storedAnswerOf(text: string): StoredAnswer {
  return storedAnswer(200, { 'content-type': 'application/json' }, Buffer.from(text));
}

/** `run`, the answer's text, or the code of the refusal. */
export async function enter(node: Node, call: KeyedCall): Promise<string> {
  try {
    const earlier = await node.calls.enter(call);
    return earlier === undefined ? 'run' : Buffer.from(earlier.answer.body).toString();
  } catch (error) {
    if (error instanceof GatewayError) return error.code ?? error.kind;
    throw error;
  }
}
