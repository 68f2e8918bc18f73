/** Journals: from damaged bytes only records that were written are read, in order, up to the damage. */
import assert from 'node:assert/strict';
import { type Files, scanSegment, segmentPath } from '../../../plugins/billing/journal/segments.ts';
import { encodeRecords, type JournalRecord, lineBytes, putLine } from '../../../plugins/billing/model/records.ts';
import { replay } from '../../../plugins/billing/reservations/recovery.ts';
import { Chance } from '../../simulation/chance.ts';
import type { Target } from '../target.ts';

const directory = '/journal';

/** The line of each first record: in every valid segment the same records stand at the same place. */
const written = new Map<number, string>();

function recordsAt(sequence: number): JournalRecord[] {
  const chance = new Chance(sequence, 77);
  const id = `request-${sequence % 5}`;
  const account = `account-${chance.below(3)}`;
  const records: JournalRecord[] = [
    {
      ...{ kind: 'HOLD', id, at: 1_700_000_000_000 + sequence, account, key: 'k', model: 'm é "\\', version: 'v1' },
      ...{ input: chance.below(1_000), output: chance.below(1_000), amount: '2000000', ratio: '1/1' },
      price: { input: '1000000000', output: '2000000000' },
    },
    {
      ...{ kind: 'SENT', id, number: 1, at: 1_700_000_000_001, provider: 'p', model: 'm' },
      credential: 'p#1',
      protocol: 'chat',
    },
    { kind: 'PROGRESS', id, output: chance.below(500) },
    { ...{ kind: 'EXTEND', id, at: 1_700_000_000_002, account, part: 1 }, output: 900, amount: '5000' },
  ];
  return records.slice(0, 1 + chance.below(4));
}

/** Lines from the first record on; `lines` of them, in one run or two. */
function segmentOf(lines: number, epoch: number): Buffer {
  const parts: Buffer[] = [];
  for (let sequence = 1, count = 0; count < lines; count++) {
    const records = recordsAt(sequence);
    const json = encodeRecords(records);
    written.set(sequence, json);
    const line = Buffer.alloc(lineBytes(json));
    parts.push(
      line.subarray(0, putLine(line, 0, sequence, json, epoch === 0 ? 0 : epoch + (count > lines / 2 ? 1 : 0))),
    );
    sequence += records.length;
  }
  return Buffer.concat(parts);
}

export const journal: Target = {
  name: 'journal',
  corpus: [segmentOf(1, 0), segmentOf(4, 0), segmentOf(12, 3), segmentOf(30, 9)],
  dictionary: ['\n', '\n\n', ' ', '00000000 ', '1 ', '[]', '[{"kind":"HOLD"}]', '{"kind":"VOID"}', '\u0000'.repeat(64)],
  check(bytes, chance) {
    const { lines, goodBytes, damagedAt } = scanSegment(bytes, 1);
    let next = 1;
    let at = 0;
    for (const { first, last, from, to, records } of lines) {
      assert.deepEqual([first, from, last], [next, at, first + records.length - 1]);
      assert.equal(JSON.stringify(records), written.get(first), 'a record that was never written');
      assert.equal(bytes[to - 1], 0x0a);
      next = last + 1;
      at = to;
    }
    assert.equal(goodBytes, at);
    assert.ok(damagedAt === undefined || damagedAt === goodBytes);
    const again = scanSegment(bytes.subarray(0, goodBytes), 1);
    assert.deepEqual([again.lines.length, again.goodBytes, again.damagedAt], [lines.length, goodBytes, undefined]);
    checkReplay(bytes, chance, next - 1);
  },
};

/** The whole reading at a start: a sentence that names the file, or the records up to the damage. */
function checkReplay(bytes: Buffer, chance: Chance, lastGood: number): void {
  const synced = chance.below(lastGood + 3);
  const position = chance.oneIn(2) ? { epoch: 20, kept: 1, synced } : undefined;
  const applied = chance.below(synced + 1);
  const path = segmentPath(directory, 1);
  let found: ReturnType<typeof replay>;
  try {
    found = replay(memoryFiles(path, bytes), directory, applied, position);
  } catch (error) {
    if (error instanceof Error && error.constructor === Error && error.message.includes(directory)) return;
    throw error;
  }
  const last = found.segments.at(-1)?.last ?? 0;
  assert.ok(last === lastGood || last === 0, `${last} of ${lastGood} records were read`);
  assert.ok(
    position === undefined || last >= Math.min(synced, position.synced),
    'safe records are missing without a word',
  );
  assert.ok(found.next > last && found.next > applied);
  let sequence = applied;
  for (const { last: reached } of found.stretches) {
    assert.ok(reached > sequence && reached <= last, 'stretches out of order');
    sequence = reached;
  }
}

/** One file; what is cut or removed is gone. */
function memoryFiles(path: string, bytes: Buffer): Files {
  const files = new Map([[path, bytes]]);
  return {
    list: () => [...files.keys()].map((name) => name.slice(directory.length + 1)),
    read: (name) => files.get(name)!,
    truncate: (name, length) => void files.set(String(name), files.get(String(name))!.subarray(0, length)),
    remove: (name) => void files.delete(name),
  } as Partial<Files> as Files;
}
