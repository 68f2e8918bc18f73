/** Claims a journal for this process: its name, its epoch, and the database's cursor for it. */
import { join } from 'node:path';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { LedgerStore } from '../ledger/store.ts';
import { type Position, PositionKeeper, positionPath } from './position.ts';
import { type Files, listSegments } from './segments.ts';

export interface Claim {
  /** The journal's name, the key of its cursor in the database. */
  readonly name: string;
  /** The last sequence number that the database has applied. */
  readonly applied: number;
  /** Stores the new epoch. */
  readonly keeper: PositionKeeper;
  /** The last epoch known to the database; 0 when there is none. */
  readonly seen: number;
}

export interface ClaimOptions {
  readonly files: Files;
  readonly directory: string;
  readonly position: Position | undefined;
  readonly random: Random;
  /** Identifies this process: earlier owners of the journal can no longer apply anything. */
  readonly owner: string;
}

/**
 * Claims the journal in `directory` for `owner`. Throws a sentence when directory and database do not match: the
 * journal is an older copy than the database knows, the database does not know a journal with records, or the
 * position file is missing.
 */
export async function claimJournal(store: LedgerStore, options: ClaimOptions): Promise<Claim> {
  const { files, directory, position, owner } = options;
  const name = await journalName(options);
  const known = await store.cursorOf(name);
  const seen = known?.epoch ?? 0;
  if (known === undefined) refuseUnknown(options, name);
  refuseOlder(options, seen);
  const applied = known?.applied ?? 0;
  const epoch = Math.max(position?.epoch ?? 0, seen) + 1;
  // The file is written first: a crash in between leaves it ahead of the database, which is not an older copy.
  const keeper = await PositionKeeper.begin(files, directory, {
    ...(position ?? firstPosition(options, applied)),
    epoch,
  });
  const claimed = await store.claim(name, owner, epoch).catch((error: unknown) => {
    keeper.close();
    throw error;
  });
  if (claimed) return { name, applied, keeper, seen };
  keeper.close();
  throw new Error(`${directory}: another process has taken journal ${name} over, from a copy of this directory`);
}

/** A missing cursor is valid only for a new journal. */
function refuseUnknown({ files, directory, position }: ClaimOptions, name: string): void {
  if (!hasRecords(files, directory, position)) return;
  throw new Error(
    `${directory} holds records of journal ${name}, which this database does not know: the database is another one, ` +
      'an older copy or new; restore it, or move the journal away and run audit. If only its address was changed, bring the ' +
      'rows along: "gateway storage export FILE" from the former one, "gateway storage import FILE" into this one',
  );
}

/** The database knows a later run of this journal than the directory. */
function refuseOlder({ directory, position }: ClaimOptions, seen: number): void {
  const path = positionPath(directory);
  if (seen > 0 && position === undefined) {
    throw new Error(`${path} is missing or empty: restore the file, or move the journal away and run audit`);
  }
  if (position === undefined || position.epoch >= seen) return;
  throw new Error(
    `${path} is of epoch ${position.epoch}, but the database has seen epoch ${seen}: this journal is an older copy; ` +
      'restore the newer one, or move it away and run audit',
  );
}

/** The position of a new journal, or of one written before positions existed. */
function firstPosition({ files, directory }: ClaimOptions, applied: number): Omit<Position, 'epoch'> {
  const kept = listSegments(files, directory)[0]?.first ?? applied + 1;
  return { kept, synced: kept - 1 };
}

/** Created once and kept beside the segments. */
async function journalName({ files, directory, position, random }: ClaimOptions): Promise<string> {
  const path = join(directory, 'name');
  if (files.list(directory).includes('name')) {
    const known = files.read(path);
    if (known.toString('utf8').endsWith('\n')) {
      // An interrupted first start may have written the name without syncing it.
      if (position === undefined) await keepName(files, files.open(path), (name) => files.rewrite(name, known, 0));
      return known.toString('utf8').trim();
    }
    // A full disk or power cut at the first start left the file empty or torn.
  }
  if (hasRecords(files, directory, position)) {
    throw new Error(`${path} is missing or empty: restore the file, or move the journal away and run audit`);
  }
  files.remove(path);
  const name = random.bytes(8).toString('hex');
  await keepName(files, files.create(path), (descriptor) => {
    const data = Buffer.from(`${name}\n`);
    for (let done = 0; done < data.length; ) done += files.write(descriptor, data.subarray(done));
  });
  return name;
}

/** The name must be durable before the database stores it. */
async function keepName(files: Files, descriptor: number, write: (descriptor: number) => void): Promise<void> {
  try {
    write(descriptor);
    await files.sync(descriptor);
  } finally {
    files.close(descriptor);
  }
}

/** Whether an earlier run recorded anything here. */
function hasRecords(files: Files, directory: string, position: Position | undefined): boolean {
  if (position !== undefined && position.synced > 0) return true;
  return listSegments(files, directory).some(({ path }) => files.read(path).length > 0);
}
