/** What counts as safe: syncs that failed once, positions that were cut short, and how long segments are kept for a copy. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PositionKeeper, positionPath, readPosition } from '../../../plugins/billing/journal/position.ts';
import { Retention } from '../../../plugins/billing/journal/retention.ts';
import { type Files, nodeFiles, type Segment } from '../../../plugins/billing/journal/segments.ts';
import { Syncer } from '../../../plugins/billing/journal/sync.ts';
import { Chance } from '../../simulation/chance.ts';
import { Disk } from '../../simulation/disk.ts';
import { Schedule } from '../../simulation/schedule.ts';
import { diskFull, temporaryDirectory } from './world.ts';

test('after a failed sync its bytes are written again before the next one, since the system has dropped them', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, '0000000000000001.journal');
  const rewritten: [string, number][] = [];
  let failing = false;
  const files: Files = {
    ...nodeFiles,
    sync: (descriptor) => (failing ? Promise.reject(diskFull()) : nodeFiles.sync(descriptor)),
    rewrite: (descriptor, data, from) => {
      rewritten.push([Buffer.from(data).toString(), from]);
      nodeFiles.rewrite(descriptor, data, from);
    },
  };
  const segment: Segment = { path, first: 1, last: 2, bytes: 0 };
  const descriptor = files.create(path);
  const syncer = new Syncer(files);
  syncer.begin(segment, descriptor);
  const put = (text: string) => {
    segment.bytes += files.write(descriptor, Buffer.from(text));
  };
  put('safe ');
  await syncer.sync();
  put('doubtful ');
  failing = true;
  await assert.rejects(syncer.sync(), /ENOSPC/);
  put('later');
  failing = false;
  await syncer.sync();
  assert.deepEqual(rewritten, [['doubtful later', 5]]);
  assert.equal(readFileSync(path, 'utf8'), 'safe doubtful later');
  await syncer.sync();
  assert.equal(rewritten.length, 1, 'what is safe is not written again');
  syncer.close();
});

test('a finished segment is safe before later ones count', async () => {
  const directory = temporaryDirectory();
  const synced: number[] = [];
  const files: Files = {
    ...nodeFiles,
    sync: async (descriptor) => {
      synced.push(descriptor);
      await nodeFiles.sync(descriptor);
    },
  };
  const syncer = new Syncer(files);
  const descriptors = [1, 2].map((first) => {
    const path = join(directory, `000000000000000${first}.journal`);
    const descriptor = files.create(path);
    const bytes = files.write(descriptor, Buffer.from('line'));
    syncer.begin({ path, first, last: first, bytes }, descriptor);
    return descriptor;
  });
  await syncer.sync();
  assert.deepEqual(synced, descriptors);
  assert.throws(() => nodeFiles.write(descriptors[0]!, Buffer.from('x')), /EBADF/, 'the first is closed');
  syncer.close();
});

test('a position survives the loss of the slot written last, and is unknown when all are gone', async () => {
  const directory = temporaryDirectory();
  assert.equal(readPosition(nodeFiles, directory), undefined);
  const keeper = await PositionKeeper.begin(nodeFiles, directory, { epoch: 3, kept: 1, synced: 10 });
  keeper.noteSynced(11);
  keeper.noteSynced(12);
  keeper.close();
  assert.deepEqual(readPosition(nodeFiles, directory), { epoch: 3, kept: 1, synced: 12 });
  const path = positionPath(directory);
  const whole = readFileSync(path);
  for (const [slot, synced] of [
    [0, 12],
    [1, 11],
  ] as const) {
    writeFileSync(path, Buffer.from(whole).fill(0, slot * 512, slot * 512 + 30));
    assert.equal(readPosition(nodeFiles, directory)!.synced, synced);
  }
  writeFileSync(path, whole.subarray(0, 211));
  assert.equal(readPosition(nodeFiles, directory), undefined, 'the first start was cut short');
  writeFileSync(path, Buffer.alloc(1024));
  assert.throws(() => readPosition(nodeFiles, directory), /position is damaged/);
});

/** What every later start must find at least. */
interface Known {
  epoch: number;
  kept: number;
}

/** One process's run on a disk that may be full or fail to sync: begins, notes this and that, and goes on until it is killed. */
async function noteAway(files: Files, disk: Disk, chance: Chance, known: Known): Promise<void> {
  const found = readPosition(files, '/journal') ?? { epoch: 0, kept: 0, synced: 0 };
  assert.ok(found.epoch >= known.epoch && found.kept >= known.kept, JSON.stringify({ found, known }));
  disk.faults.roomBytes = chance.oneIn(4) ? 0 : undefined;
  disk.faults.syncFails = chance.oneIn(4);
  const epoch = found.epoch + 1;
  const keeper = await PositionKeeper.begin(files, '/journal', { ...found, epoch });
  known.epoch = epoch;
  for (let record = found.synced + 1; ; record += 1) {
    disk.faults.syncFails = chance.oneIn(4);
    keeper.noteSynced(record);
    if (chance.oneIn(2)) continue;
    const noted = keeper.noteKept(record).then(
      () => {
        known.kept = Math.max(known.kept, record);
      },
      () => {},
    );
    for (let more = chance.below(5); more > 0; more -= 1) {
      await Promise.resolve();
      keeper.noteSynced(record);
    }
    if (chance.oneIn(2)) await noted;
  }
}

test('after a full disk, failed syncs, killed processes and power cuts a start finds all safe records', async () => {
  for (let seed = 1; seed <= 150; seed += 1) {
    const chance = new Chance(seed);
    const schedule = new Schedule();
    const disk = new Disk(schedule, chance);
    const known: Known = { epoch: 0, kept: 0 };
    for (let run = 0; run < 20; run += 1) {
      const life = { alive: true };
      const failed: unknown[] = [];
      noteAway(disk.filesOf(life), disk, chance, known).catch((error: unknown) => failed.push(error));
      schedule.after(chance.fraction() * 20, undefined, 'killed', () => {
        life.alive = false;
      });
      await schedule.run(() => !life.alive);
      for (const error of failed) assert.match(String(error), /EIO|ENOSPC/, `seed ${seed}`);
      disk.faults.tears = chance.oneIn(2);
      disk.crash(chance.oneIn(2) ? 'power' : 'process');
    }
    assert.ok(known.epoch > 0 && known.kept > 0, `seed ${seed}: ${JSON.stringify(known)}`);
  }
});

test('with copies, segments wait for the copy that has them; without, or when space is short, only for the database', () => {
  let now = { applied: 10, oldest: 8 };
  const retention = new Retention(() => now);
  assert.deepEqual(retention.bounds(false), now);
  retention.awaitCopies();
  assert.deepEqual(retention.bounds(false), { applied: 0, oldest: 0 });
  const safe = retention.beginCopy();
  now = { applied: 30, oldest: 25 };
  assert.deepEqual(retention.bounds(false), { applied: 0, oldest: 0 });
  safe();
  assert.deepEqual(retention.bounds(false), { applied: 10, oldest: 8 });
  assert.deepEqual(retention.bounds(true), now);
});
