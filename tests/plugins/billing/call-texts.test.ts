/** The database gets the records of journal lines unchanged, with any text in them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callRecordsIn } from '../../../plugins/billing/ledger/call-texts.ts';
import { encodeAttempts, encodeRecords, type JournalRecord } from '../../../plugins/billing/model/records.ts';
import { fc } from '../../helpers/properties.ts';
import { attemptsIn } from '../../simulation/memory-records.ts';

const nasty = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '"kind":"SETTLE"',
    '{"kind":"FACTS"}',
    '],[',
    '}]',
    ',{"kind":"',
    '\\',
    '\\"kind\\":\\"VOID',
    '\n',
    '[[0,"a"]]',
  ),
);

const record = fc
  .record({
    kind: fc.constantFrom('HOLD', 'SENT', 'EXTEND', 'PROGRESS', 'SETTLE', 'VOID', 'FACTS'),
    id: nasty,
    model: nasty,
    story: fc.option(nasty, { nil: undefined }),
    attempts: fc.option(fc.array(fc.array(fc.oneof(nasty, fc.integer()))), { nil: undefined }),
    usage: fc.option(fc.dictionary(fc.constantFrom('input', 'output'), fc.nat()), { nil: undefined }),
  })
  .chain((values) =>
    // Others may put the kind anywhere.
    fc.constantFrom(values, values, values, Object.fromEntries(Object.entries(values).reverse()) as typeof values),
  );

test('ends and facts are cut out of lines as a parser finds them', () => {
  fc.assert(
    fc.property(fc.array(fc.array(record, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), (lines) => {
      const text = lines
        .map((records, index) => `0badcafe ${index * 7} 3 ${encodeRecords(records as unknown as JournalRecord[])}\n`)
        .join('');
      const all = lines.flat().map((each) => JSON.parse(encodeRecords([each as never])) as [{ kind: string }]);
      const wanted = (...kinds: string[]) => all.flat().filter(({ kind }) => kinds.includes(kind));
      const { ends, facts } = callRecordsIn(text);
      assert.deepEqual(ends, wanted('SETTLE', 'VOID'));
      assert.deepEqual(facts, wanted('FACTS'));
    }),
    { numRuns: 2_000 },
  );
});

test('attempts stored by position are read with their names', () => {
  const note = fc.record(
    {
      number: fc.nat(9),
      provider: fc.constantFrom('p', 'q', '0'),
      model: fc.constantFrom('m', 'n', '0'),
      ...{ credential: nasty, protocol: fc.constant('chat'), startedAt: fc.nat() },
      result: fc.constantFrom('refused', 'unknown', 'answered', 'not_sent'),
      status: fc.nat(599),
      durationMs: fc.nat(),
      error: nasty,
      bearer: fc.constantFrom('client', 'operator'),
      absorbed: fc.constantFrom('0', '17'),
      usage: fc.constantFrom({ input: 1 }, {}),
      estimated: fc.boolean(),
    },
    { requiredKeys: ['number', 'provider', 'model', 'credential', 'protocol', 'startedAt', 'result'] },
  );
  fc.assert(
    fc.property(fc.array(note, { maxLength: 4 }), (notes) => {
      const last = notes.at(-1);
      const attempts = encodeAttempts(notes as never, last as never);
      const stored = JSON.parse(JSON.stringify({ provider: last?.provider, target: last?.model, attempts }));
      assert.deepEqual(JSON.parse(JSON.stringify(attemptsIn(stored))), JSON.parse(JSON.stringify(notes)));
    }),
  );
});
