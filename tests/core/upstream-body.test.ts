/** The body of an upstream's answer: chunks of one packet come as one, and none is lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dispatcher } from 'undici';
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { UpstreamBody } from '../../core/http/transport.ts';

function bodyOf() {
  const calls: string[] = [];
  const controller = {
    paused: false,
    pause() {
      calls.push('pause');
      this.paused = true;
    },
    resume() {
      calls.push('resume');
      this.paused = false;
    },
    abort: () => void calls.push('abort'),
  };
  return { body: new UpstreamBody(controller as unknown as Dispatcher.DispatchController), calls };
}

const text = (step: IteratorResult<Uint8Array>) => Buffer.from(step.value).toString();

test('chunks of one turn are one step, whether it was awaited or not', async () => {
  const { body } = bodyOf();
  const waiting = body.next();
  for (const part of ['a', 'b', 'c']) body.push(Buffer.from(part));
  assert.equal(text(await waiting), 'abc');
  for (const part of ['d', 'e']) body.push(Buffer.from(part));
  const step = await body.next();
  assert.equal(text(step), 'de');
  body.push(Buffer.from('f'));
  // A step that was read stays what it was.
  assert.equal(text(step), 'de');
  body.end();
  assert.equal(text(await body.next()), 'f');
  assert.equal((await body.next()).done, true);
});

test('a single chunk is returned unchanged', async () => {
  const { body } = bodyOf();
  const chunk = Buffer.from('a');
  body.push(chunk);
  assert.equal((await body.next()).value, chunk);
});

test('no step is much larger than 64 KB, and a slow reader pauses the upstream', async () => {
  const { body, calls } = bodyOf();
  const chunk = Buffer.alloc(40 * 1024, 'x');
  for (let count = 0; count < 7; count++) body.push(chunk);
  assert.deepEqual(calls, ['pause']);
  let bytes = 0;
  for (let count = 0; count < 7; count++) {
    const step = await body.next();
    assert.equal(step.value!.length, chunk.length);
    bytes += step.value!.length;
  }
  assert.equal(bytes, 7 * chunk.length);
  assert.deepEqual(calls, ['pause', 'resume']);
});

test('chunks before a failure are returned before it', async () => {
  const { body } = bodyOf();
  body.push(Buffer.from('a'));
  body.break(new UpstreamError('body', 'cut'));
  assert.equal(text(await body.next()), 'a');
  await assert.rejects(body.next(), { message: 'cut' });
});
