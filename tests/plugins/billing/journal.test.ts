/** The journal's file: order, one line a turn, segments, full disks, torn ends, damage, the lock. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import { Journal } from '../../../plugins/billing/journal/journal.ts';
import { takeLock } from '../../../plugins/billing/journal/lock.ts';
import { type Files, nodeFiles, scanSegment } from '../../../plugins/billing/journal/segments.ts';
import { recordText } from '../../../plugins/billing/model/record-texts.ts';
import {
  decodeLine,
  decodePrice,
  decodeRatio,
  encodePrice,
  encodeRatio,
  type JournalRecord,
} from '../../../plugins/billing/model/records.ts';
import { replay } from '../../../plugins/billing/reservations/recovery.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { diskFull, type Faults, failingFiles, lineOf, temporaryDirectory } from './world.ts';

const progress = (output: number): JournalRecord => ({ kind: 'PROGRESS', id: 'r', output });

function newJournal(options: { segmentBytes?: number; limitBytes?: number; files?: Files } = {}) {
  const host = fakeHost();
  const directory = temporaryDirectory();
  const { segmentBytes = 1_000_000, limitBytes = 1_000_000, files = nodeFiles } = options;
  const written: { slab: Buffer; from: number; to: number; last: number }[] = [];
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
    onWritten: (slab, from, to, last) => written.push({ slab, from, to, last }),
  });
  return { journal, directory, host, written };
}

function read(directory: string): JournalRecord[] {
  const files = readdirSync(directory).sort();
  return files.flatMap((name) => {
    const scan = scanSegment(readFileSync(join(directory, name)), Number(name.slice(0, 16)));
    assert.equal(scan.damagedAt, undefined);
    return scan.lines.flatMap(({ records }) => records);
  });
}

test('all records of one turn are one line of one write, and all waiters share a promise', async () => {
  let writes = 0;
  const files = { ...nodeFiles, write: (fd: number, data: Uint8Array) => ++writes && nodeFiles.write(fd, data) };
  const { journal, directory, written } = newJournal({ files });
  for (let output = 0; output < 100; output += 1) journal.append(recordText(progress(output)));
  assert.equal(journal.writtenSequence, 0);
  const turn = journal.turn();
  assert.equal(journal.turn(), turn);
  await turn.promise;
  assert.equal(writes, 1);
  assert.equal(journal.writtenSequence, 100);
  assert.equal(read(directory).length, 100);
  assert.equal(written.length, 1);
  await journal.close();
});

test('a record may be extended until its turn ends', async () => {
  const { journal, directory } = newJournal();
  const first = journal.append(recordText(progress(1)));
  const second = journal.append(recordText(progress(2)));
  assert.ok(journal.extend(first, ',"served":1'));
  await journal.turn().promise;
  assert.equal(journal.extend(second, ',"served":2'), false);
  assert.deepEqual(read(directory), [{ ...progress(1), served: 1 }, progress(2)]);
  await journal.close();
});

test('the text of each write is in a slab too, byte for byte, until the slab is returned', async () => {
  const { journal, directory, written } = newJournal();
  for (const size of [10, 300_000, 200_000, 100_000, 10]) {
    journal.append(recordText({ kind: 'PROGRESS', id: 'x'.repeat(size), output: size }));
    await journal.turn().promise;
  }
  const text = () => Buffer.concat(written.map(({ slab, from, to }) => slab.subarray(from, to))).toString();
  const file = join(directory, readdirSync(directory)[0]!);
  assert.equal(text(), readFileSync(file, 'utf8'));
  assert.deepEqual(
    written.map(({ last }) => last),
    [1, 2, 3, 4, 5],
  );
  const current = written.at(-1)!.slab;
  journal.reclaim(current);
  written.length = 0;
  journal.append(recordText(progress(6)));
  await journal.turn().promise;
  assert.deepEqual([written[0]!.slab === current, written[0]!.from], [true, 0]);
  assert.ok(readFileSync(file, 'utf8').endsWith(text()));
  await journal.close();
});

test('a full segment is followed by a new one, and applied ones are deleted once they are old', async () => {
  const { journal, directory, host } = newJournal({ segmentBytes: 200 });
  for (let output = 0; output < 20; output += 1) {
    journal.append(recordText(progress(output)));
    await journal.turn().promise;
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

test('segments are deleted early when space is short', async () => {
  const { journal, directory } = newJournal({ segmentBytes: 200, limitBytes: 800 });
  while (journal.accepting()) {
    journal.append(recordText(progress(1)));
    await journal.turn().promise;
  }
  journal.release(journal.writtenSequence, Number.POSITIVE_INFINITY);
  assert.equal(journal.accepting(), true);
  assert.ok(readdirSync(directory).length <= 2);
  await journal.close();
});

test('a full disk refuses, keeps every record for later, and leaves no torn line', async () => {
  const faults: Faults = { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  const { journal, directory, host } = newJournal({ files: failingFiles(faults) });
  journal.append(recordText(progress(1)));
  await journal.turn().promise;
  faults.disk = diskFull();
  faults.diskBytes = 25;
  journal.append(recordText(progress(2)));
  await assert.rejects(journal.turn().promise, (error) => error instanceof GatewayError && error.status === 503);
  assert.equal(journal.accepting(), false);
  journal.append(recordText(progress(3)));
  assert.throws(() => journal.turn(), GatewayError);
  await journal.tick();
  assert.equal(journal.accepting(), false);
  faults.disk = undefined;
  await journal.tick();
  await journal.turn().promise;
  assert.equal(journal.accepting(), true);
  assert.deepEqual(read(directory), [progress(1), progress(2), progress(3)]);
  // One line each for write and sync at both ends, not one for each try.
  assert.deepEqual(
    host.lines.map(({ level }) => level),
    ['error', 'error', 'info', 'info'],
  );
  await journal.close();
});

test('a disk that cannot sync stops admission until it can', async () => {
  const faults: Faults = { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  const { journal } = newJournal({ files: failingFiles(faults) });
  journal.append(recordText(progress(1)));
  await journal.turn().promise;
  faults.disk = diskFull();
  await journal.tick();
  assert.equal(journal.accepting(), false);
  faults.disk = undefined;
  await journal.tick();
  assert.equal(journal.accepting(), true);
  await journal.close();
});

test('appended records are reported safe once written and synced, and never on a full disk', async () => {
  const faults: Faults = { down: false, afterCommit: false, refusals: 0, disk: undefined, diskBytes: 0 };
  const files = failingFiles(faults);
  let synced = 0;
  const sync = async (descriptor: number) => {
    await files.sync(descriptor);
    synced = read(directory).length;
  };
  const { journal, directory } = newJournal({ files: { ...files, sync } });
  await journal.secureAll();
  journal.append(recordText(progress(1)));
  await journal.secureAll();
  assert.equal(synced, 1);
  faults.disk = diskFull();
  journal.append(recordText(progress(2)));
  await assert.rejects(journal.secureAll());
  await assert.rejects(journal.secureAll());
  assert.equal(synced, 1);
  faults.disk = undefined;
  await journal.tick();
  await journal.secureAll();
  assert.equal(synced, 2);
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
    journal.append(recordText(progress(output)));
    await journal.turn().promise;
    ticks.push(journal.tick());
  }
  await Promise.all(ticks);
  assert.equal(most, 1);
  await journal.close();
});

test('a line keeps any text, and a changed byte is always detected', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 4 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (n, texts, at, by) => {
        const records = texts.map((text) => ({ kind: 'PROGRESS', id: text, output: 1 }) as const);
        const line = lineOf(n, ...records);
        assert.equal(line.indexOf(0x0a), line.length - 1);
        const storable = records.map((record) => ({
          ...record,
          id: record.id.toWellFormed().replaceAll('\0', '\ufffd'),
        }));
        assert.deepEqual(decodeLine(line.subarray(0, -1)), { first: n, records: storable });
        const changed = Buffer.from(line.subarray(0, -1));
        changed[at % changed.length]! ^= by;
        assert.equal(decodeLine(changed), undefined);
      },
    ),
  );
});

test('characters that no database text can hold are removed from a line, and similar ones stay', () => {
  const ids = ['a\0b', 'half \ud83d', 'plain \\u0000', 'whole \u{1f600}', 'feed \n\t'];
  const records = ids.map((id) => ({ kind: 'PROGRESS', id, output: 1 }) as const);
  const read = decodeLine(lineOf(1, ...records).subarray(0, -1))!.records.map(({ id }) => id);
  assert.deepEqual(read, ['a\ufffdb', 'half \ufffd', ...ids.slice(2)]);
});

test('prices and ratios are exact after the journal', () => {
  const price = { input: 2_500_000_000n, cache_read: 0n, output: 123_456_789_012_345_678n, image: 7n };
  assert.deepEqual(decodePrice(encodePrice(price)), price);
  assert.deepEqual(decodePrice(encodePrice({})), {});
  const ratio = { numerator: 16n, denominator: 10n };
  assert.deepEqual(decodeRatio(encodeRatio(ratio)), ratio);
});

test('damage in the middle refuses the start with file and offset; a torn end is cut away', () => {
  const directory = temporaryDirectory();
  const path = join(directory, '0000000000000001.journal');
  const lines = [lineOf(1, progress(1), progress(2)), lineOf(3, progress(3)), lineOf(4, progress(4), progress(5))];
  const whole = Buffer.concat(lines);
  // A changed byte inside the line, and a line feed that is none any more, so that two lines look like one.
  for (const [at, offset] of [
    [lines[0]!.length + 20, lines[0]!.length],
    [lines[0]!.length - 1, 0],
  ] as const) {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 1;
    writeFileSync(path, damaged);
    assert.throws(() => replay(nodeFiles, directory, 0), new RegExp(`0001.journal is damaged at byte ${offset}:`));
  }
  writeFileSync(path, whole.subarray(0, -5));
  assert.equal(replay(nodeFiles, directory, 0).next, 4);
  assert.deepEqual(readFileSync(path), Buffer.concat(lines.slice(0, 2)));
});

test('a missing or repeated record refuses the start, unless the database has the missing ones', () => {
  const directory = temporaryDirectory();
  const segment = (first: number, sequences: number[]) =>
    writeFileSync(
      join(directory, `${String(first).padStart(16, '0')}.journal`),
      Buffer.concat(sequences.map((sequence) => lineOf(sequence, progress(sequence)))),
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

test('an empty segment is accepted', () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, '0000000000000001.journal'), lineOf(1, progress(1)));
  writeFileSync(join(directory, '0000000000000002.journal'), 'torn');
  const { next, segments } = replay(nodeFiles, directory, 0);
  assert.deepEqual([next, segments.length], [2, 1]);
  assert.deepEqual(readdirSync(directory), ['0000000000000001.journal']);
});

test('only one process holds the lock until it is released', () => {
  const path = join(temporaryDirectory(), 'lock');
  const lock = takeLock(path);
  assert.throws(() => takeLock(path), /lock is held by another process: only one process may write this journal/);
  lock.release();
  takeLock(path).release();
});

test('the lock of a killed process is free', async () => {
  const path = join(temporaryDirectory(), 'lock');
  const source = `
    import { takeLock } from ${JSON.stringify(new URL('../../../plugins/billing/journal/lock.ts', import.meta.url).href)};
    globalThis.lock = takeLock(${JSON.stringify(path)}); // What nothing refers to may be collected, and is free then.
    process.stdout.write('taken');
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source]);
  await once(child.stdout, 'data');
  assert.throws(() => takeLock(path), /only one process/);
  child.kill('SIGKILL');
  await once(child, 'exit');
  takeLock(path).release();
});
