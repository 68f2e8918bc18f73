/** Who may run a keyed call, who must wait, and what is kept of it, over processes, crashes and a database that fails. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { systemRandom } from '../../../core/gateway/system.ts';
import { readOrMakeOwner } from '../../../plugins/common/kit/jobs/owner.ts';
import type { KeyedCall } from '../../../plugins/idempotency/key.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { until } from '../../helpers/until.ts';
import { callOf, enter, type Node, newKey, openShop, type Shop, storedAnswerOf } from './nodes.ts';

let shop: Shop;
let one: Node;
let other: Node;
before(async () => {
  shop = await openShop();
  one = await shop.node();
  other = await shop.node();
});
after(() => shop.close());

test('100 parallel calls with one key on two processes: one runs, and the others must retry', async () => {
  const key = newKey();
  const calls = Array.from({ length: 100 }, () => callOf(key));
  const outcomes = await Promise.all(calls.map((call, index) => enter(index % 2 === 0 ? one : other, call)));
  assert.deepEqual(outcomes.filter((outcome) => outcome === 'run').length, 1);
  assert.deepEqual(new Set(outcomes), new Set(['run', 'idempotency_in_progress']));
});

test('an answer is replayed by its own process at once, and by others when the database has it', async () => {
  const call = callOf(newKey());
  assert.equal(await enter(one, call), 'run');
  one.calls.end(call, { answer: storedAnswerOf('first') });
  assert.equal(await enter(one, callOf(call.keyHash)), 'first');
  assert.equal(await enter(other, callOf(call.keyHash)), 'idempotency_in_progress');
  await one.calls.flush();
  assert.equal(await enter(other, callOf(call.keyHash)), 'first');
  assert.equal(await enter(one, callOf(call.keyHash)), 'first');
});

test('parallel repetitions of an ended call wait for the look-up and all get its answer', async () => {
  const requested = fc.record({
    count: fc.integer({ min: 2, max: 20 }),
    /** Which of them bring another body. */
    others: fc.uniqueArray(fc.nat(19), { maxLength: 4 }),
    ending: fc.constantFrom('answered', 'lost', 'running'),
    elsewhere: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(requested, async ({ count, others, ending, elsewhere }) => {
      const call = callOf(newKey());
      assert.equal(await enter(one, call), 'run');
      if (ending !== 'running') one.calls.end(call, ending === 'lost' ? 'lost' : { answer: storedAnswerOf('first') });
      await one.calls.flush();
      const node = elsewhere || ending === 'running' ? other : one;
      const outcomes = await Promise.all(
        Array.from({ length: count }, (_, index) =>
          enter(node, callOf(call.keyHash, others.includes(index) ? 'another body' : 'one body')),
        ),
      );
      const expected = { answered: 'first', lost: 'idempotency_answer_lost', running: 'idempotency_in_progress' }[
        ending
      ];
      for (const [index, outcome] of outcomes.entries())
        assert.equal(outcome, others.includes(index) ? 'idempotency_key_reused' : expected);
    }),
    { numRuns: 25 },
  );
});

test('while the database is away every parallel repetition is refused, and afterwards one of them runs', async () => {
  const node = await shop.node();
  const call = callOf(newKey());
  node.faults.down = true;
  const refused = await Promise.all(Array.from({ length: 10 }, () => enter(node, callOf(call.keyHash))));
  assert.deepEqual(new Set(refused), new Set(['idempotency_unavailable']));
  node.faults.down = false;
  await node.calls.flush();
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => enter(node, callOf(call.keyHash))));
  assert.equal(outcomes.filter((outcome) => outcome === 'run').length, 1);
  assert.equal(outcomes.filter((outcome) => outcome === 'idempotency_in_progress').length, 9);
});

test('another body under the key is a conflict, during and after its call, here and elsewhere', async () => {
  const call = callOf(newKey());
  await enter(one, call);
  const states = [];
  for (const step of [undefined, { answer: storedAnswerOf('x') }, 'flush'] as const) {
    if (step === 'flush') await one.calls.flush();
    else if (step !== undefined) one.calls.end(call, step);
    for (const node of [one, other]) states.push(await enter(node, callOf(call.keyHash, 'another body')));
  }
  assert.deepEqual(new Set(states), new Set(['idempotency_key_reused']));
});

test('cache-key collision: the same key of another account is another call', async () => {
  const call = callOf(newKey());
  assert.equal(await enter(one, call), 'run');
  assert.equal(await enter(one, callOf(call.keyHash, 'one body', 'bob')), 'run');
  assert.equal(await enter(other, callOf(call.keyHash, 'another body', 'carol')), 'run');
});

test('a call without effect frees its key', async () => {
  const call = callOf(newKey());
  assert.equal(await enter(one, call), 'run');
  one.calls.end(call, 'free');
  const again = callOf(call.keyHash, 'another body');
  assert.equal(await enter(one, again), 'run');
  one.calls.end(again, 'free');
  await one.calls.flush();
  // The row is on its way out.
  await until('its key is free', async () => (await enter(other, callOf(call.keyHash))) === 'run');
});

test('a call without effect keeps its key until that survives a crash', async () => {
  const crashed = await shop.node();
  const call = callOf(newKey());
  await enter(crashed, call);
  crashed.faults.diskFull = true;
  crashed.calls.end(call, 'free');
  await assert.rejects(crashed.calls.flush(), /cannot be written/);
  assert.equal(await enter(crashed, callOf(call.keyHash)), 'idempotency_unavailable');
  assert.equal(await enter(other, callOf(call.keyHash)), 'idempotency_in_progress');
  // The end is lost with the process, and an estimate charged.
  shop.ends.set(call.requestId, true);
  await shop.lapse();
  assert.equal(await enter(other, callOf(call.keyHash)), 'idempotency_answer_lost');
});

test('an answer that was not kept is reported as such, and its call never runs again', async () => {
  const call = callOf(newKey());
  await enter(one, call);
  one.calls.end(call, 'lost');
  assert.equal(await enter(one, callOf(call.keyHash)), 'idempotency_answer_lost');
  await one.calls.flush();
  for (const node of [one, other]) assert.equal(await enter(node, callOf(call.keyHash)), 'idempotency_answer_lost');
});

test('an uncharged call that a crash left open is run again, by one process alone', async () => {
  const crashed = await shop.node();
  const call = callOf(newKey());
  await enter(crashed, call);
  assert.equal(await enter(one, callOf(call.keyHash)), 'idempotency_in_progress');
  await shop.lapse();
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, index) => enter(index % 2 === 0 ? one : other, callOf(call.keyHash))),
  );
  assert.equal(outcomes.filter((outcome) => outcome === 'run').length, 1);
  // The one that was thought dead keeps nothing.
  crashed.calls.end(call, { answer: storedAnswerOf('too late') });
  await crashed.calls.flush();
  assert.equal(await enter(await shop.node(), callOf(call.keyHash)), 'idempotency_in_progress');
});

test('a restart abandons the calls of the run before it without waiting for their leases', async () => {
  const crashed = await shop.node('the first directory');
  const [own, charged] = [callOf(newKey()), callOf(newKey())];
  await enter(crashed, own);
  await enter(crashed, charged);
  shop.ends.set(charged.requestId, true);
  const elsewhere = callOf(newKey());
  await enter(other, elsewhere);
  const next = await shop.node('the first directory');
  await next.rows.abandon(await next.rows.findRunning());
  assert.equal(await enter(one, callOf(own.keyHash)), 'run');
  assert.equal(await enter(next, callOf(charged.keyHash)), 'idempotency_answer_lost');
  assert.equal(await enter(next, callOf(elsewhere.keyHash)), 'idempotency_in_progress');
});

test('double charge after a restart: a late message of an earlier process does not touch calls that run', async () => {
  const directory = 'a directory of several runs';
  const crashed = await shop.node(directory);
  const left = callOf(newKey());
  await enter(crashed, left);
  const second = await shop.node(directory);
  const found = await second.rows.findRunning();
  assert.deepEqual(found, [left.requestId]);
  // It has calls already, or has died, and the next run of this directory has, when its word comes to the database.
  const own = callOf(newKey());
  await enter(second, own);
  const third = await shop.node(directory);
  const next = callOf(newKey());
  await enter(third, next);
  await second.rows.abandon(found);
  for (const { requestId } of [own, next]) shop.ends.set(requestId, 'unknown');
  assert.equal(await enter(one, callOf(left.keyHash)), 'run');
  for (const lives of [own, next]) assert.equal(await enter(one, callOf(lives.keyHash)), 'idempotency_in_progress');
  await shop.lapse();
  for (const lives of [own, next]) assert.equal(await enter(one, callOf(lives.keyHash)), 'idempotency_in_progress');
});

test('several processes that start in one directory at once all have one name, which they keep', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'owner-'));
  const names = await Promise.all(Array.from({ length: 20 }, () => readOrMakeOwner(directory, systemRandom)));
  assert.equal(new Set(names).size, 1);
  assert.equal(await readOrMakeOwner(directory, systemRandom), names[0]);
  await rm(directory, { recursive: true });
});

test('double charge on retry: a charged call that a crash left open is not run again', async () => {
  const crashed = await shop.node();
  const [charged, open] = [callOf(newKey()), callOf(newKey())];
  await enter(crashed, charged);
  await enter(crashed, open);
  shop.ends.set(charged.requestId, true).set(open.requestId, 'open');
  await shop.lapse();
  assert.equal(await enter(one, callOf(charged.keyHash)), 'idempotency_answer_lost');
  assert.equal(await enter(one, callOf(open.keyHash)), 'idempotency_in_progress');
  assert.equal(await enter(one, callOf(charged.keyHash, 'another body')), 'idempotency_key_reused');
});

test('double charge on another node: a call that may be in an unread journal does not run again until it is read', async () => {
  const crashed = await shop.node('a directory with a journal');
  const [uncharged, charged] = [callOf(newKey()), callOf(newKey())];
  for (const call of [uncharged, charged]) {
    await enter(crashed, call);
    shop.ends.set(call.requestId, 'unknown');
  }
  await shop.lapse();
  for (const call of [uncharged, charged])
    assert.equal(await enter(one, callOf(call.keyHash)), 'idempotency_in_progress');
  // It comes back: recovery has posted what the journal had, and then it says so.
  shop.ends.set(charged.requestId, true);
  const next = await shop.node('a directory with a journal');
  await next.rows.abandon(await next.rows.findRunning());
  assert.equal(await enter(one, callOf(uncharged.keyHash)), 'run');
  assert.equal(await enter(one, callOf(charged.keyHash)), 'idempotency_answer_lost');
});

test('a process that renews its calls is not taken for dead', async () => {
  const call = callOf(newKey());
  await enter(one, call);
  await shop.lapse();
  await one.calls.renew();
  assert.equal(await enter(other, callOf(call.keyHash)), 'idempotency_in_progress');
  one.calls.end(call, 'lost');
  await one.calls.flush();
});

test('a key expires at its time, and never during its call', async () => {
  const [ended, running] = [callOf(newKey()), callOf(newKey())];
  await enter(one, ended);
  await enter(one, running);
  one.calls.end(ended, { answer: storedAnswerOf('old') });
  await one.calls.flush();
  await shop.lapse('key');
  await one.calls.renew();
  assert.equal(await enter(other, callOf(running.keyHash)), 'idempotency_in_progress');
  assert.equal(await enter(other, callOf(ended.keyHash, 'another body')), 'run');
  await shop.lapse('key');
  await shop.lapse('lease');
  await one.calls.renew();
  await one.rows.deleteExpired();
  assert.deepEqual(await shop.states().then((states) => new Set(states)), new Set(['running']));
});

test('fail-open on a database error: without the database no keyed call runs, and no key stays taken', async () => {
  for (const afterwards of [false, true]) {
    const node = await shop.node();
    const key = newKey();
    Object.assign(node.faults, { down: true, afterwards });
    assert.equal(await enter(node, callOf(key)), 'idempotency_unavailable');
    node.faults.down = false;
    await node.calls.flush();
    assert.equal(await enter(other, callOf(key)), 'run');
  }
});

test('an answer waits for a database that is away, and is replayed meanwhile', async () => {
  const node = await shop.node();
  const call = callOf(newKey());
  await enter(node, call);
  node.faults.down = true;
  node.calls.end(call, { answer: storedAnswerOf('kept') });
  await assert.rejects(node.calls.flush());
  assert.equal(await enter(node, callOf(call.keyHash)), 'kept');
  node.faults.down = false;
  await node.calls.flush();
  assert.equal(await enter(other, callOf(call.keyHash)), 'kept');
});

test("while the database is away a key that runs nowhere gets 503 each time, and this process's answers are replayed", async () => {
  for (const isNoticed of [false, true]) {
    const node = await shop.node();
    const call = callOf(newKey());
    await enter(node, call);
    node.calls.end(call, { answer: storedAnswerOf('kept') });
    await node.calls.flush();
    Object.assign(node.faults, { down: true, isNoticed });
    const fresh = newKey();
    for (let tries = 0; tries < 3; tries++) {
      assert.equal(await enter(node, callOf(fresh)), 'idempotency_unavailable', `try ${tries}`);
      assert.equal(await enter(node, callOf(call.keyHash)), 'kept');
      assert.equal(await enter(node, callOf(call.keyHash, 'another body')), 'idempotency_key_reused');
      await node.calls.flush().catch(() => {});
    }
    node.advance(600_000);
    assert.equal(await enter(node, callOf(call.keyHash)), 'idempotency_unavailable');
    Object.assign(node.faults, { down: false, isNoticed: false });
    await node.calls.flush();
    assert.equal(await enter(other, callOf(fresh)), 'run');
  }
});

test('answers that are replayed without the database are bounded, and the last ones stay', async () => {
  const node = await shop.node();
  const calls = [callOf(newKey()), callOf(newKey()), callOf(newKey())];
  for (const call of calls) {
    await enter(node, call);
    node.calls.end(call, { answer: storedAnswerOf('x'.repeat(7 * 2 ** 20)) });
    await node.calls.flush();
  }
  node.faults.down = true;
  assert.equal(await enter(node, callOf(calls[0]!.keyHash)), 'idempotency_unavailable');
  for (const call of calls.slice(1)) assert.equal((await enter(node, callOf(call.keyHash))).length, 7 * 2 ** 20);
});

test('answers that wait for the database are bounded: beyond that they are lost, and their calls not run again', async () => {
  const node = await shop.node();
  const big = storedAnswerOf('x'.repeat(40 * 2 ** 20));
  const calls = [callOf(newKey()), callOf(newKey())];
  for (const call of calls) await enter(node, call);
  node.faults.down = true;
  for (const call of calls) node.calls.end(call, { answer: big });
  assert.equal(await enter(node, callOf(calls[1]!.keyHash)), 'idempotency_answer_lost');
  assert.equal((await enter(node, callOf(calls[0]!.keyHash))).length, 40 * 2 ** 20);
});

test('the advised wait for a running key grows with the time that its call has run', async () => {
  const call = callOf(newKey());
  const node = await shop.node();
  await enter(node, call);
  const waits = [];
  for (const milliseconds of [0, 5_000, 100_000]) {
    node.advance(milliseconds);
    const error: unknown = await node.calls.enter(callOf(call.keyHash)).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof GatewayError);
    assert.deepEqual([error.status, error.shouldRetry], [409, true]);
    waits.push(error.retryAfterMs);
  }
  assert.deepEqual(waits, [1_000, 5_000, 15_000]);
});

type Step = readonly [action: 'enter' | 'reported' | 'lost' | 'free' | 'flush' | 'crash', node: number, key: number];

/** The invariants of a key, kept by the simplest means. */
interface Truth {
  readonly running: Map<number, { call: KeyedCall; node: number }>;
  readonly answers: Map<number, string>;
}

test('after any events in any order, a key runs once until it is free, and has one answer', async () => {
  const action = fc.constantFrom<Step[0]>('enter', 'enter', 'enter', 'reported', 'lost', 'free', 'flush', 'crash');
  const step = fc.tuple(action, fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 1 }));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps: Step[]) => {
      const nodes = [await shop.node(), await shop.node()];
      const keys = [newKey(), newKey()];
      const truth: Truth = { running: new Map(), answers: new Map() };
      for (const [index, one] of steps.entries()) await play(one, index, nodes, keys, truth);
    }),
    { numRuns: runsOf(10, 25) },
  );
});

async function play([action, at, key]: Step, index: number, nodes: Node[], keys: string[], truth: Truth) {
  const node = nodes[at]!;
  const { running, answers } = truth;
  const run = running.get(key);
  if (action === 'enter') {
    const call = callOf(keys[key]!);
    const outcome = await enter(node, call);
    if (outcome === 'run') {
      assert.ok(run === undefined && !answers.has(key), `key ${key} runs a second time`);
      running.set(key, { call, node: at });
    } else if (outcome !== 'idempotency_in_progress') {
      assert.equal(outcome, answers.get(key));
    } else {
      // Either it runs, or its end has not been written down yet.
      assert.equal(await nodes[at]!.calls.flush(), undefined);
    }
  } else if (action === 'flush') await node.calls.flush();
  else if (action === 'crash') {
    if (run?.node !== at) return;
    // Charged before it died: it must not run again.
    shop.ends.set(run.call.requestId, true);
    for (const [other, entry] of running) {
      if (entry.node !== at) continue;
      shop.ends.set(entry.call.requestId, true);
      running.delete(other);
      answers.set(other, 'idempotency_answer_lost');
    }
    await node.calls.flush();
    nodes[at] = await shop.node();
    await shop.lapse();
    await nodes[1 - at]!.calls.renew();
  } else if (run?.node === at) {
    running.delete(key);
    if (action === 'free') {
      node.calls.end(run.call, 'free');
      await node.calls.flush();
    } else {
      const text = `answer ${index}`;
      node.calls.end(run.call, action === 'lost' ? 'lost' : { answer: storedAnswerOf(text) });
      answers.set(key, action === 'lost' ? 'idempotency_answer_lost' : text);
    }
  }
}
