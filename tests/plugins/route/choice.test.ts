/** The target that answers soonest: who is known, who is not, who is busy, and that the slower ones are still asked at times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Provider } from '../../../plugins/common/domain/upstreams.ts';
import type { Candidate } from '../../../plugins/route/candidates.ts';
import { type ChoiceInput, orderCandidates } from '../../../plugins/route/choice.ts';
import { TargetHealth } from '../../../plugins/route/health.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { bench, credentials, modelWith, ok, unreachable } from './helpers.ts';

const { random } = fakeHost();
const wish: ChoiceInput = { strategy: 'fastest', streamed: true, session: undefined, sessionTarget: undefined, random };

function target(
  name: string,
  firstByteMs: number | undefined,
  more: { weight?: number; inFlight?: number } = {},
): Candidate {
  const health = new TargetHealth(name, 'm');
  if (firstByteMs !== undefined) health.figures.noteAnswer(firstByteMs, true);
  health.inFlight = more.inFlight ?? 0;
  const provider = { name } as Provider;
  return { provider, model: 'm', protocol: 'chat', traits: {}, headers: undefined, weight: more.weight ?? 0, health };
}

/** How often each comes first in a thousand requests. */
function firsts(make: () => Candidate[], wanted: ChoiceInput = wish): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let round = 0; round < 1_000; round++) {
    const { queue } = orderCandidates({ native: make(), foreign: [] }, wanted);
    const { name } = queue[0]!.provider;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test('the faster of two targets is first, except for one request in twenty', () => {
  const counts = firsts(() => [target('slow', 900), target('fast', 100)]);
  assert.ok(counts['slow']! > 25 && counts['slow']! < 80, `${counts['slow']} of 1000 instead of about 50`);
});

test('the better of two random targets is first: the slowest is almost never used, the others by their speed', () => {
  const counts = firsts(() => [target('a', 100), target('b', 200), target('c', 300), target('d', 400)]);
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => counts[name] ?? 0);
  assert.ok(a! > b! && b! > c! && c! > d!, JSON.stringify(counts));
  assert.ok(d! < 60, `${d}`);
});

test('running requests count: a busy fast target yields to an idle slower one', () => {
  const counts = firsts(() => [target('busy', 100, { inFlight: 9 }), target('idle', 400)]);
  assert.ok(counts['idle']! > 900, JSON.stringify(counts));
});

test('an unknown target is tried once; until it has answered the known ones are preferred', () => {
  const fresh = firsts(() => [target('known', 100), target('new', undefined)]);
  assert.ok(fresh['new']! > 900, JSON.stringify(fresh));
  const requested = firsts(() => [target('known', 100), target('new', undefined, { inFlight: 1 })]);
  assert.ok(requested['known']! > 900, JSON.stringify(requested));
});

test('whole answers are compared by their total time, or by the other figure where only that is known', () => {
  const [one, other] = [target('one', 100), target('other', 200)];
  one.health.figures.noteAnswer(9_000, false);
  other.health.figures.noteAnswer(3_000, false);
  const counts = firsts(() => [one, other], { ...wish, streamed: false });
  assert.ok(counts['other']! > 900, JSON.stringify(counts));
});

test('the other targets follow by their speed; those without weight are fallbacks in the listed order', () => {
  const group = () => [
    target('last', 1),
    target('slow', 300, { weight: 1 }),
    target('final', 2),
    target('fast', 100, { weight: 1 }),
    target('middle', 200, { weight: 1 }),
  ];
  for (let round = 0; round < 100; round++) {
    const names = orderCandidates({ native: group(), foreign: [] }, wish).queue.map(({ provider }) => provider.name);
    assert.deepEqual(names.slice(3), ['last', 'final']);
    assert.deepEqual(
      names.slice(1, 3),
      ['fast', 'middle', 'slow'].filter((name) => name !== names[0]),
    );
  }
});

test("with any figures: no target is lost, those with the client's protocol come first, and the random number alone decides", () => {
  const figure = fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined });
  const some = fc.array(fc.record({ figure, weight: fc.nat(2), inFlight: fc.nat(3) }), { maxLength: 5 });
  fc.assert(
    fc.property(some, some, fc.constantFrom('fastest', 'ordered'), fc.nat(1_000), (ones, others, choosing, seed) => {
      const order = () => {
        const make = (kind: string) => (each: (typeof ones)[number], index: number) =>
          target(`${kind}${index}`, each.figure, each);
        let draw = seed;
        const fraction = () => {
          draw = (draw * 7 + 3) % 1_009;
          return draw / 1_009;
        };
        const chance = { ...random, fraction };
        const groups = { native: ones.map(make('n')), foreign: others.map(make('f')) };
        return orderCandidates(groups, { ...wish, strategy: choosing, random: chance }).queue.map(
          ({ provider }) => provider.name,
        );
      };
      const names = order();
      assert.deepEqual(names, order());
      assert.equal(new Set(names).size, ones.length + others.length);
      assert.ok(names.slice(0, ones.length).every((name) => name.startsWith('n')));
    }),
  );
});

const vendors = {
  a: { keys: 'one', speaks: { chat: 'https://a.example' } },
  b: { keys: 'one', speaks: { chat: 'https://b.example' } },
};

test('the route may choose the fastest for all models, and a model may override it', async () => {
  const { go } = await bench({ strategy: 'fastest' }, vendors);
  const entry = modelWith('a', 'b');
  await go(entry, [{ ...ok, takesMs: 900 }], { stream: true });
  await go(entry, [{ ...ok, takesMs: 100 }], { stream: true });
  const seen = { a: 0, b: 0 };
  for (let round = 0; round < 200; round++) {
    const trip = await go(entry, [{ ...ok, takesMs: 300 }], { stream: true });
    seen[trip.targets[0]!.provider as 'a' | 'b'] += 1;
  }
  assert.ok(seen.a > 0 && seen.b > 0, 'both are asked as long as both take the same time');
  for (let round = 0; round < 20; round++)
    assert.deepEqual(credentials(await go({ ...entry, strategy: 'ordered' }, [ok])), ['a#1']);
});

test('a slow target gets little traffic once it is known, and most of it when it has become the faster one', async () => {
  const { go } = await bench({}, vendors);
  const entry = { ...modelWith('a', 'b'), strategy: 'fastest' as const };
  const takes: Record<string, number> = { a: 800, b: 100 };
  const share = async () => {
    let ofA = 0;
    for (let round = 0; round < 300; round++) {
      let first = '';
      const step = {
        ...ok,
        get takesMs() {
          return takes[first]!;
        },
      };
      await go(entry, [step], {
        stream: true,
        seen: (name) => {
          first = name;
        },
      });
      if (first === 'a') ofA += 1;
    }
    return ofA / 300;
  };
  const before = await share();
  assert.ok(before < 0.2, `${before}`);
  takes['a'] = 20;
  // As long as it looks slow, one request in twenty tells how it is.
  await share();
  await share();
  const after = await share();
  assert.ok(after > 0.5, `${after}`);
});

test('a failed target is followed by the next, and an unreachable one does not count as fast', async () => {
  const { go } = await bench({ strategy: 'fastest' }, vendors);
  const entry = modelWith('a', 'b');
  let tried = 0;
  for (let round = 0; round < 60; round++) {
    const trip = await go(entry, [{ ...ok, byProvider: { a: unreachable } }, ok], { stream: true });
    assert.equal(trip.targets.at(-1)!.provider, 'b');
    tried += trip.targets.length - 1;
  }
  assert.ok(tried >= 5 && tried < 20, `${tried} of 60 went to it before it was passed over`);
});
