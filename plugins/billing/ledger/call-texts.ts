/**
 * The ends of calls, and the facts of requests, cut out of journal lines `CRC FIRST EPOCH [RECORD, …]`: the database would parse the
 * holds too, and look for the columns of both in each record. Pure.
 */
import type { JournalRecord } from '../model/records.ts';

/** Texts of JSON arrays. */
export interface CallTexts {
  readonly ends: string;
  readonly facts: string;
}

/** An array of no records. */
export const noRecords = '[]';

/** In JSON a quote within a text is escaped, so this is a member of a record. */
const kindMember = '"kind":"';

interface Found {
  readonly ends: string[];
  readonly facts: string[];
}

export function callTextsIn(lines: string): CallTexts {
  const found: Found = { ends: [], facts: [] };
  for (let from = 0; from < lines.length; ) {
    let to = lines.indexOf('\n', from);
    if (to === -1) to = lines.length;
    if (!cutLine(lines, from, to, found)) parseLine(lines.slice(from, to), found);
    from = to + 1;
  }
  return { ends: listOf(found.ends), facts: listOf(found.facts) };
}

/** Joined with its brackets: brackets around a joined text would make V8 copy it once more for the driver's thread. */
function listOf(records: string[]): string {
  if (records.length === 0) return noRecords;
  records[0] = `[${records[0]}`;
  records.push(`${records.pop()}]`);
  return records.join(',');
}

/** False, with nothing found: a record does not begin with its kind. */
function cutLine(lines: string, from: number, to: number, { ends, facts }: Found): boolean {
  const counts = [ends.length, facts.length] as const;
  for (let at = lines.indexOf(kindMember, from); at !== -1 && at < to; ) {
    const before = lines.charCodeAt(at - 2);
    if (lines[at - 1] !== '{' || (before !== comma && before !== bracket)) {
      ends.length = counts[0];
      facts.length = counts[1];
      return false;
    }
    const next = lines.indexOf(kindMember, at + kindMember.length);
    // A comma follows, or the bracket that ends the line.
    const end = next === -1 || next > to ? lines.lastIndexOf(']', to) : next - 2;
    const kind = at + kindMember.length;
    if (lines.startsWith('SETTLE', kind) || lines.startsWith('VOID', kind)) ends.push(lines.slice(at - 1, end));
    else if (lines.startsWith('FACTS', kind)) facts.push(lines.slice(at - 1, end));
    at = next;
  }
  return true;
}

const comma = 0x2c;
const bracket = 0x5b;

function parseLine(line: string, { ends, facts }: Found): void {
  for (const record of JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]) {
    if (record.kind === 'SETTLE' || record.kind === 'VOID') ends.push(JSON.stringify(record));
    else if (record.kind === 'FACTS') facts.push(JSON.stringify(record));
  }
}
