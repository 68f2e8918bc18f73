/** Rendezvous hashing: even shares, weights, and that only the sessions of a place that goes are moved. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { affinity, seedOf, weightedAffinity } from '../../plugins/common/kit/rendezvous.ts';
import { fc } from '../helpers/properties.ts';

const sessions = Array.from({ length: 6_000 }, (_, index) => seedOf(`session ${index}`));

function nearest(
  session: number,
  places: readonly string[],
  score = affinity as (session: number, place: number, name: string) => number,
): string {
  return places.reduce((best, place) => {
    return score(session, seedOf(place), place) > score(session, seedOf(best), best) ? place : best;
  });
}

function shares(places: readonly string[], score?: Parameters<typeof nearest>[2]): number[] {
  const chosen = sessions.map((session) => nearest(session, places, score));
  return places.map((place) => chosen.filter((name) => name === place).length / sessions.length);
}

test('places with similar names get even shares', () => {
  for (const share of shares(['key#1', 'key#2', 'key#3', 'key#4']))
    assert.ok(Math.abs(share - 0.25) < 0.03, `${share}`);
});

test('sessions are distributed by weight, and none go to a place without weight', () => {
  const weights: Record<string, number> = { a: 6, b: 3, c: 1, d: 0 };
  const got = shares(Object.keys(weights), (session, place, name) => weightedAffinity(session, place, weights[name]!));
  for (const [index, wanted] of [0.6, 0.3, 0.1, 0].entries())
    assert.ok(Math.abs(got[index]! - wanted) < 0.03, `${got[index]} instead of ${wanted}`);
  assert.equal(got[3], 0);
});

test('when a place is removed, only its sessions move', () => {
  const places = ['a', 'b', 'c', 'd'];
  const rest = places.filter((place) => place !== 'b');
  const moved = sessions.filter((session) => nearest(session, places) !== nearest(session, rest));
  assert.ok(moved.every((session) => nearest(session, places) === 'b'));
  const to = rest.map((place) => moved.filter((session) => nearest(session, rest) === place).length / moved.length);
  for (const share of to) assert.ok(Math.abs(share - 1 / 3) < 0.06, `they go evenly to the others: ${to}`);
});

test('scores lie between 0 and 1, and are the same in every process', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 32 - 1), fc.nat(2 ** 32 - 1), (session, place) => {
      const score = affinity(session, place);
      assert.ok(score > 0 && score < 1);
      assert.equal(score, affinity(session, place));
    }),
  );
  // Processes of two versions serve side by side while one takes the other's place.
  assert.equal(affinity(seedOf('session'), seedOf('place')), 0.13958942785393447);
});
