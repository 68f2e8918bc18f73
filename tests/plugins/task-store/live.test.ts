/** Between the worker that reads a vendor and the client that looks on: every frame once, in order, and never too many waiting. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import { Live } from '../../../plugins/task-store/engine/live.ts';
import { errorFrame } from '../../../plugins/task-store/orders/shapes/index.ts';
import { fc } from '../../helpers/properties.ts';

const megabyte = 2 ** 20;

test('at any pace of both sides, each frame is delivered once and in order', async () => {
  const pauses = fc.array(fc.nat(3), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(pauses, pauses, async (writing, reading) => {
      const live = new Live();
      const write = async () => {
        for (const [index, turns] of writing.entries()) {
          for (let count = 0; count < turns; count += 1) await turn();
          await live.push(Buffer.from([index]));
        }
        live.end();
      };
      const writes = write();
      assert.equal(await live.began(), writing.length > 0);
      const read: number[] = [];
      for await (const frame of live.frames()) {
        read.push(frame[0]!);
        for (let count = 0; count < (reading[read.length - 1] ?? 0); count += 1) await turn();
      }
      await writes;
      assert.deepEqual(
        read,
        writing.map((_, index) => index),
      );
    }),
  );
});

test('a vendor waits for a slow client, and no longer for a disconnected one', async () => {
  const live = new Live();
  let taken = 0;
  const write = async () => {
    for (let index = 0; index < 10; index += 1) {
      await live.push(Buffer.alloc(10 * megabyte));
      taken += 1;
    }
  };
  const writes = write();
  await turn();
  assert.equal(taken, 1, 'the second frame is more than may wait');
  const frames = live.frames();
  await frames.next();
  await turn();
  assert.equal(taken, 2);
  await frames.return();
  await writes;
  assert.equal(taken, 10);
});

test("a wait for a stream's beginning ends when there will be none", async () => {
  const ended = new Live();
  setTimeout(() => ended.end(), 1);
  assert.equal(await ended.began(), false);
  const left = new Live();
  setTimeout(() => left.disconnect(), 1);
  assert.equal(await left.began(), false);
  for await (const _ of left.frames()) assert.fail('a frame from nowhere');
});

test('an error inside a stream carries the members of the gateway’s own errors', () => {
  const error = new GatewayError('upstream_failed', 'The model broke off.', { code: 'outcome_unknown' });
  const body = (frame: string) => {
    assert.match(frame, /^event: error\ndata: .*\n\n$/);
    return JSON.parse(frame.slice(frame.indexOf('{'))) as Record<string, unknown>;
  };
  const reported = { message: 'The model broke off.', type: 'server_error', param: null, code: 'outcome_unknown' };
  assert.deepEqual(body(errorFrame(error)), { type: 'error', error: reported });
  const shape = { code: 'UPSTREAM_ERROR', message: 'The model broke off.' };
  assert.deepEqual(body(errorFrame(error, shape)), { type: 'error', ...shape, error: { ...reported, ...shape } });
});
