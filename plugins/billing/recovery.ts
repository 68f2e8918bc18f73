/** Reads the journal back at the start: what the database has not got yet, and which requests a crash cut off. */
import type { Entry, Hold } from './hold.ts';
import { endEntry, extendEntry, holdEntry, holdOf } from './hold.ts';
import { unfinishedAttempt, type Verdict } from './outcome.ts';
import type { AttemptNote, Numbered } from './records.ts';
import { type Files, listSegments, type Segment, scanSegment } from './segments.ts';

export interface Replay {
  readonly segments: Segment[];
  /** Sequence number of the next record. */
  readonly next: number;
  /** Entries beyond the cursor, in order. */
  readonly entries: Entry[];
  /** Holds without an end, oldest first. */
  readonly open: Hold[];
}

/**
 * Reads every segment. `applied` is the database's cursor: entries up to it are there already.
 * A record that broke off at the very end is cut away; damage anywhere else throws a sentence that names file and offset.
 */
export function replay(files: Files, directory: string, applied: number): Replay {
  const open = new Map<string, Hold>();
  const entries: Entry[] = [];
  let next = 1;
  const found = listSegments(files, directory);
  const segments: Segment[] = [];
  for (const segment of found) {
    checkOrder(segment, segments.at(-1), applied);
    const records = readSegment(files, segment, segment === found.at(-1));
    if (records.length === 0) {
      files.remove(segment.path);
      continue;
    }
    for (const numbered of records) {
      const entry = replayRecord(open, numbered, applied, segment.path);
      if (entry !== undefined && numbered.sequence > applied) entries.push(entry);
    }
    segments.push(segment);
    next = segment.last + 1;
  }
  return { segments, next: Math.max(next, applied + 1), entries, open: [...open.values()] };
}

/** Records may be missing between two segments only if the database has them. */
function checkOrder(segment: Segment, previous: Segment | undefined, applied: number): void {
  const missing = Math.max(previous?.last ?? 0, applied) + 1;
  if (segment.first > missing || (previous !== undefined && segment.first <= previous.last)) {
    throw new Error(
      `${segment.path} does not follow record ${missing - 1}, the last one known: restore the missing file or the ` +
        'database, or move the journal away and run audit',
    );
  }
}

function readSegment(files: Files, segment: Segment, isLast: boolean): Numbered[] {
  const data = files.read(segment.path);
  const { records, goodBytes, damagedAt } = scanSegment(data, segment.first);
  const brokenAt = damagedAt ?? (isLast || goodBytes === data.length ? undefined : goodBytes);
  if (brokenAt !== undefined) {
    throw new Error(`${segment.path} is damaged at byte ${brokenAt}: restore the file, or move it away and run audit`);
  }
  if (goodBytes < data.length) files.truncate(segment.path, goodBytes);
  segment.bytes = goodBytes;
  segment.last = segment.first + records.length - 1;
  return records;
}

/** The ledger entry that a record stands for; undefined for notes, and for what belongs to holds that were done with long ago. */
function replayRecord(open: Map<string, Hold>, numbered: Numbered, applied: number, path: string): Entry | undefined {
  const { sequence, record } = numbered;
  if (record.kind === 'HOLD') {
    const hold = holdOf(record, sequence);
    open.set(record.id, hold);
    return holdEntry(hold);
  }
  const hold = open.get(record.id);
  if (hold === undefined) {
    if (sequence <= applied || record.kind === 'SENT' || record.kind === 'PROGRESS') return undefined;
    throw new Error(`${path}: record ${sequence} ends request ${record.id}, whose hold is missing`);
  }
  switch (record.kind) {
    case 'SENT':
      hold.sent.push(record);
      return undefined;
    case 'PROGRESS':
      hold.seenOutput = Math.max(hold.seenOutput, record.output);
      return undefined;
    case 'EXTEND':
      return extendEntry(hold, record, sequence);
    default:
      open.delete(record.id);
      return endEntry(hold, record, sequence);
  }
}

/** What a request costs that a crash cut off: nothing if it was never sent, else its prompt and the output noted last. */
export function judgeInterrupted(hold: Hold): { verdict: Verdict; attempts: AttemptNote[] } {
  const attempts = hold.sent.map(unfinishedAttempt);
  if (attempts.length === 0) return { verdict: { kind: 'VOID', reason: 'not_sent' }, attempts };
  const usage = { input: hold.terms.inputTokens, output: hold.seenOutput };
  return { verdict: { kind: 'SETTLE', reason: 'crash', usage, estimated: true, terminal: false }, attempts };
}
