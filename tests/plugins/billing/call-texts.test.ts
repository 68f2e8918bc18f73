/** The database gets the records of journal lines unchanged, with any text in them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callRecordsIn } from '../../../plugins/billing/ledger/call-texts.ts';
import { factsText } from '../../../plugins/billing/model/record-texts.ts';
import {
  encodeAttempts,
  encodeRecords,
  type HoldRecord,
  type JournalRecord,
} from '../../../plugins/billing/model/records.ts';
import {
  holdOf,
  holdText,
  newHold,
  planNamed,
  sentMembers,
  settleText,
} from '../../../plugins/billing/reservations/hold.ts';
import type { Terms } from '../../../plugins/billing/reservations/terms.ts';
import { PriceVersion } from '../../../plugins/common/domain/prices.ts';
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

const wild = fc.oneof(
  nasty,
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\0', '\ud800', 'a\udc00b', '\u{1f600}', 'é', '\u2028'),
);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const number = fc.oneof(fc.nat(), fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0, 1e21));
/** What a parser reads of a record that JSON has written, without what no database text can hold. */
const asStored = (record: object) => (JSON.parse(encodeRecords([record as JournalRecord])) as unknown[])[0];
const isWellWritten = (text: string, record: object) => {
  assert.deepEqual(JSON.parse(`${text}}`), asStored(record));
  // Nothing of it ends a line, and its kind comes first.
  assert.doesNotMatch(text, /\n/);
  assert.match(text, /^\{"kind":"/);
};

test('facts are written as JSON would write their record, whatever they are', () => {
  const row = fc.record({
    ...{
      request_id: wild,
      received_at: wild,
      operation: wild,
      protocol: maybe(wild),
      account_id: maybe(wild),
      key_id: maybe(wild),
      person: maybe(wild),
      project: maybe(wild),
    },
    ...{
      model: maybe(wild),
      provider: maybe(wild),
      upstream_model: maybe(wild),
      streamed: fc.boolean(),
      status: number,
    },
    ...{ outcome: fc.constantFrom('complete' as const, 'failed' as const, 'client_left' as const) },
    ...{
      error_kind: maybe(wild),
      error_code: maybe(wild),
      attempts: number,
      first_byte_ms: maybe(number),
      total_ms: number,
    },
    ...{ bytes_in: number, bytes_out: number, usage: fc.constant(undefined), usage_estimated: fc.constant(undefined) },
    ...{ finish: maybe(wild), upstream_id: maybe(wild), dropped: maybe(fc.array(wild)), trace_id: maybe(wild) },
  });
  fc.assert(
    fc.property(row, maybe(wild), (given, story) => {
      const {
        request_id: id,
        operation,
        protocol,
        model,
        provider,
        upstream_model: target,
        streamed,
        status,
        outcome,
      } = given;
      const {
        error_kind: errorKind,
        error_code: errorCode,
        attempts,
        first_byte_ms: firstByteMs,
        total_ms: totalMs,
      } = given;
      const { bytes_in: bytesIn, bytes_out: bytesOut, dropped } = given;
      const stored = story === undefined ? undefined : JSON.stringify(story.toWellFormed().replaceAll('\0', '\ufffd'));
      const head = {
        kind: 'FACTS',
        id,
        operation,
        protocol,
        asked: model,
        provider,
        target,
        streamed,
        status,
        outcome,
      };
      const rest = {
        errorKind,
        errorCode,
        tries: attempts,
        firstByteMs,
        totalMs,
        bytesIn,
        bytesOut,
        dropped,
        story: stored,
      };
      isWellWritten(factsText(given, story), { ...head, ...rest });
    }),
    { numRuns: 1_000 },
  );
});

test('a hold, its first attempt and its charge are written as JSON would write their records, whatever their texts are', () => {
  const given = fc.record({
    ...{ id: wild, accountId: wild, keyId: wild, model: wild, plan: maybe(wild), version: wild, tier: wild },
    attribution: maybe(fc.record({ person: maybe(wild), project: maybe(wild) })),
    ...{
      inputTokens: number,
      outputTokens: number,
      counted: maybe(fc.constant({ image: 2 })),
      at: fc.nat(),
      held: fc.bigInt({ min: 0n }),
    },
    ...{
      provider: wild,
      credential: wild,
      reason: wild,
      finish: maybe(wild),
      upstreamId: maybe(wild),
      error: maybe(wild),
    },
    ...{
      own: maybe(fc.bigInt({ min: 0n })),
      writtenOff: fc.constantFrom(0n, 7n),
      cost: fc.bigInt({ min: 0n }),
      served: fc.boolean(),
    },
  });
  fc.assert(
    fc.property(given, (of) => {
      const {
        id,
        accountId,
        keyId,
        model,
        inputTokens,
        outputTokens,
        counted,
        at,
        version,
        tier,
        provider,
        credential,
      } = of;
      const price = { input: 1_000n, output: 2_000n };
      const ratio = { numerator: 8n, denominator: 5n };
      const terms = {
        ...{ id, accountId, keyId, model, inputTokens, outputTokens, ratio, at, context: {}, entry: undefined },
        prices: new PriceVersion({ name: version, base: price as never, label: tier }),
        allowance: { tools: 0, images: 0, seconds: 0, ...(counted === undefined ? {} : { others: counted }) },
        plan: of.plan === undefined ? undefined : planNamed(of.plan, at),
        attribution: of.attribution,
      } as unknown as Terms;
      const hold = newHold(terms, of.held as never, undefined, at);
      const sent = { number: 1, at, provider, model, credential, protocol: 'chat' };
      const parties = { account: accountId, key: keyId, model, plan: of.plan, ...of.attribution };
      const priced = {
        price: { input: '1000', output: '2000' },
        ratio: '8/5',
        version,
        tier: tier === '' ? undefined : tier,
      };
      const held = {
        kind: 'HOLD',
        id,
        at,
        ...parties,
        input: inputTokens,
        output: outputTokens,
        counted,
        amount: `${of.held}`,
        ...priced,
      };
      isWellWritten(`${holdText(hold)},"sent":{${sentMembers(sent)}}`, { ...held, sent });
      const { person, project } = asStored(held) as HoldRecord;
      const isAttributed = person !== undefined || project !== undefined;
      const again = holdOf(asStored(held) as HoldRecord, 1).terms.attribution;
      assert.deepEqual(again, isAttributed ? { person, project } : undefined, 'read again after a crash');
      const note = {
        number: 1,
        provider,
        model,
        credential,
        protocol: 'chat',
        startedAt: at,
        result: 'answered' as const,
        error: of.error,
      };
      const { reason, finish, upstreamId, own, cost, writtenOff } = of;
      const settlement = {
        kind: 'SETTLE',
        usage: {},
        estimated: false,
        terminal: true,
        reason,
        finish,
        upstreamId,
      } as const;
      const charge = { cost, usage: { input: 3 }, priced: { price, version, tier }, ratio, own };
      const text = settleText(
        hold,
        at + 5,
        { ...settlement, ...(of.served ? { served: { name: 's' } } : {}) } as never,
        charge as never,
        { notes: [note], writtenOff } as never,
      );
      isWellWritten(text, {
        ...{
          kind: 'SETTLE',
          id,
          at: at + 5,
          ...parties,
          heldAt: at,
          input: inputTokens,
          held: `${of.held}`,
          cost: `${cost}`,
        },
        ...{ usage: { input: 3 }, estimated: false, terminal: true, reason, finish, upstreamId, ...priced },
        ...{ own: own?.toString(), absorbed: writtenOff === 0n ? undefined : '7' },
        ...(of.served ? {} : { provider, target: model }),
        attempts: encodeAttempts([note], of.served ? undefined : note),
      });
    }),
    { numRuns: 1_000 },
  );
});
