/** The small sums behind the operator's pages. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatUsd, parseUsd } from '../../../../plugins/common/domain/money.ts';
import { bucketLabel, rateText } from '../../../../plugins/console/web/src/pages/operator/monitor/bucket-label.ts';
import { marginOfCharge, sharesOf, sumOfRows } from '../../../../plugins/console/web/src/pages/operator/sums/margin.ts';
import { leastMargin, mainCosts } from '../../../../plugins/console/web/src/pages/operator/sums/price-rows.ts';
import { toCsv } from '../../../../plugins/console/web/src/pages/operator/sums/rows-csv.ts';
import { timelineOf } from '../../../../plugins/console/web/src/pages/operator/sums/timeline.ts';
import {
  type Circuit,
  canWake,
  circuitOf,
  countdown,
  keyState,
  reasonsOf,
  stateOf,
  type UpstreamKey,
  worstFirst,
} from '../../../../plugins/console/web/src/pages/operator/sums/upstream-state.ts';
import {
  isAmount,
  isRatio,
  minus,
  percentOf,
  plainRatio,
  sum,
} from '../../../../plugins/console/web/src/pages/operator/sums/usd.ts';
import { changeOf } from '../../../../plugins/console/web/src/parts/named-span.ts';
import { resultOf } from '../../../../plugins/console/web/src/parts/result-of.ts';
import { fc } from '../../../helpers/properties.ts';

const amount = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }).map(formatUsd);

test('sums and differences of amounts are exact to the nano-dollar', () => {
  assert.equal(minus('0.30', '0.1'), '0.20');
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 20 }), amount, (amounts, other) => {
      const total = sum(amounts);
      assert.equal(minus(sum([...amounts, other]), other), total);
      assert.equal(
        parseUsd(total),
        amounts.reduce((all, one) => all + parseUsd(one), 0n),
      );
    }),
  );
});

test('a share of nothing is not shown', () => {
  assert.equal(percentOf('3', '40'), 7.5);
  assert.equal(percentOf('-1', '3'), -33.3);
  assert.equal(percentOf('1', '0.00'), undefined);
});

test('an accepted amount is one that the gateway reads', () => {
  for (const text of ['1', '0.000000001', ' 12.5 ']) assert.ok(isAmount(text), text);
  for (const text of ['', '0', '0.00', '-1', '1e3', '1.0000000001', '1,5']) assert.ok(!isAmount(text), text);
  assert.ok(isRatio('0.85') && !isRatio('0') && !isRatio('1.2345678'));
});

const key = (change: Partial<UpstreamKey>): UpstreamKey => ({
  credential: 'a#1',
  disabled: false,
  restsMs: 0,
  modelRests: [],
  reason: null,
  ...change,
});

test('an upstream has the worst state that all its keys share', () => {
  const resting = key({ restsMs: 5_000, reason: 'rate limited' });
  assert.equal(stateOf({ disabled: false, keys: [key({})] }), 'healthy');
  assert.equal(stateOf({ disabled: false, keys: [key({}), resting] }), 'cooling');
  assert.equal(stateOf({ disabled: false, keys: [resting] }), 'broken');
  assert.equal(stateOf({ disabled: false, keys: [resting] }, 5_000), 'healthy');
  assert.equal(stateOf({ disabled: true, keys: [key({})] }), 'disabled');
  assert.equal(stateOf({ disabled: false, keys: [key({ disabled: true })] }), 'disabled');
  assert.equal(stateOf({ disabled: false, keys: [] }), 'keyless');
  assert.deepEqual(reasonsOf({ disabled: false, keys: [resting, resting, key({})] }), ['rate limited']);
});

test('an upstream with an open circuit is failing, and its circuit can be closed', () => {
  const target = (circuit: Circuit, opensForMs = 0) => ({ model: circuit, circuit, opensForMs, recent: 10, failed: 1 });
  const withModel = (...targets: ReturnType<typeof target>[]) => ({ disabled: false, keys: [key({})], targets });
  assert.equal(stateOf(withModel(target('closed'))), 'healthy');
  assert.equal(canWake(withModel(target('closed'))), false);
  for (const circuit of ['open', 'half_open'] as const) {
    assert.equal(stateOf(withModel(target('closed'), target(circuit))), 'failing');
    assert.equal(canWake(withModel(target(circuit))), true);
  }
  assert.equal(stateOf({ ...withModel(target('open')), keys: [key({ restsMs: 9 })] }), 'broken');
  assert.equal(circuitOf(target('open', 500), 499), 'open');
  assert.equal(circuitOf(target('open', 500), 500), 'half_open');
  const often = { ...target('closed'), failed: 9 };
  const seldom = target('closed');
  assert.deepEqual(
    worstFirst([seldom, often, target('half_open'), target('open')]).map(({ circuit }) => circuit),
    ['open', 'half_open', 'closed', 'closed'],
  );
  assert.equal(worstFirst([seldom, often])[0], often);
});

test('a key in cooldown for one model is usable for the others', () => {
  const partly = key({ modelRests: [{ model: 'm', restsMs: 100 }] });
  assert.equal(keyState(partly), 'partly');
  assert.equal(keyState(partly, 100), 'ready');
  assert.equal(keyState(key({ restsMs: 1 })), 'resting');
});

test('a countdown ends at zero', () => {
  assert.equal(countdown(64_001), '1:05');
  assert.equal(countdown(7_384_000), '2:03:04');
  assert.equal(countdown(-5), '0:00');
});

test('a timeline has every moment once, in order, within the request', () => {
  const request = {
    receivedAt: '2026-11-21T08:00:00.000Z',
    status: 200,
    outcome: 'complete',
    firstByteMs: 700,
    totalMs: 900,
    dropped: ['logprobs'],
    story: [
      { atMs: 3, by: 'rate-limit', text: 'Within the limits.', kind: 'rate-limit.standing', values: [] },
      { atMs: 5, by: 'route', text: 'Two upstreams.', kind: 'route.targets', values: [] },
    ],
  };
  const attempt = { number: 1, provider: 'a', model: 'm', startedAt: '2026-11-21T08:00:00.006Z', result: 'refused' };
  const second = { ...attempt, number: 2, startedAt: '2026-11-21T08:00:00.100Z', result: 'answered', status: 200 };
  const moments = timelineOf(request, [second, attempt]);
  assert.deepEqual(
    moments.map(({ kind, atMs }) => `${kind} ${atMs}`),
    ['received 0', 'story 3', 'story 5', 'dropped 6', 'attempt 6', 'attempt 100', 'first-byte 700', 'end 900'],
  );
  assert.deepEqual(
    moments.flatMap((moment) => ('tone' in moment ? [moment.tone] : [])),
    ['bad', 'good', 'good'],
  );
});

test('an attempt is placed at its timeline event with its text, at any clock resolution', () => {
  const line = (kind: string, ...values: (string | number)[]) => ({ atMs: 1, by: 'route', text: kind, kind, values });
  const timeline = [
    line('route.targets', 'a/m', 0),
    line('route.goes', 1, 'a', 'm', 'a#1'),
    line('route.attempt', 1, 'refused'),
    line('billing.end'),
  ];
  const request = {
    receivedAt: '2026-11-21T08:00:00Z',
    status: 200,
    outcome: 'complete',
    totalMs: 1,
    dropped: [],
    story: timeline,
  };
  const attempt = { number: 1, provider: 'a', model: 'm', startedAt: '2026-11-21T08:00:00Z', result: 'refused' };
  const moments = timelineOf(request, [attempt, { ...attempt, number: 2 }]);
  assert.deepEqual(
    moments.map((moment) =>
      moment.kind === 'story'
        ? moment.line.kind
        : moment.kind === 'attempt'
          ? moment.notes.map(({ kind }) => kind)
          : moment.kind,
    ),
    ['received', [], 'route.targets', ['route.goes', 'route.attempt'], 'billing.end', 'end'],
  );
});

test('ratios are shown as decimals if these are short', () => {
  assert.deepEqual(['1/1', '3/2', '1/3', '0.9', '17/20'].map(plainRatio), ['1', '1.5', '1/3', '0.9', '0.85']);
});

test('a rate has two significant digits', () => {
  const day = 86_400_000;
  assert.deepEqual(
    [rateText(0, day), rateText(42, day), rateText(1, 90 * day), rateText(5, 1_000), rateText(250_000, 1_000)],
    ['0', '0.00049', '0.00000013', '5.0', '250,000'],
  );
});

test('a short bucket is labelled by its time, a long one by its day, both in the zone of the buckets', () => {
  const at = new Date('2026-11-21T00:00:00Z');
  const label = (tz: string, bucketMs: number) => bucketLabel(at, { tz, bucketMs }, 'en');
  assert.equal(label('UTC', 60_000), '00:00');
  assert.equal(label('Asia/Kolkata', 60_000), '05:30');
  assert.match(label('Asia/Kolkata', 3_600_000), /^Sat,? 05:30$/);
  assert.match(label('America/New_York', 3_600_000), /^Fri,? 19:00$/);
  assert.equal(label('UTC', 86_400_000), 'Nov 21');
  assert.equal(label('America/New_York', 86_400_000), 'Nov 20');
});

test('a request that reached no upstream ends with its own kind', () => {
  const refused = {
    receivedAt: '2026-11-21T08:00:00Z',
    status: 429,
    outcome: 'complete',
    totalMs: 2,
    dropped: [],
    story: [],
  };
  assert.deepEqual(timelineOf(refused, []), [
    { kind: 'received', atMs: 0 },
    { kind: 'end', atMs: 2, tone: 'bad' },
  ]);
});

test('no cell of a CSV is executed by a spreadsheet, and every cell is restored on reading', () => {
  assert.equal(toCsv(['a', 'b'], [['=1+1', '-0.50']]), "\u{feff}a,b\r\n'=1+1,-0.50\r\n");
  assert.equal(toCsv(['a'], [['x "y", z'], [null]]), '\u{feff}a\r\n"x ""y"", z"\r\n\r\n');
  fc.assert(
    fc.property(fc.string(), (text) => {
      const cell = toCsv(['h'], [[text]]).slice('\u{feff}h\r\n'.length, -2);
      const inner = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
      assert.ok(inner === text || inner === `'${text}`);
      assert.ok(!/^[=+@\t\r]/.test(inner));
    }),
  );
});

test('a request has the same result for clients, operators and the filter, and an answer that broke off has failed', () => {
  const of = (status: number, outcome: 'complete' | 'client_left' | 'failed') => resultOf({ status, outcome });
  assert.deepEqual([of(200, 'complete'), of(302, 'complete')], ['ok', 'ok']);
  assert.deepEqual([of(429, 'complete'), of(503, 'complete')], ['client_error', 'upstream_error']);
  assert.deepEqual([of(200, 'failed'), of(400, 'failed')], ['upstream_error', 'upstream_error']);
  assert.deepEqual([of(200, 'client_left'), of(500, 'client_left')], ['left', 'left']);
});

test('a margin has its share of the revenue that it is of, and rows add up to their total', () => {
  const known = {
    cost: '10.00',
    refunded: '1.00',
    uncosted: '3.00',
    ownCost: '4.00',
    writtenOff: '0.50',
    margin: '1.50',
  };
  assert.deepEqual(sharesOf(known), { margin: 25, known: 66.6 });
  const unknown = { ...known, ownCost: null, margin: null };
  assert.equal(sharesOf(unknown), undefined);
  assert.deepEqual(sumOfRows([known, unknown]), {
    ...known,
    ...{ cost: '20.00', refunded: '2.00', uncosted: '6.00', writtenOff: '1.00' },
  });
  assert.equal(sumOfRows([unknown]).margin, null);
  assert.equal(marginOfCharge({ cost: '2.00', refunded: '0.50' }, '1.00', [{ absorbed: '0.25' }]), '0.25');
});

test('the least margin of a list is that of its worst class, and a class without own cost counts for nothing', () => {
  const line = (name: string, yours: string, official = yours) => ({
    class: name,
    per: 'million' as const,
    official,
    yours,
  });
  const sheet = (...lines: ReturnType<typeof line>[]) => ({ version: '1', ratio: '1', lines, tiers: [] });
  const sale = sheet(line('input', '0.75'), line('output', '4.50'), line('cache_read', '0.10'));
  const cost = sheet(line('input', '0.60'), line('output', '1.00'));
  assert.deepEqual(leastMargin(sale, cost), { class: 'input', percent: 20 });
  assert.deepEqual(leastMargin(sale, sheet(line('output', '9'))), { class: 'output', percent: -100 });
  assert.equal(leastMargin(sale, null), undefined);
  assert.equal(leastMargin(null, cost), undefined);
  assert.deepEqual(mainCosts(cost), ['0.60', '1.00']);
});

test('a change is a share of the figure before; against nothing, a loss or the unknown there is none', () => {
  assert.deepEqual([changeOf(3, 2), changeOf(1, 2), changeOf(0, 2), changeOf(2, 2)], [0.5, -0.5, -1, 0]);
  for (const [now, before] of [
    [1, 0],
    [1, -1],
    [1, null],
    [1, undefined],
    [null, 1],
    [undefined, 1],
  ] as const)
    assert.equal(changeOf(now, before), undefined);
});
