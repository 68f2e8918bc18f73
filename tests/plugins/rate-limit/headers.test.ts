/** Limits in the words of each protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goDuration, limitHeaders, rfc3339 } from '../../../plugins/rate-limit/headers.ts';
import type { LimitStatus } from '../../../plugins/rate-limit/limiter.ts';

const standings: LimitStatus[] = [
  { dimension: 'rpm', limit: 20, remaining: 19, resetMs: 3_000 },
  { dimension: 'rpd', limit: 1_000, remaining: 500, resetMs: 43_200_000 },
  { dimension: 'tpm', limit: 40_000, remaining: 35_000, resetMs: 7_500 },
  { dimension: 'concurrency', limit: 2, remaining: 1, resetMs: 0 },
];
const now = Date.parse('2030-01-01T00:00:00.400Z');

test('chat and responses answers get the x-ratelimit headers with Go durations', () => {
  const expected = {
    'x-ratelimit-limit-requests': '20',
    'x-ratelimit-remaining-requests': '19',
    'x-ratelimit-reset-requests': '3s',
    'x-ratelimit-limit-tokens': '40000',
    'x-ratelimit-remaining-tokens': '35000',
    'x-ratelimit-reset-tokens': '7.5s',
  };
  assert.deepEqual(limitHeaders('chat', standings, now), expected);
  assert.deepEqual(limitHeaders('responses', standings, now), expected);
  assert.deepEqual(limitHeaders(undefined, standings, now), expected);
});

test('messages answers get their own headers with times', () => {
  assert.deepEqual(limitHeaders('messages', standings, now), {
    'anthropic-ratelimit-requests-limit': '20',
    'anthropic-ratelimit-requests-remaining': '19',
    'anthropic-ratelimit-requests-reset': '2030-01-01T00:00:04Z',
    'anthropic-ratelimit-tokens-limit': '40000',
    'anthropic-ratelimit-tokens-remaining': '35000',
    'anthropic-ratelimit-tokens-reset': '2030-01-01T00:00:08Z',
  });
});

test('answers of gemini and protocols without such headers get none', () => {
  assert.deepEqual(limitHeaders('gemini', standings, now), {});
  assert.deepEqual(limitHeaders('another', standings, now), {});
});

test('the scarcer of two limits on requests is reported', () => {
  const scarce = standings.map((entry) => (entry.dimension === 'rpd' ? { ...entry, remaining: 3 } : entry));
  assert.equal(limitHeaders('chat', scarce, now)['x-ratelimit-limit-requests'], '1000');
});

test('limits that the plan does not have are not reported', () => {
  assert.deepEqual(limitHeaders('chat', [standings[3]!], now), {});
});

test('durations are formatted as Go prints them', () => {
  const cases: [number, string][] = [
    [0, '0s'],
    [12, '12ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_500, '1.5s'],
    [59_999, '59.999s'],
    [60_000, '1m0s'],
    [360_000, '6m0s'],
    [90_050, '1m30.05s'],
    [3_600_000, '1h0m0s'],
    [86_399_000, '23h59m59s'],
    [86_400_000, '24h0m0s'],
  ];
  for (const [milliseconds, text] of cases) assert.equal(goDuration(milliseconds), text);
});

test('times are whole seconds and never early', () => {
  assert.equal(rfc3339(Date.parse('2030-01-01T00:00:00.000Z')), '2030-01-01T00:00:00Z');
  assert.equal(rfc3339(Date.parse('2030-01-01T00:00:00.001Z')), '2030-01-01T00:00:01Z');
});
