/** Requests of one session go where it was served before; processes that know nothing of each other choose alike. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { bench, credentials, type GoOptions, modelWith, ok, refusal, unreachable } from './helpers.ts';

const keys = ['one', 'two', 'three', 'four'];
const vendors = {
  a: { keys, speaks: { chat: 'https://a.example' } },
  b: { keys, speaks: { chat: 'https://b.example' } },
};
const onlyA = modelWith('a');
const weighted = modelWith({ provider: 'a', model: 'm', weight: 1 }, { provider: 'b', model: 'm', weight: 1 });

test('all requests of a session use one key, and sessions are spread over all keys', async () => {
  const { go } = await bench({}, vendors);
  const seen = new Set<string>();
  for (let number = 0; number < 30; number++) {
    const session = `session ${number}`;
    const [first] = credentials(await go(onlyA, [ok], { session }));
    for (let round = 0; round < 3; round++) assert.deepEqual(credentials(await go(onlyA, [ok], { session })), [first]);
    seen.add(first!);
  }
  assert.equal(seen.size, 4);
});

test('processes that share nothing choose the same target and key, in any order of their lists', async () => {
  const one = await bench({}, vendors);
  const other = await bench(
    {},
    { b: { ...vendors.b, keys: keys.toReversed() }, a: { ...vendors.a, keys: keys.toReversed() } },
  );
  const targets = new Set<string>();
  for (let number = 0; number < 40; number++) {
    const session = `session ${number}`;
    const [here] = (await one.go(weighted, [ok], { session })).targets;
    const [there] = (await other.go(weighted, [ok], { session })).targets;
    assert.deepEqual([here!.provider, here!.key.reveal()], [there!.provider, there!.key.reveal()]);
    targets.add(here!.provider);
  }
  assert.equal(targets.size, 2);
});

test('weights apply to sessions too', async () => {
  const { go } = await bench({}, vendors);
  const entry = modelWith({ provider: 'a', model: 'm', weight: 3 }, { provider: 'b', model: 'm', weight: 1 });
  let ofA = 0;
  for (let number = 0; number < 1_000; number++) {
    if ((await go(entry, [ok], { session: `session ${number}` })).targets[0]!.provider === 'a') ofA += 1;
  }
  assert.ok(ofA > 690 && ofA < 810, `${ofA} of 1000 instead of about 750`);
});

test('a session that had to move stays at its new target while it is remembered', async () => {
  const { go, host } = await bench({ affinity: { keep: '1m' } }, vendors);
  const entry = modelWith('a', 'b');
  const session = 'moved';
  const trip = await go(entry, [unreachable, ok], { session });
  assert.deepEqual(
    trip.targets.map(({ provider }) => provider),
    ['a', 'b'],
  );
  const moved = trip.targets[1]!.credential;
  for (let round = 0; round < 3; round++) {
    host.advance(50_000);
    assert.deepEqual(credentials(await go(entry, [ok], { session })), [moved]);
  }
  host.advance(60_001);
  assert.equal((await go(entry, [ok], { session })).targets[0]!.provider, 'a');
});

test('a key in cooldown is replaced, and the session stays with the other key', async () => {
  const { go, host } = await bench({}, vendors);
  const session = 'limited';
  const trip = await go(onlyA, [refusal(429, { retryAfterMs: 5_000 }), ok], { session });
  const [first, second] = credentials(trip);
  assert.notEqual(first, second);
  host.advance(6_000);
  assert.deepEqual(credentials(await go(onlyA, [ok], { session })), [second]);
  await host.get(upstreamAdmin).setDisabled('a', second, true);
  const [third] = credentials(await go(onlyA, [ok], { session }));
  assert.notEqual(third, second);
});

test("a session belongs to its account: another account's session of the same name is routed by itself", async () => {
  const { go } = await bench({}, vendors);
  const chosen = new Set<string>();
  for (let number = 0; number < 20; number++)
    chosen.add(credentials(await go(onlyA, [ok], { session: 'default', account: `account ${number}` }))[0]!);
  assert.ok(chosen.size > 1);
});

/** Whether two requests that differ as described go by one key, tried with enough pairs. */
async function together(section: object, pair: (number: number) => [GoOptions, GoOptions]): Promise<boolean> {
  const { go } = await bench(section, vendors);
  for (let number = 0; number < 20; number++) {
    const [one, other] = pair(number);
    const first = credentials(await go(onlyA, [ok], one))[0];
    if (first !== credentials(await go(onlyA, [ok], other))[0]) return false;
  }
  return true;
}

test('a session is found by the body, else by a header, else by a long request’s opening', async () => {
  const both = (options: (number: number) => GoOptions): ((number: number) => [GoOptions, GoOptions]) => {
    return (number) => [options(number), options(number)];
  };
  const header = (number: number) => ({ headers: { 'x-session-id': `${number}` } });
  const long = (number: number) => ({ opening: `opening ${number}`, bodyBytes: 4_096 });
  assert.ok(
    await together(
      {},
      both((number) => ({ session: `${number}` })),
    ),
  );
  assert.ok(await together({}, both(header)));
  assert.ok(await together({}, both(long)));
  assert.ok(
    await together({}, (number) => [
      { session: `${number}`, ...header(1) },
      { session: `${number}`, ...header(2) },
    ]),
    'the body has the first word',
  );
  assert.ok(
    !(await together(
      {},
      both(() => ({})),
    )),
  );
  assert.ok(
    !(await together(
      {},
      both((number) => ({ ...long(number), bodyBytes: 4_095 })),
    )),
    'too short to be cached',
  );
  assert.ok(!(await together({ affinity: { headers: [] } }, both(header))));
  assert.ok(!(await together({ affinity: { openings: false } }, both(long))));
  assert.ok(
    !(await together(
      { affinity: { sessions: false } },
      both((number) => ({ session: `${number}` })),
    )),
  );
});

test('with one target the session is not computed', async () => {
  const { go } = await bench({}, { a: { keys: 'one', speaks: vendors.a.speaks } });
  const options: GoOptions = {
    bodyBytes: 10_000,
    get session(): string {
      return 'x';
    },
    headers: new Proxy({}, { get: () => assert.fail('a header was looked at') }),
  };
  assert.deepEqual(credentials(await go(onlyA, [ok], options)), ['a#1']);
});
