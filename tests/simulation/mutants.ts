/** Faults that are put in at the seams, each a bug that somebody could write, to show that the oracle would find it. */

import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import type { Run } from '../../core/http/chain.ts';
import type { LiveExchange } from '../../core/http/exchange.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Stores } from '../../plugins/auth/index.ts';
import type { Funds } from '../../plugins/billing/grants/funds.ts';
import type { Files } from '../../plugins/billing/journal/segments.ts';
import type { Entries } from '../../plugins/billing/ledger/entries.ts';
import type { SettleRecord, VoidRecord } from '../../plugins/billing/model/records.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { spendGuard } from '../../plugins/common/domain/calls.ts';
import { type Money, money } from '../../plugins/common/domain/money.ts';
import type { KeyedRows } from '../../plugins/idempotency/rows.ts';
import type { TaskRows } from '../../plugins/task-store/engine/rows.ts';
import type { Vendors } from '../../plugins/task-store/engine/vendor.ts';
import type { Chance } from './chance.ts';
import type { MemoryArchive } from './memory-archive.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import type { ShopTables } from './memory-shop.ts';
import type { TaskTable } from './memory-tasks.ts';
import { type ArchiveParts, archiveMutants } from './mutants-archive.ts';
import { bridgeMutants } from './mutants-bridge.ts';
import { cachedMutants } from './mutants-cached.ts';
import { callerMutants } from './mutants-callers.ts';
import { creditMutants } from './mutants-credit.ts';
import { guardedMutants } from './mutants-guarded.ts';
import { hedgeMutants } from './mutants-hedge.ts';
import { journalMutants } from './mutants-journal.ts';
import { mcpMutants } from './mutants-mcp.ts';
import { namedMutants } from './mutants-named.ts';
import { reportMutants } from './mutants-reported.ts';
import { runMutants } from './mutants-runs.ts';
import { taskMutants } from './mutants-tasks.ts';
import { editing, opened, rewritten } from './mutants-tools.ts';
import { tradeMutants } from './mutants-trade.ts';
import type { Profile } from './profile.ts';
import { forward } from './visit.ts';

export interface Mutant {
  /** What the bug would be. */
  readonly summary: string;
  readonly files?: (files: Files, chance: Chance) => Files;
  /** The rows of the database. */
  readonly ledger?: (ledger: MemoryLedger, chance: Chance) => void;
  /** The database itself. */
  readonly store?: (store: Store, chance: Chance) => Store;
  /** A process's way to the database. */
  readonly link?: (store: Store, chance: Chance) => Store;
  /** The shop's tables. */
  readonly tables?: (tables: ShopTables) => void;
  /** Changes an exchange that has just been made. */
  readonly exchange?: (exchange: LiveExchange, chance: Chance) => void;
  /** What is read of a request beside its conversation. */
  readonly reads?: (json: JsonObject) => JsonObject;
  /** Changes a process's way to the table of keyed calls. */
  readonly keys?: (rows: KeyedRows) => void;
  readonly forward?: Run;
  /** Billing's section of the gateway's file, as it would be read. */
  readonly billing?: (section: Profile['billing']) => Profile['billing'];
  /** The route's section of the gateway's file, as it would be read. */
  readonly route?: (section: object) => object;
  /** A process's way to the tables of callers. */
  readonly callers?: (stores: Stores) => Stores;
  /** Whether what is announced is put down, and whether a process listens to it. */
  readonly announces?: (topic: string) => boolean;
  readonly hears?: (topic: string) => boolean;
  /** The tables of tasks, and a process's way to them and to their vendors. */
  readonly taskTable?: (table: TaskTable) => void;
  readonly taskRows?: (rows: TaskRows, chance: Chance) => TaskRows;
  readonly taskVendors?: (vendors: Vendors) => Vendors;
  /** The tables of archived calls, and a round's way to them and to the bucket. */
  readonly archiveTable?: (table: MemoryArchive) => void;
  readonly archive?: (parts: ArchiveParts) => ArchiveParts;
}

/** The gateway as it is. */
export const sound: Mutant = { summary: 'no fault' };

/** The usage's cost rounded for the list price, and once more for the ratio. */
function roundedTwice(record: SettleRecord): SettleRecord {
  const [numerator, denominator] = record.ratio.split('/').map(BigInt) as [bigint, bigint];
  const { input = '0', output = '0' } = record.price;
  const millionths =
    BigInt(record.usage.input ?? 0) * BigInt(input) + BigInt(record.usage.output ?? 0) * BigInt(output);
  if (record.usage.cache_read !== undefined || record.usage.reasoning !== undefined) return record;
  if (record.usage.call !== undefined) return record;
  const listed = (millionths + 500_000n) / 1_000_000n;
  return { ...record, cost: ((listed * numerator * 2n + denominator) / (denominator * 2n)).toString() };
}

/** The charge of all that was held for a call that cost nothing. */
function chargedFor({ held, key = '', input = 0, ...rest }: VoidRecord): SettleRecord {
  const terms = { price: {}, ratio: '1/1', version: '' };
  return {
    ...rest,
    ...terms,
    kind: 'SETTLE',
    key,
    input,
    held,
    cost: held,
    usage: {},
    estimated: false,
    terminal: false,
  };
}

export const mutants: Readonly<Record<string, Mutant>> = {
  'batch-not-idempotent': {
    summary: 'a batch that is applied again after a time-out settles again',
    store: (store) => {
      const applied = new Set<string>();
      return {
        ...opened(store),
        apply: async (text, accounts, cursor) => {
          const key = `${cursor.journal} ${cursor.applied}`;
          const again = applied.has(key);
          const done = await store.apply(
            again ? rewritten(text, (record) => ({ ...record, id: `${record.id}-again` })) : text,
            accounts,
            cursor,
          );
          applied.add(key);
          return done;
        },
      };
    },
  },
  'batch-lost': {
    summary: 'a batch is taken for applied when its answer was a failure',
    link: (store) => ({
      ...opened(store),
      apply: (text, accounts, cursor) => store.apply(text, accounts, cursor).catch(() => new Map<string, Money>()),
    }),
  },
  'sent-before-journal': {
    summary: 'the request leaves before hold and departure are in the journal',
    exchange: (exchange) => {
      const wait = exchange.readyForFirstByte.bind(exchange);
      exchange.readyForFirstByte = () => {
        wait()?.catch(() => {});
        return undefined;
      };
    },
  },
  'sent-before-connected': {
    summary: 'the departure is in the journal before there is a connection',
    exchange: (exchange) => {
      exchange.beforeFirstByte = (work) => exchange.beforeSend(work);
    },
  },
  'void-is-charged': {
    summary: 'a call that cost nothing is charged what was held for it',
    link: editing((record) => (record.kind === 'VOID' ? chargedFor(record) : record)),
  },
  'slot-leaked': {
    summary: 'a slot is not given back when its call ends, now and then',
    exchange: (exchange, chance) => {
      const defer = exchange.defer.bind(exchange);
      exchange.defer = (work) => {
        if (!String(work).includes('giveBack') || !chance.oneIn(20)) defer(work);
      };
    },
  },
  'end-lost': {
    summary: 'the end of a call is not reported to billing, now and then',
    exchange: (exchange, chance) => {
      const end = exchange.end.bind(exchange);
      exchange.end = async (outcome) => {
        if (!chance.oneIn(200)) await end(outcome);
      };
    },
  },
  'rounded-twice': {
    summary: 'the list price is rounded before the ratio is applied',
    link: editing((record) => (record.kind === 'SETTLE' ? roundedTwice(record) : record)),
  },
  'credit-before-commit': {
    summary: 'a credit is acknowledged although its transaction failed',
    link: (store) => ({
      ...opened(store),
      transact: <T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>) =>
        store.transact(accountId, at, work).catch(() => money(0n) as T),
    }),
  },
  'credit-twice': {
    summary: 'a payment that is reported twice is credited twice',
    store: (store) => ({
      ...opened(store),
      transact: (accountId, at, work) =>
        store.transact(accountId, at, (entries) => {
          const credit = entries.credit.bind(entries);
          entries.credit = async (amount, grant) => {
            const again = await entries.knowsGrant(grant.reference);
            return credit(amount, again ? { ...grant, reference: `${grant.reference} again` } : grant);
          };
          return work(entries);
        }),
    }),
  },
  'tried-again': {
    summary: 'a call that a vendor may have run is tried with another',
    forward: async (exchange) => {
      try {
        return await forward(exchange);
      } catch (error) {
        if (!(error instanceof UpstreamRefusal) || !error.mayRun) throw error;
        throw new UpstreamRefusal(error.error, { status: error.status });
      }
    },
  },
  'balance-cached': {
    summary: 'a balance is read from a cache that is older than the last batch',
    link: (store) => {
      const cache = new Map<string, Funds>();
      return {
        ...opened(store),
        funds: async (accountIds, at) => {
          const read = await store.funds(accountIds, at);
          for (const [id, found] of read) if (!cache.has(id)) cache.set(id, found);
          return new Map(accountIds.map((id) => [id, cache.get(id)!]));
        },
      };
    },
  },
  'slice-without-lock': {
    summary: 'a slice is cut by the sums of before it waited for the account’s lock',
    ledger: ({ leases }) => {
      const sums = leases.others.bind(leases);
      const before = new Map<string, ReturnType<typeof sums>>();
      leases.others = (account, journal) => {
        const now = sums(account, journal);
        const read = before.get(`${account} ${journal}`) ?? now;
        before.set(`${account} ${journal}`, now);
        return read;
      };
    },
  },
  'slice-overtaken': {
    summary: 'an ask that was given up changes a lease behind the one that was asked again',
    ledger: ({ leases }) => {
      leases.counts = () => true;
    },
  },
  'slice-of-the-silent': {
    summary:
      'a node that was not heard of for a quarter of a second is taken for gone, and its leases are given to others',
    ledger: ({ leases, cursors }) => {
      leases.stays = (journal) => {
        const heard = Array.from(cursors.values(), ({ seenAt }) => seenAt);
        return (cursors.get(journal)?.seenAt ?? 0) > Math.max(...heard) - 250;
      };
    },
  },
  'lease-without-holds': {
    summary: 'what running calls hold is given back with a lease',
    link: (store) => ({
      ...opened(store),
      leases: {
        ...store.leases,
        take: (node, round) => {
          const requests = round.requests.map((call) => ({ ...call, pending: money(0n) }));
          return store.leases.take(node, { ...round, requests });
        },
      },
    }),
  },
  'key-forgotten': {
    summary: 'an Idempotency-Key is free again when its call has been answered',
    keys: (rows) => {
      rows.finish = ({ call }) => rows.free(call);
    },
  },
  'key-of-the-living': {
    summary: 'a keyed call whose process was silent for a while is taken for one that came to nothing',
    keys: (rows) => {
      const find = rows.find.bind(rows);
      rows.find = async (call) => {
        const known = await find(call);
        return known && { ...known, returned: known.state === 'running', abandoned: known.state === 'running' };
      };
      rows.takeOver = async (call, { requestId }) => {
        await rows.free({ ...call, requestId });
        return rows.claim(call);
      };
    },
  },
  'key-of-the-dead': {
    summary: 'the key of a process that died is free before its journal has been read',
    keys: (rows) => {
      const find = rows.find.bind(rows);
      rows.find = async (call) => {
        const known = await find(call);
        return known && { ...known, returned: true };
      };
    },
  },
  'meter-blind': {
    summary: 'a long stream goes on past the end of the money',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) =>
        set(fact, (fact as unknown) === spendGuard ? ({ observe: () => true } as never) : value);
    },
  },
  'left-is-free': {
    summary: 'a client that leaves while the vendor is at work pays nothing',
    exchange: (exchange) => {
      const end = exchange.end.bind(exchange);
      exchange.end = (outcome) => end(outcome.kind === 'client_left' ? { ...outcome, kind: 'failed' } : outcome);
    },
  },
  ...archiveMutants,
  ...journalMutants,
  ...bridgeMutants,
  ...namedMutants,
  ...hedgeMutants,
  ...callerMutants,
  ...cachedMutants,
  ...guardedMutants,
  ...tradeMutants,
  ...creditMutants,
  ...reportMutants,
  ...runMutants,
  ...mcpMutants,
  ...taskMutants,
};
