/** Reads the journal at the start: records that the database lacks, and requests that a crash interrupted. */
import { money, zero } from '../../common/domain/money.ts';
import { advice, type Position } from '../journal/position.ts';
import {
  type Files,
  listSegments,
  type PlacedLine,
  type Segment,
  scanSegment,
  segmentPath,
} from '../journal/segments.ts';
import { batchBytes, type Stretch } from '../ledger/backlog.ts';
import type { EndRecord, JournalRecord } from '../model/records.ts';
import { type Hold, holdOf, servedAgain } from './hold.ts';
import { unfinishedAttempt, type Verdict } from './outcome.ts';
import type { Shares } from './written-off.ts';

export interface Replay {
  readonly segments: Segment[];
  /** Sequence number of the next record. */
  readonly next: number;
  /** The journal beyond the cursor, in order. */
  readonly stretches: Stretch[];
  /** Holds without an end, oldest first. */
  readonly open: Hold[];
  /** Epoch of the last line; 0 when there is none. */
  readonly epoch: number;
  /** Truncated remains of records that a power cut destroyed before they were durable. */
  readonly cut: readonly string[];
}

interface Walk {
  readonly files: Files;
  readonly applied: number;
  readonly position: Position | undefined;
  readonly open: Map<string, Hold>;
  readonly segments: Segment[];
  readonly stretches: Stretch[];
  readonly cut: string[];
  epoch: number;
}

/**
 * Reads every segment. `applied` is the database's cursor: records up to it are in the database. Records up to
 * `position.synced` were durable; without a position all are assumed to be. Anything broken after the last durable
 * record is truncated. A damaged or missing durable record throws a sentence that names file and offset.
 */
export function replay(files: Files, directory: string, applied: number, position?: Position): Replay {
  const { segments, open, stretches, cut, epoch } = walk(files, directory, applied, position);
  const last = segments.at(-1)?.last ?? (position?.kept ?? 1) - 1;
  if (position !== undefined && last < position.synced && position.kept <= position.synced) {
    const path = segments.at(-1)?.path ?? segmentPath(directory, position.kept);
    throw new Error(
      `${path}: records ${last + 1} to ${position.synced} are missing, which stood in it or in a file behind it: ${advice}`,
    );
  }
  const reach = segments[0]?.first ?? position?.kept ?? 1;
  if (position !== undefined && applied + 1 < reach) {
    throw new Error(
      `${segmentPath(directory, reach)} begins at record ${reach}, but the database has them up to ${applied} alone: it is an ` +
        'older copy; restore a newer one, or move the journal away and run audit',
    );
  }
  const next = Math.max((segments.at(-1)?.last ?? 0) + 1, applied + 1, (position?.synced ?? 0) + 1);
  return { segments, next, stretches, open: [...open.values()], epoch, cut };
}

function walk(files: Files, directory: string, applied: number, position: Position | undefined): Walk {
  const found = listSegments(files, directory);
  const state: Walk = {
    files,
    applied,
    position,
    open: new Map<string, Hold>(),
    segments: [],
    stretches: [],
    cut: [],
    epoch: 0,
  };
  for (const [index, segment] of found.entries()) {
    if (readInOrder(state, segment, index === found.length - 1)) continue;
    // It was never durable, so it was not acknowledged: later records are useless without it.
    for (const useless of found.slice(index + (state.segments.at(-1) === segment ? 1 : 0))) {
      files.remove(useless.path);
      state.cut.push(useless.path);
    }
    break;
  }
  return state;
}

/** Adds one segment. False: the segment or its end was lost before it was durable, and all later ones with it. */
function readInOrder(state: Walk, segment: Segment, isLast: boolean): boolean {
  const { files, applied, open, segments, stretches } = state;
  if (!follows(state, segment)) return false;
  const { data, lines, isWhole } = readSegment(state, segment, isLast);
  if (lines.length === 0) {
    files.remove(segment.path);
    return isWhole;
  }
  for (const line of lines) {
    checkEpoch(state, line, segment.path);
    replayLine(open, line, applied, segment.path);
  }
  stretches.push(
    ...stretchesOf(
      data,
      lines.filter(({ last }) => last > applied),
    ),
  );
  segments.push(segment);
  return isWhole;
}

/** Records may be missing between two segments only if they were never acknowledged. */
function follows({ position, applied, segments }: Walk, segment: Segment): boolean {
  const previous = segments.at(-1);
  const expected = Math.max(previous?.last ?? 0, position === undefined ? applied : position.kept - 1) + 1;
  if (segment.first <= expected && (previous === undefined || segment.first > previous.last)) return true;
  if (position !== undefined && segment.first > expected && isUnsafe(position, applied, expected)) return false;
  throw new Error(`${segment.path} does not follow record ${expected - 1}, the last one known: ${advice}`);
}

/** Whether a record was neither durable nor in the database, so that a power cut may have destroyed it. */
function isUnsafe(position: Position, applied: number, sequence: number): boolean {
  return sequence > position.synced && sequence > applied;
}

interface ReadSegment {
  readonly data: Buffer;
  readonly lines: PlacedLine[];
  /** False: it was truncated before whole lines. */
  readonly isWhole: boolean;
}

function readSegment({ files, position, applied, cut }: Walk, segment: Segment, isLast: boolean): ReadSegment {
  const data = files.read(segment.path);
  const { lines, goodBytes, damagedAt } = scanSegment(data, segment.first);
  const lost = (lines.at(-1)?.last ?? segment.first - 1) + 1;
  const brokenAt = damagedAt ?? (isLast || goodBytes === data.length ? undefined : goodBytes);
  const isWhole = brokenAt === undefined;
  if (!isWhole && (position === undefined || !isUnsafe(position, applied, lost))) {
    throw new Error(`${segment.path} is damaged at byte ${brokenAt}: ${advice}`);
  }
  if (goodBytes < data.length) {
    files.truncate(segment.path, goodBytes);
    cut.push(`${segment.path} from byte ${goodBytes}`);
  }
  segment.bytes = goodBytes;
  segment.last = lost - 1;
  return { data, lines, isWhole };
}

/** A line of an earlier run behind one of a later run: two processes wrote at once. */
function checkEpoch(state: Walk, { epoch = 0, first }: PlacedLine, path: string): void {
  if (epoch < state.epoch) {
    throw new Error(
      `${path}: record ${first} was written in epoch ${epoch}, behind records of epoch ${state.epoch}: ${advice}`,
    );
  }
  state.epoch = epoch;
}

/**
 * Makes durable what an earlier run may have written without syncing. If a sync of it failed, the kernel may report
 * unwritten bytes as written, so the same bytes are written again before the sync.
 */
export async function secureSegments(files: Files, segments: readonly Segment[], synced: number): Promise<void> {
  for (const { path, last } of segments) {
    if (last <= synced) continue;
    const descriptor = files.open(path);
    try {
      files.rewrite(descriptor, files.read(path), 0);
      await files.sync(descriptor);
    } finally {
      files.close(descriptor);
    }
  }
}

/** Groups the lines into stretches of about one batch each. */
function stretchesOf(slab: Buffer, lines: readonly PlacedLine[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (let begin = 0, end = 1; begin < lines.length; begin = end, end += 1) {
    const { from } = lines[begin]!;
    while (end < lines.length && lines[end]!.to - from <= batchBytes) end += 1;
    const { to, last } = lines[end - 1]!;
    const records = lines.slice(begin, end).flatMap((line) => line.records);
    const ends = records.filter(isEnd);
    const facts = records.filter(({ kind }) => kind === 'FACTS').length;
    const accountIds = [...new Set(ends.map(({ account }) => account))];
    stretches.push({ slab, from, to, last, rows: ends.length, facts, accountIds });
  }
  return stretches;
}

/** Records that may come when their hold has ended. */
const followers: ReadonlySet<string> = new Set(['SENT', 'PROGRESS', 'FACTS'] satisfies JournalRecord['kind'][]);

function isEnd(record: JournalRecord): record is EndRecord {
  return record.kind === 'SETTLE' || record.kind === 'VOID';
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
    else if (sequence > applied && !followers.has(record.kind)) {
      throw new Error(`${path}: record ${sequence} ends request ${record.id}, whose hold is missing`);
    }
  });
}

/** Applies a record that follows the hold's own. */
function replayRecord(open: Map<string, Hold>, hold: Hold, record: Exclude<JournalRecord, { kind: 'HOLD' }>): void {
  switch (record.kind) {
    case 'SENT':
      hold.sent = hold.sent.concat(record);
      if (record.served !== undefined) servedAgain(hold, record.served);
      return;
    case 'PROGRESS':
      hold.seenOutput = Math.max(hold.seenOutput, record.output);
      return;
    case 'EXTEND':
      hold.held = money(hold.held + BigInt(record.amount));
      hold.extensions = record.part;
      hold.coveredOutput = record.output;
      return;
    case 'FACTS':
      return;
    default:
      open.delete(record.id);
  }
}

/**
 * The charge of a request that a crash interrupted: nothing if it was never sent, otherwise its prompt and the last
 * recorded output. The client bears the last attempt; the outcome of earlier attempts is unknown.
 */
export function judgeInterrupted(hold: Hold): { verdict: Verdict; shares: Shares } {
  const notes = hold.sent.map(unfinishedAttempt);
  const last = notes.pop();
  if (last === undefined) return { verdict: { kind: 'VOID', reason: 'not_sent' }, shares: { notes, writtenOff: zero } };
  const { inputTokens, allowance } = hold.terms;
  const usage = { input: inputTokens, output: hold.seenOutput, ...allowance.others };
  return {
    verdict: { kind: 'SETTLE', reason: 'crash', usage, estimated: true, terminal: false },
    shares: { notes: [...notes, { ...last, bearer: 'client' }], writtenOff: zero },
  };
}
