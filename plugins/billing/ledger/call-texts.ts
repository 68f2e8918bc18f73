/**
 * The ends of calls, and the facts of requests, cut out of journal lines `CRC FIRST EPOCH [RECORD, …]`: to parse the holds too
 * would take half as long again. Pure.
 */
import type { CallFacts } from '../../common/domain/call-facts.ts';
import type { EndRecord, JournalRecord } from '../model/records.ts';

/** In the order of the lines. */
interface CallRecords {
  readonly ends: EndRecord[];
  readonly facts: CallFacts[];
}

/** In JSON a quote within a text is escaped, so this is a member of a record. */
const kindMember = '"kind":"';

export function callRecordsIn(lines: string): CallRecords {
  const found: CallRecords = { ends: [], facts: [] };
  for (let from = 0; from < lines.length; ) {
    let to = lines.indexOf('\n', from);
    if (to === -1) to = lines.length;
    const texts = cutLine(lines, from, to);
    if (texts === undefined) parseLine(lines.slice(from, to), found);
    else for (const text of texts) take(JSON.parse(text) as JournalRecord, found);
    from = to + 1;
  }
  return found;
}

/** The records of one line as texts; undefined: one does not begin with its kind. */
function cutLine(lines: string, from: number, to: number): string[] | undefined {
  const texts: string[] = [];
  for (let at = lines.indexOf(kindMember, from); at !== -1 && at < to; ) {
    const before = lines.charCodeAt(at - 2);
    if (lines[at - 1] !== '{' || (before !== comma && before !== bracket)) return undefined;
    const next = lines.indexOf(kindMember, at + kindMember.length);
    // A comma follows, or the bracket that ends the line.
    const end = next === -1 || next > to ? lines.lastIndexOf(']', to) : next - 2;
    const kind = at + kindMember.length;
    if (kinds.some((name) => lines.startsWith(name, kind))) texts.push(lines.slice(at - 1, end));
    at = next;
  }
  return texts;
}

const kinds = ['SETTLE', 'VOID', 'FACTS'];
const comma = 0x2c;
const bracket = 0x5b;

function parseLine(line: string, found: CallRecords): void {
  for (const record of JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]) take(record, found);
}

function take(record: JournalRecord, { ends, facts }: CallRecords): void {
  if (record.kind === 'SETTLE' || record.kind === 'VOID') ends.push(record);
  else if (record.kind === 'FACTS') facts.push(record);
}
