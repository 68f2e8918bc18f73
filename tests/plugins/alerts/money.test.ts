/** Alerts about money: amounts are exact from the ledger to the message. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configSchema, problemsOf, rulesOf } from '../../../plugins/alerts/config.ts';
import { marginMeasured, moneyKinds, spikeOf } from '../../../plugins/alerts/kinds/money.ts';
import { messageOf, shownValue } from '../../../plugins/alerts/message.ts';
import { AlertRows } from '../../../plugins/alerts/rows.ts';
import { verdictOf } from '../../../plugins/alerts/state.ts';
import type { LedgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import type { Span } from '../../../plugins/common/domain/admin/pages.ts';
import { type Money, money, parseUsd, zero } from '../../../plugins/common/domain/money.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fc } from '../../helpers/properties.ts';

const hourMs = 3_600_000;
const usdOf = (text: string | number | undefined): Money => parseUsd(String(text));
const amount = fc.bigInt({ min: 0n, max: 10n ** 21n }).map(money);
const group = { group: 'm', requests: 10, usage: {} };
const none = { threshold: zero, clear: zero };

test('a margin is bad exactly where the cost is above the charge, down to a nano-dollar', () => {
  fc.assert(
    fc.property(amount, fc.bigInt({ min: -3n, max: 10n ** 12n }), (cost, more) => {
      const ownCost = money(cost + more < 0n ? 0n : cost + more);
      const { value } = marginMeasured({ ...group, cost, ownCost })!;
      assert.equal(verdictOf('below', none, value), ownCost > cost ? 'bad' : 'good');
    }),
  );
});

test('a model has no margin where the own cost of no call is known', () => {
  assert.equal(marginMeasured({ ...group, cost: money(1n), ownCost: money(0n), ownCostUnknown: 10 }), undefined);
});

test('a margin counts the calls with a known own cost, less refunds and written-off costs', () => {
  const sums = { cost: usdOf('10'), uncosted: usdOf('4'), refunded: usdOf('1'), writtenOff: usdOf('2') };
  assert.deepEqual(marginMeasured({ ...group, ...sums, ownCost: usdOf('3.5'), ownCostUnknown: 4 }), {
    subject: 'm',
    value: usdOf('-0.5'),
    sample: 6,
    fields: { charged: '5.00', cost: '5.50' },
  });
});

test('a spike is a multiple of the mean hour of a day, and a new account has none', () => {
  assert.equal(spikeOf('a', money(10n), undefined), undefined);
  assert.equal(spikeOf('a', money(10n), money(0n)), undefined);
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 15n }), fc.integer({ min: 1, max: 100 }), (hourly, times) => {
      const spent = money(hourly * BigInt(times));
      const { value, sample, fields } = spikeOf('a', spent, money(hourly * 24n))!;
      assert.deepEqual([value, sample], [BigInt(times) * 1_000_000_000n, spent]);
      assert.deepEqual([fields!['spent'], fields!['usual']].map(usdOf), [spent, hourly]);
    }),
  );
});

test('the mean is rounded to a whole nano-dollar, half up', () => {
  const { fields } = spikeOf('a', parseUsd('1'), parseUsd('0.25'))!;
  assert.deepEqual(fields, { spent: '1.00', usual: '0.010416667' });
});

test('windows of an hour or more are read from rollups in whole quarters', async () => {
  const requests: Span[] = [];
  const queries = {
    async spend({ from, until }: Span) {
      requests.push({ from, until });
      return [];
    },
  };
  const [margin, spike] = ['negative_margin', 'spend_spike'].map((name) => {
    return moneyKinds(() => queries as unknown as LedgerQueries).find((kind) => kind.name === name)!;
  });
  const at = (text: string) => Date.parse(`2026-11-02T${text}Z`);
  const now = at('12:05:00');
  await margin!.measure!({ from: now - hourMs, until: now + 1 });
  await spike!.measure!({ from: now - hourMs, until: now + 1 });
  await margin!.measure!({ from: now - 600_000, until: now + 1 });
  await spike!.measure!({ from: now - 600_000, until: now });
  const hour = { from: at('11:15:00'), until: at('12:15:00') };
  const day = { from: at('11:15:00') - 24 * hourMs, until: at('11:15:00') };
  const short = { from: now - 600_000, until: now };
  const before = { from: now - 25 * 600_000, until: now - 600_000 };
  assert.deepEqual(requests, [hour, hour, day, { ...short, until: now + 1 }, short, before]);
});

const kinds = moneyKinds(() => undefined);
const config = (rules: object) => configSchema.parse({ rules });
const ruleOf = (name: string, rules: object) => rulesOf(config(rules), kinds).find((rule) => rule.name === name)!;

test('thresholds and samples in USD are exact, and more than nine decimals are refused', () => {
  const margin = ruleOf('negative_margin', { negative_margin: { threshold: -0.1, clear: 0 } });
  assert.deepEqual([margin.threshold, margin.clear, margin.least], [-100_000_000n, 0n, 10]);
  const spike = ruleOf('spend_spike', { spend_spike: { least: 0.3 } });
  assert.deepEqual([spike.threshold, spike.clear, spike.least], [5_000_000_000n, 3_000_000_000n, 300_000_000n]);
  const faults = problemsOf(config({ negative_margin: { threshold: -0.1234567891, clear: 0 } }), kinds, [], () => true);
  assert.deepEqual(faults, [
    {
      path: ['rules', 'negative_margin', 'threshold'],
      message: '"-0.1234567891" is not an amount of USD with at most nine decimals',
    },
  ]);
});

test('an amount is read exactly from the database, and shown without an exponent', async () => {
  const database = await openDatabase({ plugins: ['alerts'] });
  const rows = new AlertRows(database);
  const state = { phase: 'running', since: 0, sentAt: 0, calmSince: undefined, acknowledged: false } as const;
  const facts = { kind: 'negative_margin', title: 'Loss', unit: 'usd', fields: {}, beganAt: 0, version: 1 } as const;
  await fc.assert(
    fc.asyncProperty(fc.uuid(), fc.bigInt({ min: -(10n ** 21n), max: 10n ** 21n }), async (id, nano) => {
      const value = money(nano);
      await rows.begin({ ...facts, id, rule: id, subject: 'm', value, threshold: zero, state }, undefined, 0);
      assert.equal((await rows.open()).find((one) => one.id === id)!.value, nano);
      const [view] = (await rows.list({ rule: id }, { limit: 1 })).rows;
      assert.equal(usdOf(view!.value), nano);
      assert.equal(view!.threshold, '0.00');
    }),
    { numRuns: 30 },
  );
});

test('a message shows a nano-dollar as a decimal', () => {
  const facts = { id: 'a', event: 'begin', gateway: 'g', rule: 'r', kind: 'k', kindTitle: 'K', subject: 's' } as const;
  const [value, threshold] = [shownValue(money(-1n)), shownValue(zero)];
  const { text } = messageOf({ ...facts, value, threshold, unit: 'usd', fields: {}, beganAt: 0, at: 0 });
  assert.match(text, /^Value: -0\.000000001 USD, threshold: 0\.00 USD$/m);
});

test('a process with leased money is bad ten minutes after its last sign; one without leases, and this one, never are', async () => {
  const at = 100 * hourMs;
  const node = { version: '1', journalPending: undefined, leases: 2, leased: usdOf('3.5'), self: false };
  const nodes = [
    { ...node, name: 'gone', seenAt: at - 600_001 },
    { ...node, name: 'late', seenAt: at - 600_000 },
    { ...node, name: 'empty', seenAt: 0, leases: 0, leased: zero },
    { ...node, name: 'this', seenAt: 0, self: true },
  ];
  const kinds = moneyKinds(() => ({ nodes: async () => nodes }) as Partial<LedgerQueries> as LedgerQueries);
  const kind = kinds.find(({ name }) => name === 'dead_leases')!;
  const found = await kind.measure!({ from: 0, until: at });
  const verdicts = found.map(({ subject, value, fields }) => {
    const verdict = verdictOf('above', kind.defaults as { threshold: number; clear: number }, value as number);
    return [subject, verdict, fields!['leased']];
  });
  assert.deepEqual(verdicts, [
    ['gone', 'bad', '3.50'],
    ['late', 'good', '3.50'],
  ]);
});
