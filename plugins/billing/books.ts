/** The serving half of billing: journal, purses, flusher and desk put together, recovered at the start, flushed at the stop. */
import { join } from 'node:path';
import type { Host } from '../../core/contract.ts';
import type { Money } from '../../core/money.ts';
import { catalog, type Database } from '../../core/vocabulary.ts';
import { Answers } from './answers.ts';
import { Backlog } from './backlog.ts';
import { claimJournal } from './claim.ts';
import { Desk } from './desk.ts';
import { Flusher } from './flusher.ts';
import { Journal } from './journal.ts';
import { wholeBalances } from './leases/funding.ts';
import { Lessor, leaseMs } from './leases/lessor.ts';
import { type Lettings, settleIn } from './leases/lettings.ts';
import type { Leases, Node } from './leases/store.ts';
import type { Lock } from './lock.ts';
import { type PositionKeeper, readPosition } from './position.ts';
import { type Purse, Purses } from './purses.ts';
import { judgeInterrupted, type Replay, replay, secureSegments } from './recovery.ts';
import { Retention } from './retention.ts';
import type { Files } from './segments.ts';
import type { Store } from './store.ts';
import type { StatedPlan } from './terms.ts';

export interface BooksOptions {
  readonly stepTokens: number;
  readonly segmentBytes: number;
  readonly journalBytes: number;
  readonly backlogLimit: number;
  readonly accountLimit: number;
  /** The database whose balances other processes spend too, by leases; undefined: this one spends them all. */
  readonly shared: Database | undefined;
  /** Processes that may serve from it at once. */
  readonly nodeLimit: number;
  /** Gives and takes what is due to an account beside its calls; resolves with when there is something to do again. */
  readonly upkeep: (accountId: string, plan: StatedPlan | undefined) => Promise<number>;
  /** Of a database that is copied now and then. */
  readonly onCopy?: Database['onCopy'];
}

/** An audit that reads the journal after the rows finds the holds that ended in between. */
const keepSegmentsMs = 300_000;
const forgetPursesMs = 60_000;

export interface Books {
  readonly desk: Desk;
  readonly purses: Purses;
  readonly backlog: Backlog;
  readonly flusher: Flusher;
  readonly journal: Journal;
  /** This process's leases; undefined where it alone spends all balances. */
  readonly lettings: Lettings | undefined;
  /** Syncs the journal; every few milliseconds. */
  tick(): Promise<void>;
  /** Applies what is due to the database and drops journal segments that are done with. */
  apply(): Promise<boolean>;
  close(): Promise<void>;
}

export function journalDirectory(host: Host): string {
  return join(host.directory, 'journal', host.schema);
}

/** Opens the journal, recovers what an earlier run left, and resolves when all of it is in the database. */
export async function openBooks(host: Host, store: Store, files: Files, options: BooksOptions): Promise<Books> {
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
    tellFindings(host, replayed, seen);
    const cursor = { journal: name, owner: token };
    const books = assemble({ host, store, files, options, directory, applied, replayed, cursor, keeper, lock });
    await recover(host, books, replayed);
    return books;
  } catch (error) {
    keeper?.close();
    lock.release();
    throw error;
  }
}

/** What was read is sound: it is made safe, and from now on it must be found again. */
async function settle(files: Files, { segments, next }: Replay, keeper: PositionKeeper, synced: number): Promise<void> {
  await secureSegments(files, segments, synced);
  const isGapless = segments.at(-1)?.last === next - 1;
  await keeper.settle(isGapless ? segments[0]!.first : next, next - 1);
}

function tellFindings(host: Host, { cut, epoch }: Replay, seen: number): void {
  if (cut.length > 0) {
    host.log.warn({ cut }, 'the end of the journal, which was never safe on disk, was lost and has been cut away');
  }
  if (epoch > seen) {
    const fields = { journal: epoch, database: seen };
    host.log.warn(
      fields,
      'the database is an older copy than the journal: charges are replayed, money-in must be checked',
    );
  }
}

interface Assembly {
  readonly host: Host;
  readonly store: Store;
  readonly files: Files;
  readonly options: BooksOptions;
  readonly directory: string;
  readonly applied: number;
  readonly replayed: Replay;
  readonly cursor: { readonly journal: string; readonly owner: string };
  readonly keeper: PositionKeeper;
  readonly lock: Lock;
}

function assemble(assembly: Assembly): Books {
  const { host, store, files, options, directory, applied, replayed, cursor, keeper: position, lock } = assembly;
  const { clock, log } = host;
  const { segments, next } = replayed;
  const { segmentBytes, journalBytes: limitBytes, stepTokens, backlogLimit, accountLimit } = options;
  const { shared, nodeLimit, upkeep, onCopy } = options;
  const kept = { segmentBytes, limitBytes, keepMs: keepSegmentsMs };
  const backlog: Backlog = new Backlog((slab) => journal.reclaim(slab));
  const onWritten = backlog.written.bind(backlog);
  const journal = new Journal({ files, directory, next, segments, ...kept, clock, log, onWritten, position });
  const fundsOf = (accountIds: readonly string[]) => store.funds(accountIds, clock.now());
  const fundsOfOne = async (accountId: string) => (await fundsOf([accountId])).get(accountId)!;
  const lease = shared ? (purse: Purse, need: Money) => lessor!.open(purse, need) : undefined;
  const purses = new Purses({ clock, limit: accountLimit, idleMs: forgetPursesMs, fundsOf: fundsOfOne, lease });
  const written = { ...cursor, leaseMs: shared && leaseMs };
  const answers = new Answers(clock);
  let statements = 0;
  const countUp = () => ++statements;
  const flusher: Flusher = new Flusher({
    backlog,
    purses,
    clock,
    log,
    applied,
    apply: async (text, accountIds, reached) => {
      // A power cut must not leave the database with a hold of which the journal has lost the record.
      await journal.secure(reached);
      const sentAt = clock.monotonic();
      const known = flusher.appliedSequence;
      const numbered = { ...written, applied: reached, known, number: countUp() };
      const balances = await answers.await(store.apply(text, accountIds, numbered));
      if (lessor === undefined) return balances;
      // What a batch takes it takes from balance and lease alike: what is left to spend here does not change.
      lessor.renewed(accountIds, sentAt);
      return new Map();
    },
    fundsOf: (accountIds) => lessor?.exchange(accountIds) ?? fundsOf(accountIds),
  });
  const lessor =
    shared &&
    lessorOf({ host, database: shared, leases: store.leases, purses, flusher, node: cursor, answers, countUp });
  const funding = lessor ?? wholeBalances(flusher);
  const desk = new Desk({ journal, backlog, flusher, purses, funding, clock, log, stepTokens, backlogLimit, upkeep });
  const retention = new Retention(() => ({ applied: flusher.appliedSequence, oldest: desk.oldestSequence }));
  if (onCopy !== undefined) {
    retention.awaitCopies();
    onCopy(() => retention.beginCopy());
  }
  const apply = async () => {
    const worked = await flusher.drain();
    const { applied: done, oldest } = retention.bounds(journal.bytes >= limitBytes / 2);
    await journal.release(done, oldest);
    return worked;
  };
  const lettings =
    shared && lessor && settleIn({ host, database: shared, leases: store.leases, lessor, node: cursor, nodeLimit });
  return {
    desk,
    purses,
    backlog,
    flusher,
    journal,
    lettings,
    tick: () => {
      answers.tick();
      return journal.tick();
    },
    apply,
    close: async () => {
      journal.write();
      if (!(await apply())) log.warn({ rows: backlog.rows }, 'the journal will be applied at the next start');
      else await lettings?.end();
      await journal.close();
      lock.release();
    },
  };
}

interface LessorParts {
  readonly host: Host;
  readonly database: Database;
  readonly leases: Leases;
  readonly purses: Purses;
  readonly flusher: Flusher;
  readonly node: Node;
  readonly answers: Answers;
  /** Counts the statements that move this node's leases. */
  readonly countUp: () => number;
}

function lessorOf({
  host: { clock, log },
  database,
  leases,
  purses,
  flusher,
  node,
  answers,
  countUp,
}: LessorParts): Lessor {
  return new Lessor({
    node: node.journal,
    purses,
    flusher,
    clock,
    log,
    takeSlices: (asks) =>
      answers.await(leases.take(node, { number: countUp(), asks, lastsMs: leaseMs, at: clock.now() })),
    announce: database.announce,
  });
}

/** Ends what a crash left open, and waits until the database has all of it: only then are balances right. */
async function recover(host: Host, books: Books, { stretches, open }: Replay): Promise<void> {
  const { desk, backlog, flusher, journal } = books;
  for (const stretch of stretches) backlog.restore(stretch);
  const rows = backlog.rows;
  for (const found of open) {
    const entry = host.find(catalog)?.find(found.terms.model);
    const hold = { ...found, terms: { ...found.terms, entry } };
    desk.adopt(hold);
    const { verdict, shares } = judgeInterrupted(hold);
    desk.end(hold, verdict, shares);
  }
  journal.write();
  await journal.tick();
  if (!(await flusher.drain()) || backlog.rows > 0) {
    await journal.close();
    throw new Error('the journal could not be applied to the database');
  }
  // What the last run had leased and did not spend.
  await books.lettings?.begin();
  if (rows + open.length > 0) host.log.info({ rows, interrupted: open.length }, 'the journal was replayed');
}
