/** Attempts that may have run: where another one follows, for which calls and within which share, and which error is returned in the end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toGatewayError, UpstreamError } from '../../../core/contract/upstream-failures.ts';
import type { Attempt, SpendGuard } from '../../../plugins/common/domain/calls.ts';
import type { TimelineEvent } from '../../../plugins/common/domain/timeline.ts';
import { openings } from '../../../plugins/common/domain/upstreams.ts';
import { routeSchema } from '../../../plugins/route/config.ts';
import {
  bench,
  credentials,
  type GoOptions,
  modelWith,
  ok,
  refusal,
  reset,
  results,
  type Step,
  unreachable,
} from './helpers.ts';

const both = modelWith('a', 'b');
const onlyB = modelWith('b');
const onlyA = modelWith('a');
const pure: GoOptions = { effects: false };
const silent = { sent: true, error: new UpstreamError('sent', 'headers timeout', { timedOut: true }) };
const usage = { input: 7, output: 3 };

const failures: Record<string, Step> = {
  'a 408': refusal(408, { mayRun: true }),
  'a 500': refusal(500, { mayRun: true }),
  'a 502': refusal(502, { mayRun: true }),
  'a 504': refusal(504, { mayRun: true }),
  'a 524': refusal(524),
  'a reset': reset,
  silence: silent,
  'a body that breaks': { sent: true, error: new UpstreamError('body', 'cut') },
  'a refusal with usage': { ...refusal(503, { hasUsage: true }), usage },
};

for (const [what, step] of Object.entries(failures)) {
  test(`${what} of a call without effects: another target answers`, async () => {
    const trip = await (await bench()).go(both, [step, ok], pure);
    assert.equal(trip.answer, ok.answer);
    assert.deepEqual(
      [credentials(trip), results(trip)],
      [
        ['a#1', 'b#1'],
        ['unknown', 'answered'],
      ],
    );
    assert.deepEqual(trip.attempts[0]!.consumed, step.usage && { usage, estimated: false });
  });

  test(`${what} of a call without effects and with one target: it is tried once more, and no third time`, async () => {
    const again = await (await bench()).go(onlyB, [step, ok], pure);
    assert.deepEqual([again.answer, credentials(again)], [ok.answer, ['b#1', 'b#1']]);
    const never = await (await bench({ attempts: 8 })).go(onlyB, [step, step], pure);
    assert.deepEqual(results(never), ['unknown', 'unknown']);
    const { status, shouldRetry } = toGatewayError(never.error);
    assert.deepEqual([status, shouldRetry], [step === silent ? 504 : 502, step.usage === undefined]);
  });

  test(`${what} of a call with effects, or with unknown ones: it is not tried again except with always`, async () => {
    for (const effects of [true, undefined]) {
      const trip = await (await bench()).go(both, [step], { effects });
      assert.deepEqual(
        [results(trip), toGatewayError(trip.error).shouldRetry],
        [['unknown'], step.usage === undefined],
      );
      const always = await (await bench({ retry_ambiguous: 'always' })).go(both, [step, ok], { effects });
      assert.equal(always.answer, ok.answer);
    }
    const never = await (await bench({ retry_ambiguous: 'never' })).go(both, [step], pure);
    assert.deepEqual(results(never), ['unknown']);
  });
}

test("the other of a vendor's two keys is used for the repetition", async () => {
  const trip = await (await bench()).go(onlyA, [reset, ok], pure);
  assert.deepEqual(credentials(trip), ['a#1', 'a#2']);
  const last = await (await bench({ attempts: 8 })).go(onlyA, [reset, reset], pure);
  assert.deepEqual(credentials(last), ['a#1', 'a#2']);
});

test('where every other target is skipped the one that broke off is tried once more', async () => {
  const testbed = await bench();
  const limited = refusal(429, { retryAfterMs: 60_000 });
  await testbed.go(onlyB, [limited]);
  const trip = await testbed.go(both, [reset, ok], pure);
  assert.deepEqual(credentials(trip), ['a#1', 'a#2']);
});

test('two targets that break off end the call, and attempts bounds all', async () => {
  const two = await (await bench({ attempts: 8 })).go(modelWith('b', 'a'), [reset, reset], pure);
  assert.deepEqual(credentials(two), ['b#1', 'a#1']);
  const one = await (await bench({ attempts: 1 })).go(both, [reset], pure);
  assert.deepEqual(credentials(one), ['a#1']);
});

test('a break, then a refusal: the reported error may be repeated, at its time', async () => {
  const trip = await (await bench()).go(
    modelWith('b', 'a'),
    [reset, refusal(429, { retryAfterMs: 9_000 }), unreachable],
    pure,
  );
  const { status, shouldRetry, retryAfterMs } = toGatewayError(trip.error);
  assert.deepEqual([status, shouldRetry, retryAfterMs], [429, true, 9_000]);
});

test("a client error after a break is the client's own", async () => {
  const trip = await (await bench()).go(both, [reset, refusal(400)], pure);
  assert.equal(toGatewayError(trip.error).status, 400);
  assert.notEqual(toGatewayError(trip.error).shouldRetry, true);
});

const textOf = ({ kind, values }: TimelineEvent) => kind.render(...(typeof values === 'function' ? values()! : values));

test("an attempt beyond the call's money is the last; the money is requested once", async () => {
  const requests: [Attempt['result'], number][] = [];
  const guard = (allows: boolean): SpendGuard => ({
    observe: () => true,
    writeOff: ({ result }, share) => requests.push([result, share]) > 0 && allows,
  });
  const timeline: TimelineEvent[] = [];
  const no = await (await bench({ absorb: 0.2 })).go(both, [reset], { ...pure, guard: guard(false), story: timeline });
  assert.deepEqual(results(no), ['unknown']);
  assert.equal(toGatewayError(no.error).shouldRetry, true);
  const reported = timeline.map(textOf);
  assert.ok(
    reported.some((line) => /no attempt follows attempt 1, which broke off/.test(line)),
    reported.join('\n'),
  );
  const yes = await (await bench({ absorb: 0.2 })).go(both, [reset, ok], {
    ...pure,
    guard: guard(true),
    story: timeline,
  });
  assert.equal(yes.answer, ok.answer);
  assert.ok(timeline.some((event) => /another attempt follows/.test(textOf(event))));
  assert.deepEqual(requests, [
    ['unknown', 0.2],
    ['unknown', 0.2],
  ]);
});

test('the time for which openings of streams are held back is a setting that protocols read', async () => {
  assert.equal((await bench()).host.get(openings).heldMs, 5_000);
  assert.equal((await bench({ opening: '2s' })).host.get(openings).heldMs, 2_000);
  assert.equal(routeSchema.safeParse({ opening: '61s' }).success, false);
});

test('the setting retry_ambiguous is pure by default, and accepts three words', () => {
  const read = (section: object) => routeSchema.parse(section);
  assert.deepEqual([read({}).retry_ambiguous, read({}).absorb], ['pure', 0.05]);
  for (const word of ['pure', 'never', 'always']) assert.equal(read({ retry_ambiguous: word }).retry_ambiguous, word);
  for (const wrong of [{ retry_ambiguous: true }, { retry_ambiguous: 'often' }, { absorb: -0.1 }, { absorb: 1.1 }])
    assert.equal(routeSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
});
