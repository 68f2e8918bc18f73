/** Who goes on with a journal: its name, its epoch, and what the database knows of both. */
import { join } from 'node:path';
import type { Random } from '../../core/contract.ts';
import { type Position, PositionKeeper, positionPath } from './position.ts';
import { type Files, listSegments } from './segments.ts';
import type { Store } from './store.ts';

export interface Claim {
  /** The journal's own name, under which the database keeps its cursor. */
  readonly name: string;
  /** How far the database has applied it. */
  readonly applied: number;
  /** Notes the epoch that has begun. */
  readonly keeper: PositionKeeper;
  /** The last epoch that the database has seen before; 0 when it has seen none. */
  readonly seen: number;
}

export interface ClaimOptions {
  readonly files: Files;
  readonly directory: string;
  readonly position: Position | undefined;
  readonly random: Random;
  /** Names this process: whoever had the journal before can no longer apply anything. */
  readonly owner: string;
}

/**
 * Takes the journal in `directory` over for `owner`. Throws a sentence when directory and database do not belong
 * together: the journal is an older copy than the database knows, or the database has never seen a journal that has
 * records, or a file is missing that tells.
 */
export async function claimJournal(store: Store, options: ClaimOptions): Promise<Claim> {
  const { files, directory, position, owner } = options;
  const name = await journalName(options);
  const known = await store.cursorOf(name);
  const seen = known?.epoch ?? 0;
  if (known === undefined) refuseUnknown(options, name);
  refuseOlder(options, seen);
  const applied = known?.applied ?? 0;
  const epoch = Math.max(position?.epoch ?? 0, seen) + 1;
  // The file first: a run that ends in between leaves it ahead of the database, and that is no older copy.
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

/** The database has no cursor of this journal: right for a new one alone. */
function refuseUnknown({ files, directory, position }: ClaimOptions, name: string): void {
  if (!hasRecords(files, directory, position)) return;
  throw new Error(
    `${directory} holds records of journal ${name}, which this database does not know: the database is another one, ` +
      'an older copy or new; restore it, or move the journal away and run audit',
  );
}

/** The database has seen a run of this journal that the directory knows nothing of. */
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

/** Of a journal that is new, or from before there were positions. */
function firstPosition({ files, directory }: ClaimOptions, applied: number): Omit<Position, 'epoch'> {
  const kept = listSegments(files, directory)[0]?.first ?? applied + 1;
  return { kept, synced: kept - 1 };
}

/** Made once, kept beside the segments. */
async function journalName({ files, directory, position, random }: ClaimOptions): Promise<string> {
  const path = join(directory, 'name');
  if (files.list(directory).includes('name')) {
    const known = files.read(path);
    if (known.toString('utf8').endsWith('\n')) {
      // A start that ended before its first epoch began may have written the name and not made it safe.
      if (position === undefined) await keepName(files, files.open(path), (name) => files.rewrite(name, known, 0));
      return known.toString('utf8').trim();
    }
    // A disk that was full, or a power cut, at the first start left it empty or torn.
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

/** The database must not come to know a name that a power cut can take back. */
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
