/** The judge of the fleet's drive finds each thing that may go wrong between clients, vendor and ledger, and nothing where all is right. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BillEntry } from '../../plugins/sandbox/bill.ts';
import { type CallRow, type Evidence, judge } from './judge.ts';

const answerId = (index: number) => String(index).padStart(24, 'a');

const row = (index: number, more: Partial<CallRow> = {}): CallRow => ({
  ...{ id: `call-${index}`, accountId: 'account', model: 'm', targetModel: 'm', settled: true, estimated: false },
  ...{
    classes: { input: 5, output: index },
    upstreamId: `chatcmpl-${answerId(index)}`,
    priceVersion: 'old',
    heldAt: index,
  },
  attempts: [{ result: 'answered' }],
  ...more,
});
const entry = (index: number): BillEntry => ({
  ...{ number: index, at: 0, endedAt: 0, protocol: 'chat', model: 'm', requestId: undefined, outcome: 'complete' },
  ...{ answerId: answerId(index), usage: { input: 5, output: index } },
});

const evidence = (more: Partial<Evidence> = {}): Evidence => ({
  answers: { charged: new Map([['call-1', 'chat']]), refused: new Map([['call-9', 'chat']]) },
  ...{ keysSent: new Set(['a key']), keyedAccount: 'keyed', entries: [entry(1), entry(2), entry(3)], salvaged: 0 },
  sessions: new Map([
    ['call-3', 8],
    [`chatcmpl-${answerId(2)}`, 7],
  ]),
  ...more,
});
const rows = [row(1), row(2, { accountId: 'keyed' }), row(3)];
const found = (ledger: readonly CallRow[], more: Partial<Evidence> = {}) =>
  judge(ledger, evidence(more)).violations.join('\n');

test('a correct ledger passes, also with an estimated killed call, or one without an end in a salvaged journal', () => {
  assert.equal(found(rows), '');
  const none = { sessions: new Map() };
  assert.equal(found([row(1), row(2), row(3, { estimated: true, upstreamId: null })], none), '');
  const unknown = row(3, { settled: false, upstreamId: null, attempts: [{ result: 'unknown' }] });
  assert.equal(found([row(1), row(2), unknown], none), '');
  assert.equal(found([row(1), row(2)], { ...none, salvaged: 1 }), '');
});

test('lost calls, double charges and wrong charges are reported', () => {
  assert.match(found([row(1), row(2)]), /^1 requests that the vendor billed are in no row/);
  assert.match(found([...rows, row(4, { upstreamId: row(3).upstreamId })]), /was charged twice, as call-3 and call-4/);
  assert.match(found([...rows, row(4)]), /1 calls of m were charged exactly and never billed/);
  assert.match(found([...rows, row(4, { upstreamId: null })]), /1 calls of m were charged exactly and never billed/);
  assert.match(
    found([row(1), row(2), row(3, { classes: { input: 6, output: 3 } })]),
    /call-3 was charged for 9, the vendor billed 8/,
  );
  assert.match(found(rows, { keysSent: new Set() }), /1 charges for 0 Idempotency-Keys/);
});

test('a free or estimated whole answer of a client, and a charged refusal, are reported', () => {
  const free = row(1, { settled: false, attempts: [{ result: 'unknown' }] });
  assert.match(found([free, row(2), row(3)]), /call-1 was answered whole and never charged/);
  assert.match(
    found([row(1, { estimated: true }), row(2), row(3)]),
    /call-1 was answered whole and charged by an estimate/,
  );
  assert.match(
    found(rows, { answers: { charged: new Map(), refused: new Map([['call-2', 'chat']]) } }),
    /call-2 was refused and charged/,
  );
});

test('a response over WebSocket that is not charged exactly is reported', () => {
  assert.match(found(rows, { sessions: new Map([['call-4', 9]]) }), /call-4 has 9 tokens, exactly charged were none/);
  assert.match(found(rows, { sessions: new Map([['call-3', 9]]) }), /call-3 has 9 tokens, exactly charged were 8/);
});

test('a call that is charged by the other price, before or after the change, is reported', () => {
  const raised = { from: 2, to: 2, models: ['m'] };
  const changed = row(3, { priceVersion: 'new' });
  assert.equal(found([row(1), row(2), changed], { raised }), '');
  assert.match(found(rows, { raised }), /m has the prices old before they were raised and old behind/);
  assert.match(found([row(1, { priceVersion: 'new' }), row(2), changed], { raised }), /has the prices new before/);
});
