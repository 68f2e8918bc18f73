/** Amounts, counts and times as the pages write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countdownText,
  countText,
  distanceText,
  durationText,
  localDecimals,
  localFormula,
  meanUsd,
  momentText,
  moneyText,
  shareText,
  spokenValue,
  typedAmount,
} from '../../../../plugins/console/web/src/parts/format.ts';
import { fc } from '../../../helpers/properties.ts';

test('from one dollar on an amount has cents, below it four significant digits', () => {
  const cases: Record<string, string> = {
    '0': '$0.00',
    '0.00': '$0.00',
    '12.345678901': '$12.34',
    '1234567.8': '$1,234,567.80',
    '0.4': '$0.40',
    '0.000012349': '$0.00001234',
    '0.123456': '$0.1234',
    '-3.999': '−$3.99',
    '999999999999.999999999': '$999,999,999,999.99',
  };
  for (const [usd, text] of Object.entries(cases)) assert.equal(moneyText(usd), text, usd);
});

test('a shown amount is never more than the real one, and never a whole cent less', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 21n }), (nano) => {
      const digits = nano.toString().padStart(10, '0');
      const usd = `${digits.slice(0, -9)}.${digits.slice(-9)}`;
      const [whole, fraction = ''] = moneyText(usd).replace(/[$,]/g, '').split('.');
      const shown = BigInt(whole + fraction.padEnd(9, '0'));
      assert.ok(shown <= nano && nano - shown < 10_000_000n);
    }),
  );
});

test('amounts and times have the decimals of the language, and typed ones are read back; a dot before three digits is not', () => {
  assert.equal(moneyText('1234567.8', 'de'), '1.234.567,80\u00a0$');
  assert.equal(moneyText('-0.000012349', 'de'), '−0,00001234\u00a0$');
  assert.equal(moneyText('23.81', 'zh'), '$23.81');
  assert.equal(durationText(3210, 'de'), '3,21 s');
  assert.equal(localDecimals('(10 input × 0.75) / 1M', 'de'), '(10 input × 0,75) / 1M');
  assert.equal(localFormula('(8461 input × 0.75 + 3 gpt-5.5) / 1M', 'de'), '(8.461 input × 0,75 + 3 gpt-5.5) / 1M');
  assert.deepEqual([spokenValue(12_345.5, 'de'), spokenValue('12345', 'de')], ['12.345,5', '12345']);
  const read = (text: string) => typedAmount(text, 'de');
  assert.deepEqual([' 12,50 ', '12.5', '1.000', '0.0001', '1.234,5'].map(read), ['12.50', '12.5', '', '0.0001', '']);
  assert.equal(typedAmount('1.000', 'en'), '1.000');
});

test('a mean is truncated to whole nano-dollars', () => {
  assert.equal(meanUsd('1', 3), '0.333333333');
  assert.equal(meanUsd('10.5', 2), '5.250000000');
  assert.equal(meanUsd('0.000000001', 2), '0.000000000');
  assert.equal(meanUsd('-0.5', 30), '-0.016666666');
});

test('counts, shares and spans are short', () => {
  assert.equal(countText(12345), '12,345');
  assert.equal(countText(1_230_000), '1.23M');
  assert.equal(shareText(1, 0), '–');
  assert.equal(shareText(973, 1000), '97.3%');
  assert.deepEqual(
    [durationText(420.4), durationText(3210), durationText(64_000), durationText(null)],
    ['420 ms', '3.21 s', '1 min 4 s', '–'],
  );
  assert.deepEqual(
    [countdownText(187_200_000), countdownText(11_520_000), countdownText(249_000), countdownText(-5)],
    ['2d 4h', '3h 12m', '4m 09s', '0m 00s'],
  );
  assert.equal(countdownText(11_520_000, 'zh'), '3小时 12分钟');
});

test('a moment of today shows the time, of another day the day too, of another year the year too', () => {
  const now = new Date(2026, 10, 21, 18, 0, 0);
  assert.equal(momentText(new Date(2026, 10, 21, 9, 5, 7), now), '09:05:07');
  assert.match(momentText(new Date(2026, 9, 3, 9, 5), now), /Oct 3.*09:05/);
  assert.match(momentText(new Date(2025, 9, 3, 9, 5), now), /2025/);
  assert.equal(distanceText(new Date(now.getTime() - 3 * 60_000), now), '3 minutes ago');
  assert.equal(distanceText(new Date(now.getTime() + 2 * 3_600_000), now), 'in 2 hours');
});
