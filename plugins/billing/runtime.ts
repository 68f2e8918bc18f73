/**
 * Billing's runtime: opens the journal, recovers it, and connects balances in memory, flusher, leases and
 * reservations.
 */
import { join } from 'node:path';
import type { Health, Host } from '../../core/contract/contract.ts';
import type { Database } from '../common/domain/database.ts';
import { catalog } from '../common/domain/models.ts';
import type { ShareAnswer, ShareRequest } from './budgets/shares.ts';
import { claimJournal } from './journal/claim.ts';
import { Journal } from './journal/journal.ts';
import type { Lock } from './journal/lock.ts';
import { type PositionKeeper, readPosition } from './journal/position.ts';
import { Retention } from './journal/retention.ts';
import type { Files } from './journal/segments.ts';
import { LeasedBalance } from './leases/leased-balance.ts';
import { type LeaseLifecycle, openLeaseLifecycle } from './leases/lifecycle.ts';
import { LeaseManager, leaseTimes } from './leases/manager.ts';
import type { Leases, Round } from './leases/store.ts';
import { wholeBalanceTopUp } from './leases/top-up.ts';
import { Backlog } from './ledger/backlog.ts';
import { Balance } from './ledger/balance.ts';
import { BalanceCache } from './ledger/balance-cache.ts';
import { Answers } from './ledger/database-answers.ts';
import { Flusher, type FlusherOptions } from './ledger/flusher.ts';
import type { CallPlan } from './ledger/terms.ts';
import { judgeInterrupted, type Replay, replay, secureSegments } from './reservations/recovery.ts';
import { Reservations } from './reservations/reservations.ts';
import type { RestoreWatch } from './restores/watch.ts';
import type { Store } from './store.ts';

export interface BillingRuntimeOptions {
  readonly stepTokens: number;
  readonly segmentBytes: number;
  readonly journalBytes: number;
  readonly backlogLimit: number;
  readonly accountLimit: number;
  /** The database, if other processes spend its balances too, by leases; undefined: this process spends them all. */
  readonly shared: Database | undefined;
  /** The most processes that may serve from it at once. */
  readonly nodeLimit: number;
  /** Applies due grants and expiries to an account; resolves with the time of the next ones. */
  readonly upkeep: (accountId: string, plan: CallPlan | undefined) => Promise<number>;
  /** Present for a database that is copied at intervals. */
  readonly onCopy?: Database['onCopy'];
  /** Notices a database that was put back. */
  readonly watch?: RestoreWatch | undefined;
}

/** A database that is put back by as long as this finds in the journal what it lacks. */
const keepSegmentsMs = 300_000;
const evictBalancesMs = 60_000;
/** Idle accounts of which a small share is kept for an outage: each is a row that is written every 45 seconds. */
const mostResting = 10_000;

export interface BillingRuntime {
  readonly reservations: Reservations;
  readonly balances: BalanceCache;
  readonly backlog: Backlog;
  readonly flusher: Flusher;
  readonly journal: Journal;
  readonly scopes: RuntimeScopes;
  /** This process's leases; undefined where it alone spends all balances. */
  readonly leases: LeaseLifecycle | undefined;
  /** Syncs the journal; every few milliseconds. */
  tick(): Promise<void>;
  /** Applies the pending rows to the database, if they are due, then deletes journal segments. */
  apply(): void | Promise<void>;
  /** Deletes journal segments that are no longer needed: those that had to be kept for some time, also when nothing comes. */
  release(): Promise<void>;
  close(): Promise<void>;
}

export function journalDirectory(host: Host): string {
  return join(host.directory, 'journal', host.schema);
}

/** Opens the journal, recovers an earlier run, and resolves when all of it is in the database. */
export async function openBillingRuntime(
  host: Host,
  store: Store,
  files: Files,
  options: BillingRuntimeOptions,
): Promise<BillingRuntime> {
  const directory = journalDirectory(host);
  files.ensure(directory);
  const token = host.random.bytes(8).toString('hex');
  const lock = files.lock(join(directory, 'lock'));
  let keeper: PositionKeeper | undefined;
  try {
    const position = readPosition(files, directory);
    const claim = await claimJournal(store, { files, directory, position, random: host.random, owner: token });
    const { name, applied, seen } = claim;
    keeper = claim.keeper;
    const replayed = replay(files, directory, applied, position);
    await settle(files, replayed, keeper, position?.synced ?? 0);
    reportCut(host, replayed);
    const calls = replayed.stretches.reduce((sum, { rows }) => sum + rows, 0);
    await options.watch?.begin({ journal: name, applied, isAhead: replayed.epoch > seen, calls });
    const cursor = { journal: name, owner: token };
    const runtime = assemble({ host, store, files, options, directory, applied, replayed, cursor, keeper, lock });
    await recover(host, runtime, replayed);
    return runtime;
  } catch (error) {
    keeper?.close();
    lock.release();
    throw error;
  }
}

/** Makes the read records durable; a later start requires them. */
async function settle(files: Files, { segments, next }: Replay, keeper: PositionKeeper, synced: number): Promise<void> {
  await secureSegments(files, segments, synced);
  const isGapless = segments.at(-1)?.last === next - 1;
  await keeper.settle(isGapless ? segments[0]!.first : next, next - 1);
}

function reportCut(host: Host, { cut }: Replay): void {
  if (cut.length > 0) host.log.warn({ cut }, 'the end of the journal was not durable and has been truncated');
}

interface Assembly {
  readonly host: Host;
  readonly store: Store;
  readonly files: Files;
  readonly options: BillingRuntimeOptions;
  readonly directory: string;
  readonly applied: number;
  readonly replayed: Replay;
  readonly cursor: { readonly journal: string; readonly owner: string };
  readonly keeper: PositionKeeper;
  readonly lock: Lock;
}

function assemble(assembly: Assembly): BillingRuntime {
  const { host, store, options, applied, cursor, lock } = assembly;
  const { clock, log } = host;
  const { stepTokens, backlogLimit, accountLimit, shared, nodeLimit, upkeep } = options;
  const backlog: Backlog = new Backlog((slab) => journal.reclaim(slab));
  const journal = openJournal(assembly, backlog);
  const fundsOf = (accountIds: readonly string[]) => store.funds(accountIds, clock.now());
  const fundsOfOne = async (accountId: string) => (await fundsOf([accountId])).get(accountId)!;
  const cache = { clock, limit: accountLimit, idleMs: evictBalancesMs, fundsOf: fundsOfOne };
  const leased: BalanceCache<LeasedBalance> | undefined =
    shared && new BalanceCache({ ...cache, kind: LeasedBalance, lease: (...call) => leaseManager!.open(...call) });
  const balances: BalanceCache = leased ?? new BalanceCache({ ...cache, kind: Balance });
  const answers = new Answers(clock);
  const countUp = counter();
  const common = { backlog, balances, clock, log };
  const flusher: Flusher = new Flusher({
    ...common,
    applied,
    apply: batchApplier({ assembly, journal, answers, countUp, flusher: () => flusher, leases: () => leaseManager }),
    fundsOf: (accountIds) => leaseManager?.exchange(accountIds) ?? fundsOf(accountIds),
  });
  const { leases } = store;
  const take: TakeShares = (round) => answers.await(leases.take(cursor, { ...round, number: countUp() }));
  const leaseManager: LeaseManager | undefined = leased && openLeaseManager(assembly, leased, flusher, take);
  const parts = { ...common, journal, flusher, topUp: leaseManager ?? wholeBalanceTopUp(flusher) };
  const reservations = new Reservations({ ...parts, stepTokens, backlogLimit, upkeep, bridging: bridgingOf(shared) });
  const release = segmentRelease(options, { flusher, journal, reservations });
  const lifecycle =
    shared &&
    leaseManager &&
    openLeaseLifecycle({
      ...{ host, database: shared, leases, shares: store.budgets, manager: leaseManager, node: cursor, nodeLimit },
    });
  return {
    reservations,
    balances,
    backlog,
    flusher,
    journal,
    leases: lifecycle,
    scopes: scopesOf(assembly, { journal, flusher, answers, countUp }),
    tick: () => {
      answers.tick();
      return journal.tick();
    },
    apply: () => flusher.advance()?.then(release),
    release,
    close: async () => {
      journal.write();
      if (await flusher.drain()) await lifecycle?.end();
      else log.warn({ rows: backlog.rows }, 'the journal will be applied at the next start');
      options.watch?.applied(flusher.appliedSequence, true);
      await journal.close();
      lock.release();
    },
  };
}

function counter(): () => number {
  let count = 0;
  return () => ++count;
}

/** Whether statements fail, for no longer yet than is bridged. */
function bridgingOf(shared: Database | undefined): () => boolean {
  const bridgeMs = shared?.bridgeMs ?? 0;
  if (shared === undefined || bridgeMs === 0) return () => false;
  return () => !shared.healthy() && (shared.awayMs?.() ?? 0) < bridgeMs;
}

function openJournal({ host, files, directory, replayed, options, keeper }: Assembly, backlog: Backlog): Journal {
  const { clock, log } = host;
  const { segments, next } = replayed;
  const limits = { segmentBytes: options.segmentBytes, limitBytes: options.journalBytes, keepMs: keepSegmentsMs };
  const onWritten = backlog.written.bind(backlog);
  return new Journal({ files, directory, next, segments, ...limits, clock, log, onWritten, position: keeper });
}

interface BatchOptions {
  readonly assembly: Assembly;
  readonly journal: Journal;
  readonly answers: Answers;
  readonly countUp: () => number;
  readonly flusher: () => Flusher;
  /** Undefined where this process alone spends all balances. */
  readonly leases: () => LeaseManager | undefined;
}

/** Sends a batch to the database, and renews the leases of its accounts. */
function batchApplier({ assembly, journal, answers, countUp, flusher, leases }: BatchOptions): FlusherOptions['apply'] {
  const { host, store, options, cursor } = assembly;
  const written = { ...cursor, leaseMs: options.shared && leaseTimes(options.shared.bridgeMs ?? 0).lastsMs };
  return async (text, accounts, reached) => {
    // After a power cut the database must not have a charge that the journal has lost.
    await journal.secure(reached);
    const sentAt = host.clock.monotonic();
    const known = flusher().appliedSequence;
    const numbered = { ...written, applied: reached, known, number: countUp() };
    const balances = await answers.await(store.apply(text, accounts, numbered));
    const leaseManager = leases();
    if (leaseManager === undefined) return balances;
    // A batch changes balance and lease alike: the spendable amount here stays the same.
    leaseManager.renewed([...accounts.keys()], sentAt);
    return new Map();
  };
}

/** Deletes the journal segments that retention releases. */
function segmentRelease(
  { journalBytes, onCopy, watch }: BillingRuntimeOptions,
  { flusher, journal, reservations }: Pick<BillingRuntime, 'flusher' | 'journal' | 'reservations'>,
): () => Promise<void> {
  const retention = new Retention(() => ({ applied: flusher.appliedSequence, oldest: reservations.oldestSequence }));
  if (onCopy !== undefined) {
    retention.awaitCopies();
    onCopy(() => retention.beginCopy());
  }
  return async () => {
    watch?.applied(flusher.appliedSequence);
    const { applied, oldest } = retention.bounds(journal.bytes >= journalBytes / 2);
    await journal.release(applied, oldest);
  };
}

/** What scopes need of the runtime. */
interface RuntimeScopes {
  /** The journal's name. */
  readonly node: string;
  /** Resolves when the ledger has everything that has ended here; rejects while it cannot be written. */
  readonly drained: () => Promise<void>;
  /** Takes shares, or reads what scopes have left where this process alone spends. */
  readonly take: (requests: readonly ShareRequest[]) => Promise<ReadonlyMap<string, ShareAnswer>>;
}

function scopesOf(
  { store: { budgets }, cursor, options: { shared } }: Assembly,
  { journal, flusher, answers, countUp }: Pick<BatchOptions, 'journal' | 'answers' | 'countUp'> & { flusher: Flusher },
): RuntimeScopes {
  const { lastsMs } = leaseTimes(shared?.bridgeMs ?? 0);
  return {
    node: cursor.journal,
    drained: async () => {
      await journal.turn().promise;
      if (!(await flusher.drain())) throw new Error('the ledger cannot be written');
    },
    take: (requests) =>
      shared === undefined
        ? budgets.read(requests)
        : answers.await(budgets.take(cursor, { number: countUp(), requests, lastsMs })),
  };
}

type TakeShares = (round: Omit<Round, 'number'>) => ReturnType<Leases['take']>;

function openLeaseManager(
  { host, options, cursor }: Assembly,
  balances: BalanceCache<LeasedBalance>,
  flusher: Flusher,
  take: TakeShares,
): LeaseManager {
  const { clock, log } = host;
  const { bridgeMs = 0, announce } = options.shared!;
  const { lastsMs } = leaseTimes(bridgeMs);
  return new LeaseManager({
    ...{ node: cursor.journal, balances, flusher, clock, log, bridgeMs, announce },
    mostResting: Math.min(mostResting, Math.floor(balances.limit / 2)),
    takeShares: (requests) => take({ requests, lastsMs, at: clock.now() }),
  });
}

/** Ends interrupted requests, and waits until the database has all of them: only then are balances right. */
async function recover(host: Host, runtime: BillingRuntime, { stretches, open }: Replay): Promise<void> {
  const { reservations, backlog, flusher, journal } = runtime;
  for (const stretch of stretches) backlog.restore(stretch);
  const rows = backlog.rows;
  for (const found of open) {
    const entry = host.find(catalog)?.find(found.terms.model);
    const hold = { ...found, terms: { ...found.terms, entry } };
    reservations.adopt(hold);
    const { verdict, shares } = judgeInterrupted(hold);
    reservations.settle(hold, verdict, shares);
  }
  journal.write();
  await journal.tick();
  if (!(await flusher.drain()) || backlog.rows > 0) {
    await journal.close();
    throw new Error('the journal could not be applied to the database');
  }
  // Returns what the last run had leased and not spent.
  await runtime.leases?.begin();
  if (rows + open.length > 0) host.log.info({ rows, interrupted: open.length }, 'the journal was replayed');
}

export function healthOf(runtime: () => BillingRuntime | undefined, watch: RestoreWatch | undefined): Health {
  return {
    ready: () => runtime()?.reservations.accepting() ?? false,
    refuses: () => watch?.refuses() ?? {},
    // A fenced process stays so until the journal is read again at a start; running calls end in the drain before.
    alive: () => runtime()?.reservations.fenced !== true,
  };
}
