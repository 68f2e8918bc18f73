/** The text of a stored timeline: its events are read as JSON would keep them, whatever values they have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineEvent, type EventValue, maxTimelineEvents } from '../../../plugins/common/domain/timeline.ts';
import { eventsOf, storable, storedTimeline } from '../../../plugins/request-log/timeline.ts';
import { fc } from '../../helpers/properties.ts';

const kind = defineEvent('stored-timeline.said', (...values: EventValue[]) => values.join(' '));
const event = (at: number, values: readonly EventValue[] | (() => readonly EventValue[] | undefined)) => ({
  at,
  kind,
  values,
});
const stored = (...events: ReturnType<typeof event>[]) => {
  const text = storedTimeline(events, 1_000) ?? null;
  // It stands in JSON as it is.
  if (text !== null) assert.equal(JSON.stringify(text), `"${text}"`);
  return eventsOf(text);
};

test('values are restored as JSON keeps them: texts quoted, masked and bounded, invalid numbers as null', () => {
  const odd = [Number.NaN, Number.POSITIVE_INFINITY, undefined, null] as EventValue[];
  const values: EventValue[] = [
    'say "hi"\n\\',
    'key sk-abcdefgh12345678',
    'x'.repeat(400),
    0,
    -1.5,
    1e21,
    true,
    ...odd,
  ];
  assert.deepEqual(stored(event(1_007, values)), [
    [7, kind.id, 'say "hi"\n\\', 'key ***', 'x'.repeat(300), 0, -1.5, 1e21, true, null, null, null, null],
  ]);
});

test('events keep their order, empty ones are left out, and time never runs backwards', () => {
  const broken = () => {
    throw new Error('no figures');
  };
  const events = stored(
    event(900, []),
    event(1_001, () => undefined),
    event(1_002, () => ['late']),
    event(1_003, broken),
  );
  assert.deepEqual(events, [
    [0, kind.id],
    [2, kind.id, 'late'],
    [3, kind.id, 'could not be rendered: Error: no figures'],
  ]);
  assert.equal(storedTimeline([], 1_000), undefined);
  assert.equal(storedTimeline([event(1_000, () => undefined)], 1_000), undefined);
  assert.equal(storedTimeline(undefined, 1_000), undefined);
});

test('events and their values are bounded', () => {
  const many = stored(
    ...Array.from({ length: 60 }, (_, index) => event(1_000, Array(index === 0 ? 60 : 1).fill(index))),
  );
  assert.deepEqual([many.length, many[0]!.length], [maxTimelineEvents, 2 + 40]);
});

test('short texts have the same masks, quotes and characters as long ones, once and again', () => {
  const pieces = [
    'sk-',
    'org-',
    'AIza',
    'Bearer ',
    '://',
    ':',
    '@',
    '"',
    '\\',
    '\n',
    '\0',
    '\ud800',
    '😀',
    '-',
    'a',
    'Zz9',
    ' ',
    '/',
  ];
  const texts = fc.oneof(
    fc.array(fc.constantFrom(...pieces), { maxLength: 9 }).map((parts) => parts.join('')),
    fc.string(),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const said = storable(text, 300);
      assert.deepEqual(stored(event(1_000, [text, text])), [[0, kind.id, said, said]]);
    }),
    { numRuns: 5_000 },
  );
});

test('a bounded number of different texts is kept', () => {
  for (let index = 0; index < 3_000; index++) {
    const text = `a text that is long enough: ${index}`;
    assert.deepEqual(stored(event(1_000, [text])), [[0, kind.id, text]]);
  }
});

test('numbers are read as JSON keeps them', () => {
  const numbers = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.constantFrom(-0, 0x3fff_ffff, 0x4000_0000),
  );
  fc.assert(
    fc.property(numbers, (number) => {
      assert.deepEqual(stored(event(1_000, [number])), JSON.parse(JSON.stringify([[0, kind.id, number]])));
    }),
    { numRuns: 5_000 },
  );
});

test('timelines that earlier versions stored are read as they are', () => {
  assert.deepEqual(eventsOf([[7, kind.id, 'a;b,c', null, true]]), [[7, kind.id, 'a;b,c', null, true]]);
  assert.deepEqual(eventsOf(null), []);
});

test('an id that would part a timeline is refused', () => {
  assert.throws(() => defineEvent('stored-timeline.a,b', () => ''), /needs an id/);
});

test('a long timeline leaves nothing in the next', () => {
  const long = Array.from({ length: 40 }, () => event(1_000, Array(40).fill('\u{1f600}'.repeat(150))));
  assert.equal(stored(...long)[39]![41], '\u{1f600}'.repeat(150));
  assert.deepEqual(stored(event(1_000, ['second'])), [[0, kind.id, 'second']]);
});
