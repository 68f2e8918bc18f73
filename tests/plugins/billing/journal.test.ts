/** The journal's file: order, one write a turn, segments, full disks, torn ends, damage, the lock. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { GatewayError } from '../../../core/errors.ts';
import { Journal } from '../../../plugins/billing/journal.ts';
import { takeLock } from '../../../plugins/billing/lock.ts';
import {
  decodeLine,
  decodePrice,
  decodeRatio,
  encodeLine,
  encodePrice,
  encodeRatio,
  type JournalRecord,
} from '../../../plugins/billing/records.ts';
import { replay } from '../../../plugins/billing/recovery.ts';
import { type Files, nodeFiles, scanSegment } from '../../../plugins/billing/segments.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { diskFull, type Faults, failingFiles, temporaryDirectory } from './world.ts';

const progress = (output: number): JournalRecord => ({ kind: 'PROGRESS', id: 'r', output });

function newJournal(options: { segmentBytes?: number; limitBytes?: number; files?: Files } = {}) {
  const host = fakeHost();
  const directory = temporaryDirectory();
  const { segmentBytes = 1_000_000, limitBytes = 1_000_000, files = nodeFiles } = options;
  const journal = new Journal({
    files,
    directory,
    next: 1,
    segments: [],
    segmentBytes,
    limitBytes,
    keepMs: 1_000,
    clock: host.clock,
    log: host.log,
  });
  return { journal, directory, host };
}

function read(directory: string): JournalRecord[] {
  const files = readdirSync(directory).sort();
  return files.flatMap((name) => {
    const scan = scanSegment(readFileSync(join(directory, name)), Number(name.slice(0, 16)));
    assert.equal(scan.damagedAt, undefined);
    return scan.records.map(({ record }) => record);
  });
}

test('all records of one turn are one write, and written() resolves after it', async () => {
  let writes = 0;
  const files = { ...nodeFiles, write: (fd: number, data: Uint8Array) => ++writes && nodeFiles.write(fd, data) };
  const { journal, directory } = newJournal({ files });
  for (let output = 0; output < 100; output += 1) journal.append(progress(output));
  assert.equal(journal.writtenSequence, 0);
  await journal.written();
  assert.equal(writes, 1);
  assert.equal(journal.writtenSequence, 100);
  assert.equal(read(directory).length, 100);
  await journal.close();
});

test('a full segment is followed by a new one, and applied ones go once they are old', async () => {
  const { journal, directory, host } = newJournal({ segmentBytes: 200 });
  for (let output = 0; output < 20; output += 1) {
    journal.append(progress(output));
    await journal.written();
  }
  const count = readdirSync(directory).length;
  assert.ok(count > 3, `${count} segments`);
  journal.release(20, Number.POSITIVE_INFINITY);
  assert.equal(readdirSync(directory).length, count);
  host.advance(1_000);
  journal.release(20, 8);
  const kept = read(directory).map((record) => (record.kind === 'PROGRESS' ? record.output : -1));
  assert.ok(kept[0]! > 0 && kept[0]! <= 7, `begins with ${kept[0]}`);
  assert.ok(readdirSync(directory).length > 1);
  host.advance(1_000);
  journal.release(20, Number.POSITIVE_INFINITY);
  assert.equal(readdirSync(directory).length, 1);
  await journal.close();
});

test('segments that are short of space are not kept for age', async () => {
  const { journal, directory } = newJournal({ segmentBytes: 200, limitBytes: 800 });
  while (journal.accepting()) {
    journal.append(progress(1));
    await journal.written();
  }
  journal.release(journal.writtenSequence, Number.POSITIVE_INFINITY);
  assert.equal(journal.accepting(), true);
  assert.ok(readdirSync(directory).length <= 2);
  await journal.close();
});

test('a full disk refuses, keeps every record for later, and leaves no torn line behind', async () => {
  const faults: Faults = { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  const { journal, directory, host } = newJournal({ files: failingFiles(faults) });
  journal.append(progress(1));
  await journal.written();
  faults.disk = diskFull();
  faults.diskBytes = 25;
  journal.append(progress(2));
  await assert.rejects(journal.written(), (error) => error instanceof GatewayError && error.status === 503);
  assert.equal(journal.accepting(), false);
  journal.append(progress(3));
  await assert.rejects(journal.written());
  await journal.tick();
  assert.equal(journal.accepting(), false);
  faults.disk = undefined;
  await journal.tick();
  await journal.written();
  assert.equal(journal.accepting(), true);
  assert.deepEqual(read(directory), [progress(1), progress(2), progress(3)]);
  // One line each for write and sync, not one for each try.
  assert.deepEqual(
    host.lines.map(({ level }) => level),
    ['error', 'error', 'info'],
  );
  await journal.close();
});

test('a disk that cannot sync stops admission until it can', async () => {
  const faults: Faults = { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  const { journal } = newJournal({ files: failingFiles(faults) });
  journal.append(progress(1));
  await journal.written();
  faults.disk = diskFull();
  await journal.tick();
  assert.equal(journal.accepting(), false);
  faults.disk = undefined;
  await journal.tick();
  assert.equal(journal.accepting(), true);
  await journal.close();
});

test('one sync runs at a time, and a written record waits for none', async () => {
  let running = 0;
  let most = 0;
  const sync = async () => {
    most = Math.max(most, ++running);
    await setImmediate();
    running -= 1;
  };
  const { journal } = newJournal({ files: { ...nodeFiles, sync } });
  const ticks: Promise<void>[] = [];
  for (let output = 0; output < 10; output += 1) {
    journal.append(progress(output));
    await journal.written();
    ticks.push(journal.tick());
  }
  await Promise.all(ticks);
  assert.equal(most, 1);
  await journal.close();
});

test('a line survives any text, and no changed byte goes unseen', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.string({ unit: 'binary' }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (n, text, at, by) => {
        const record: JournalRecord = { kind: 'VOID', id: text, at: 1, reason: text, attempts: [] };
        const line = Buffer.from(encodeLine(n, record));
        assert.equal(line.indexOf(0x0a), line.length - 1);
        assert.deepEqual(decodeLine(line.subarray(0, -1)), { sequence: n, record });
        const changed = Buffer.from(line.subarray(0, -1));
        changed[at % changed.length]! ^= by;
        assert.equal(decodeLine(changed), undefined);
      },
    ),
  );
});

test('prices and ratios survive the journal exactly', () => {
  const price = { input: 2_500_000_000n, cache_read: 0n, output: 123_456_789_012_345_678n, image: 7n };
  assert.deepEqual(decodePrice(encodePrice(price)), price);
  assert.deepEqual(decodePrice(encodePrice({})), {});
  const ratio = { numerator: 16n, denominator: 10n };
  assert.deepEqual(decodeRatio(encodeRatio(ratio)), ratio);
});

test('damage in the middle refuses the start with file and offset; a torn end is cut away', () => {
  const directory = temporaryDirectory();
  const path = join(directory, '0000000000000001.journal');
  const lines = [1, 2, 3].map((sequence) => encodeLine(sequence, progress(sequence)));
  const middle = Buffer.from(lines.join(''));
  middle[lines[0]!.length + 20]! ^= 1;
  writeFileSync(path, middle);
  assert.throws(
    () => replay(nodeFiles, directory, 0),
    new RegExp(`0001.journal is damaged at byte ${lines[0]!.length}:`),
  );
  writeFileSync(path, lines.join('').slice(0, -5));
  assert.equal(replay(nodeFiles, directory, 0).next, 3);
  assert.equal(readFileSync(path, 'utf8'), lines.slice(0, 2).join(''));
});

test('a missing or repeated record refuses the start, unless the database has what is missing', () => {
  const directory = temporaryDirectory();
  const segment = (first: number, sequences: number[]) =>
    writeFileSync(
      join(directory, `${String(first).padStart(16, '0')}.journal`),
      sequences.map((sequence) => encodeLine(sequence, progress(sequence))).join(''),
    );
  segment(1, [1, 2, 4]);
  assert.throws(() => replay(nodeFiles, directory, 0), /damaged at byte/);
  segment(1, [1, 2]);
  segment(6, [6]);
  assert.throws(() => replay(nodeFiles, directory, 3), /does not follow record 3/);
  assert.equal(replay(nodeFiles, directory, 5).next, 7);
  segment(1, [1, 2, 3, 4, 5, 6]);
  assert.throws(() => replay(nodeFiles, directory, 5), /does not follow/);
});

test('a segment in which nothing was written yet is no obstacle', () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, '0000000000000001.journal'), encodeLine(1, progress(1)));
  writeFileSync(join(directory, '0000000000000002.journal'), 'torn');
  const { next, segments } = replay(nodeFiles, directory, 0);
  assert.deepEqual([next, segments.length], [2, 1]);
  assert.deepEqual(readdirSync(directory), ['0000000000000001.journal']);
});

test('one process alone holds the lock, until it lets go', () => {
  const path = join(temporaryDirectory(), 'lock');
  const lock = takeLock(path);
  assert.throws(() => takeLock(path), /lock is held by another process: only one process may write this journal/);
  lock.release();
  takeLock(path).release();
});

test('the lock of a killed process is free', async () => {
  const path = join(temporaryDirectory(), 'lock');
  const source = `
    import { takeLock } from ${JSON.stringify(new URL('../../../plugins/billing/lock.ts', import.meta.url).href)};
    takeLock(${JSON.stringify(path)});
    process.stdout.write('taken');
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--import', 'tsx', '--eval', source]);
  await once(child.stdout, 'data');
  assert.throws(() => takeLock(path), /only one process/);
  child.kill('SIGKILL');
  await once(child, 'exit');
  takeLock(path).release();
});
