/** The serving half of billing: journal, purses, flusher and desk put together, recovered at the start, flushed at the stop. */
import { join } from 'node:path';
import type { Host } from '../../core/contract.ts';
import { catalog, type Database, type PlanTerms } from '../../core/vocabulary.ts';
import { Backlog } from './backlog.ts';
import { applyBatch, claimCursor } from './batch.ts';
import { Desk } from './desk.ts';
import { Flusher } from './flusher.ts';
import { readFunds } from './funds.ts';
import { Journal } from './journal.ts';
import { type Lock, takeLock } from './lock.ts';
import { Purses } from './purses.ts';
import { judgeInterrupted, type Replay, replay } from './recovery.ts';
import type { Files } from './segments.ts';

export interface BooksOptions {
  readonly stepTokens: number;
  readonly segmentBytes: number;
  readonly journalBytes: number;
  readonly backlogLimit: number;
  readonly accountLimit: number;
  /** Gives and takes what is due to an account beside its calls; resolves with when there is something to do again. */
  readonly upkeep: (accountId: string, plan: PlanTerms | undefined) => Promise<number>;
}

/** A power cut may take back what an embedded database committed in the last seconds; applied segments outlive that. */
const keepSegmentsMs = 300_000;
const forgetPursesMs = 60_000;

export interface Books {
  readonly desk: Desk;
  readonly purses: Purses;
  readonly backlog: Backlog;
  readonly flusher: Flusher;
  readonly journal: Journal;
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
export async function openBooks(host: Host, database: Database, files: Files, options: BooksOptions): Promise<Books> {
  const directory = journalDirectory(host);
  files.ensure(directory);
  const token = host.random.bytes(8).toString('hex');
  const lock = takeLock(join(directory, 'lock'));
  try {
    const name = journalName(host, files, directory);
    const applied = await claimCursor(database.orm, database.schema, name, token);
    const replayed = replay(files, directory, applied);
    const cursor = { journal: name, owner: token };
    const books = assemble({ host, database, files, options, directory, applied, replayed, cursor, lock });
    await recover(host, books, replayed);
    return books;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The journal's own name, under which the database keeps its cursor: made once, kept beside the segments. */
function journalName(host: Host, files: Files, directory: string): string {
  const path = join(directory, 'name');
  if (files.list(directory).includes('name')) {
    const known = files.read(path).toString('utf8').trim();
    if (known !== '') return known;
    // A disk that was full at the first start left it empty.
    files.remove(path);
  }
  const name = host.random.bytes(8).toString('hex');
  const descriptor = files.create(path);
  files.write(descriptor, Buffer.from(`${name}\n`));
  files.close(descriptor);
  return name;
}

interface Assembly {
  readonly host: Host;
  readonly database: Database;
  readonly files: Files;
  readonly options: BooksOptions;
  readonly directory: string;
  readonly applied: number;
  readonly replayed: Replay;
  readonly cursor: { readonly journal: string; readonly owner: string };
  readonly lock: Lock;
}

function assemble({ host, database, files, options, directory, applied, replayed, cursor, lock }: Assembly): Books {
  const { orm, schema } = database;
  const { clock, log } = host;
  const { segments, next } = replayed;
  const { segmentBytes, journalBytes: limitBytes, stepTokens, backlogLimit, accountLimit } = options;
  const kept = { segmentBytes, limitBytes, keepMs: keepSegmentsMs };
  const backlog: Backlog = new Backlog((slab) => journal.reclaim(slab));
  const onWritten = backlog.written.bind(backlog);
  const journal = new Journal({ files, directory, next, segments, ...kept, clock, log, onWritten });
  const fundsOf = (accountIds: readonly string[]) => readFunds(orm, schema, accountIds, clock.now());
  const fundsOfOne = async (accountId: string) => (await fundsOf([accountId])).get(accountId)!;
  const purses = new Purses({ clock, limit: accountLimit, idleMs: forgetPursesMs, fundsOf: fundsOfOne });
  const flusher = new Flusher({
    backlog,
    purses,
    clock,
    log,
    applied,
    apply: (text, accountIds, reached) => applyBatch(orm, schema, text, accountIds, { ...cursor, applied: reached }),
    fundsOf,
  });
  const { upkeep } = options;
  const desk = new Desk({ journal, backlog, flusher, purses, clock, log, stepTokens, backlogLimit, upkeep });
  const apply = async () => {
    const worked = await flusher.drain();
    journal.release(flusher.appliedSequence, desk.oldestSequence);
    return worked;
  };
  return {
    desk,
    purses,
    backlog,
    flusher,
    journal,
    tick: () => journal.tick(),
    apply,
    close: async () => {
      journal.write();
      if (!(await apply())) log.warn({ rows: backlog.rows }, 'the journal will be applied at the next start');
      await journal.close();
      lock.release();
    },
  };
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
  if (rows + open.length > 0) host.log.info({ rows, interrupted: open.length }, 'the journal was replayed');
}
