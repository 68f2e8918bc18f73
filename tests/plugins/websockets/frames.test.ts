/** Bytes of frames, however they are cut: what of them is an unfinished message, and how many are control frames. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arrivals } from '../../../plugins/websockets/arrivals.ts';
import { FrameMeter } from '../../../plugins/websockets/frames.ts';
import { Memory } from '../../../plugins/websockets/memory.ts';
import { fc } from '../../helpers/properties.ts';

const frame = fc.record({
  opcode: fc.constantFrom(0, 1, 2, 9, 10),
  isLast: fc.boolean(),
  bytes: fc.oneof(fc.integer({ min: 0, max: 130 }), fc.integer({ min: 65_530, max: 65_540 })),
});

interface Frame {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly bytes: number;
}

function encode({ opcode, isLast, bytes: wanted }: Frame): { bytes: Buffer; ends: boolean; isControl: boolean } {
  const isControl = opcode > 7;
  const length = isControl ? Math.min(wanted, 125) : wanted;
  const ends = isControl || isLast;
  const head = Buffer.alloc(length > 65_535 ? 10 : length > 125 ? 4 : 2);
  head[0] = opcode | (ends ? 0x80 : 0);
  head[1] = 0x80 | (length > 65_535 ? 127 : length > 125 ? 126 : length);
  if (length > 65_535) head.writeBigUInt64BE(BigInt(length), 2);
  else if (length > 125) head.writeUInt16BE(length, 2);
  return { bytes: Buffer.concat([head, Buffer.alloc(4 + length, 0xff)]), ends, isControl };
}

test('in any pieces, control frames are counted and an unfinished message is never counted below its size', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1 });
  const property = fc.property(fc.array(frame, { maxLength: 12 }), sizes, (frames, cuts) => {
    const parts = frames.map(encode);
    const all = Buffer.concat(parts.map(({ bytes }) => bytes));
    const meter = new FrameMeter();
    let at = 0;
    for (let turn = 0; at < all.length; turn++) {
      const chunk = all.subarray(at, at + cuts[turn % cuts.length]!);
      at += chunk.length;
      meter.read(chunk);
      const { open, controls } = expected(parts, at);
      assert.equal(meter.controlFrames, controls);
      assert.ok(meter.unfinishedBytes + 14 >= open, `${meter.unfinishedBytes} of ${open}`);
      if (open === 0 && isBetween(parts, at)) assert.equal(meter.unfinishedBytes, 0);
    }
  });
  fc.assert(property);
});

/** Bytes of the message that is open after so many bytes, and control frames with their whole head by then. */
function expected(parts: readonly ReturnType<typeof encode>[], read: number) {
  let [at, open, controls] = [0, 0, 0];
  for (const { bytes, ends, isControl } of parts) {
    const arrived = Math.max(0, Math.min(bytes.length, read - at));
    at += bytes.length;
    if (isControl) controls += arrived >= 6 ? 1 : 0;
    else open = ends && arrived === bytes.length ? 0 : open + arrived;
  }
  return { open, controls };
}

function isBetween(parts: readonly ReturnType<typeof encode>[], read: number): boolean {
  let at = 0;
  for (const { bytes } of parts) {
    at += bytes.length;
    if (at === read) return true;
  }
  return false;
}

test('a small piece of a message counts with the whole chunk that holds it', () => {
  const meter = new FrameMeter();
  const whole = encode({ opcode: 2, isLast: true, bytes: 60_000 }).bytes;
  meter.read(Buffer.concat([whole, encode({ opcode: 2, isLast: false, bytes: 1 }).bytes]));
  assert.ok(meter.unfinishedBytes > 60_000);
});

test('an account has its share of the memory, all have the whole, and released memory is free again', () => {
  const memory = new Memory({ memory: 100, account_memory: 60, message: 10 });
  assert.equal(memory.take('a', 60), undefined);
  assert.deepEqual([memory.take('a', 1)?.kind, memory.take('a', 1)?.code], ['rate_limited', 'message_bytes']);
  assert.equal(memory.take('b', 41)?.kind, 'overloaded');
  assert.equal(memory.take('b', 40), undefined);
  memory.take('a', -60);
  assert.equal(memory.take('b', 20), undefined);
  assert.equal(memory.take('a', 40), undefined);
});

test('a message stalls by silence or by its whole time, and not while the gateway does not read', () => {
  let now = 0;
  const limits = { control_frames: 2, stall: 60_000, arrival: 120_000 };
  const arrivals = new Arrivals(
    () => undefined,
    () => now,
  );
  const piece = () => assert.equal(arrivals.read(Buffer.from('x'), limits), undefined);
  now = 100_000;
  assert.equal(arrivals.isStalled(limits), false, 'no message has begun');
  arrivals.read(encode({ opcode: 1, isLast: true, bytes: 100 }).bytes.subarray(0, 20), limits);
  now += 60_000;
  assert.equal(arrivals.isStalled(limits), false);
  now += 1;
  assert.equal(arrivals.isStalled(limits), true);
  piece();
  assert.equal(arrivals.isStalled(limits), false);
  arrivals.pause();
  now += 500_000;
  assert.equal(arrivals.isStalled(limits), false);
  arrivals.resume();
  now += 59_999;
  piece();
  assert.equal(arrivals.isStalled(limits), false);
  now += 1;
  assert.equal(arrivals.isStalled(limits), true, 'it takes longer than it may in all');
  arrivals.read(Buffer.alloc(100), limits);
});

test('control frames of a minute are counted; the next minute begins with none', () => {
  let now = 0;
  const limits = { control_frames: 2, stall: 60_000, arrival: 120_000 };
  const arrivals = new Arrivals(
    () => undefined,
    () => now,
  );
  const ping = () => arrivals.read(encode({ opcode: 9, isLast: true, bytes: 0 }).bytes, limits)?.code;
  assert.deepEqual([ping(), ping()], [undefined, undefined]);
  now = 60_000;
  assert.deepEqual([ping(), ping(), ping()], [undefined, undefined, 'control_frames']);
});
