/** Reads the journal back at the start: what the database has not got yet, and which requests a crash cut off. */
import { money, zero } from '../../core/money.ts';
import type { Shares } from './absorbed.ts';
import { batchBytes, type Stretch } from './backlog.ts';
import { type Hold, holdOf } from './hold.ts';
import { unfinishedAttempt, type Verdict } from './outcome.ts';
import type { JournalRecord } from './records.ts';
import { type Files, listSegments, type PlacedLine, type Segment, scanSegment } from './segments.ts';

export interface Replay {
  readonly segments: Segment[];
  /** Sequence number of the next record. */
  readonly next: number;
  /** The journal beyond the cursor, in order. */
  readonly stretches: Stretch[];
  /** Holds without an end, oldest first. */
  readonly open: Hold[];
}

/**
 * Reads every segment. `applied` is the database's cursor: what it says up to there is in the database already.
 * A line that broke off at the very end is cut away; damage anywhere else throws a sentence that names file and offset.
 */
export function replay(files: Files, directory: string, applied: number): Replay {
  const open = new Map<string, Hold>();
  const stretches: Stretch[] = [];
  let next = 1;
  const found = listSegments(files, directory);
  const segments: Segment[] = [];
  for (const segment of found) {
    checkOrder(segment, segments.at(-1), applied);
    const { data, lines } = readSegment(files, segment, segment === found.at(-1));
    if (lines.length === 0) {
      files.remove(segment.path);
      continue;
    }
    for (const line of lines) replayLine(open, line, applied, segment.path);
    const beyond = lines.filter(({ last }) => last > applied);
    stretches.push(...stretchesOf(data, beyond));
    segments.push(segment);
    next = segment.last + 1;
  }
  return { segments, next: Math.max(next, applied + 1), stretches, open: [...open.values()] };
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

function readSegment(files: Files, segment: Segment, isLast: boolean): { data: Buffer; lines: PlacedLine[] } {
  const data = files.read(segment.path);
  const { lines, goodBytes, damagedAt } = scanSegment(data, segment.first);
  const brokenAt = damagedAt ?? (isLast || goodBytes === data.length ? undefined : goodBytes);
  if (brokenAt !== undefined) {
    throw new Error(`${segment.path} is damaged at byte ${brokenAt}: restore the file, or move it away and run audit`);
  }
  if (goodBytes < data.length) files.truncate(segment.path, goodBytes);
  segment.bytes = goodBytes;
  segment.last = lines.at(-1)?.last ?? segment.first - 1;
  return { data, lines };
}

/** The lines as stretches of about a batch each. */
function stretchesOf(slab: Buffer, lines: readonly PlacedLine[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (let begin = 0, end = 1; begin < lines.length; begin = end, end += 1) {
    const { from } = lines[begin]!;
    while (end < lines.length && lines[end]!.to - from <= batchBytes) end += 1;
    const { to, last } = lines[end - 1]!;
    const posting = lines.slice(begin, end).flatMap(({ records }) => records.filter(makesRow));
    const accountIds = [...new Set(posting.map(({ account }) => account))];
    stretches.push({ slab, from, to, last, rows: posting.length, accountIds });
  }
  return stretches;
}

function makesRow(record: JournalRecord): record is Extract<JournalRecord, { account: string }> {
  return 'account' in record;
}

function replayLine(open: Map<string, Hold>, { first, records }: PlacedLine, applied: number, path: string): void {
  records.forEach((record, index) => {
    const sequence = first + index;
    if (record.kind === 'HOLD') {
      open.set(record.id, holdOf(record, sequence));
      return;
    }
    const hold = open.get(record.id);
    if (hold !== undefined) replayRecord(open, hold, record);
    else if (sequence > applied && record.kind !== 'SENT' && record.kind !== 'PROGRESS') {
      throw new Error(`${path}: record ${sequence} ends request ${record.id}, whose hold is missing`);
    }
  });
}

/** What a record behind the hold's own says of it. */
function replayRecord(open: Map<string, Hold>, hold: Hold, record: Exclude<JournalRecord, { kind: 'HOLD' }>): void {
  switch (record.kind) {
    case 'SENT':
      hold.sent.push(record);
      return;
    case 'PROGRESS':
      hold.seenOutput = Math.max(hold.seenOutput, record.output);
      return;
    case 'EXTEND':
      hold.held = money(hold.held + BigInt(record.amount));
      hold.extensions = record.part;
      hold.coveredOutput = record.output;
      return;
    default:
      open.delete(record.id);
  }
}

/**
 * What a request costs that a crash cut off: nothing if it was never sent, else its prompt and the output noted last. Its
 * client bears the last attempt; what became of those before it nobody can tell any more.
 */
export function judgeInterrupted(hold: Hold): { verdict: Verdict; shares: Shares } {
  const notes = hold.sent.map(unfinishedAttempt);
  const last = notes.pop();
  if (last === undefined) return { verdict: { kind: 'VOID', reason: 'not_sent' }, shares: { notes, absorbed: zero } };
  const usage = { input: hold.terms.inputTokens, output: hold.seenOutput };
  return {
    verdict: { kind: 'SETTLE', reason: 'crash', usage, estimated: true, terminal: false },
    shares: { notes: [...notes, { ...last, bearer: 'client' }], absorbed: zero },
  };
}
