/** Reads a journal that may be damaged, without changing it: its sound records, its damage, and calls without an end. */
import { join } from 'node:path';
import { type Money, money } from '../../common/domain/money.ts';
import { decodeLine, type EndRecord, type JournalRecord, type Line } from '../model/records.ts';
import { readPosition } from './position.ts';
import { type Files, listSegments } from './segments.ts';

/** Bytes that are no whole line. */
interface Damage {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

/** A call of which the sound lines have no end. */
export interface OpenCall {
  readonly id: string;
  readonly account: string;
  readonly model: string;
  readonly held: Money;
  readonly at: number;
  /** Something was sent to a vendor. */
  readonly sent: boolean;
}

export interface Inspection {
  /** Undefined: its file is missing or empty. */
  readonly name: string | undefined;
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly records: number }[];
  readonly damage: readonly Damage[];
  /** Records between sound ones that no line has. */
  readonly missing: readonly { readonly first: number; readonly last: number }[];
  /** What the position file says of it; a sentence where that is damaged or claims more than there is. */
  readonly positionFault: string | undefined;
  readonly ends: readonly EndRecord[];
  readonly open: readonly OpenCall[];
  /** A start can read it. */
  readonly isWhole: boolean;
}

export function inspectJournal(files: Files, directory: string): Inspection {
  const walk = new Walk();
  const read = listSegments(files, directory).map(({ path, first }) => {
    const data = files.read(path);
    const records = walk.read(path, data, first);
    return { path, bytes: data.length, records };
  });
  const name = nameIn(files, directory);
  const positionFault = faultOfPosition(files, directory, walk.last);
  const { missing, ends, open } = walk;
  const lastFile = read.at(-1);
  // The end of the last file may be torn: it was not acknowledged.
  const damage = walk.damage.filter(
    ({ path, to }) => path !== lastFile?.path || to !== lastFile.bytes || positionFault !== undefined,
  );
  const isWhole = name !== undefined && positionFault === undefined && damage.length + missing.length === 0;
  return { name, files: read, damage, missing, positionFault, ends, open: [...open.values()], isWhole };
}

class Walk {
  readonly damage: Damage[] = [];
  readonly missing: { first: number; last: number }[] = [];
  readonly ends: EndRecord[] = [];
  readonly open = new Map<string, OpenCall>();
  last = 0;

  /** Returns the number of sound records. */
  read(path: string, data: Buffer, first: number): number {
    let count = 0;
    for (let from = 0, to = 0; from < data.length; from = to) {
      const feed = data.indexOf(0x0a, from);
      to = feed === -1 ? data.length : feed + 1;
      const line = feed === -1 ? undefined : soundLine(data.subarray(from, feed));
      if (line === undefined || line.first <= this.last) this.#addDamage(path, from, to);
      else count += this.#addLine(line, first);
    }
    return count;
  }

  #addLine(line: Line, firstOfFile: number): number {
    const expected = this.last === 0 ? firstOfFile : this.last + 1;
    if (line.first > expected) this.missing.push({ first: expected, last: line.first - 1 });
    this.last = line.first + line.records.length - 1;
    for (const record of line.records) this.#add(record);
    return line.records.length;
  }

  #addDamage(path: string, from: number, to: number): void {
    const before = this.damage.at(-1);
    if (before?.path === path && before.to === from) this.damage[this.damage.length - 1] = { ...before, to };
    else this.damage.push({ path, from, to });
  }

  #add(record: JournalRecord): void {
    if (record.kind === 'HOLD') {
      const { id, account, model, amount, at, sent } = record;
      this.open.set(id, { id, account, model, held: money(BigInt(amount)), at, sent: sent !== undefined });
    } else if (record.kind === 'SETTLE' || record.kind === 'VOID') {
      this.open.delete(record.id);
      this.ends.push(record);
    } else {
      const call = this.open.get(record.id);
      if (call === undefined) return;
      if (record.kind === 'SENT') this.open.set(record.id, { ...call, sent: true });
      if (record.kind === 'EXTEND')
        this.open.set(record.id, { ...call, held: money(call.held + BigInt(record.amount)) });
    }
  }
}

function soundLine(line: Buffer): Line | undefined {
  try {
    return decodeLine(line);
  } catch {
    return undefined;
  }
}

function nameIn(files: Files, directory: string): string | undefined {
  if (!files.list(directory).includes('name')) return undefined;
  const text = files.read(join(directory, 'name')).toString('utf8');
  return text.endsWith('\n') ? text.trim() : undefined;
}

function faultOfPosition(files: Files, directory: string, last: number): string | undefined {
  try {
    const position = readPosition(files, directory);
    if (position === undefined) return last === 0 ? undefined : `${join(directory, 'position')} is missing`;
    if (last >= position.synced || position.kept > position.synced) return undefined;
    return `records ${last + 1} to ${position.synced} are missing at its end`;
  } catch (error) {
    return (error as Error).message.replace(/: restore.*$/, '');
  }
}
