/** Kinds of alerts about money: models that are sold below their cost, accounts that spend far more than usual, a ledger that does not add up. */
import type { AlertKind, Measurement } from '../../common/domain/admin/alerts.ts';
import type { LedgerQueries, SpendGroup } from '../../common/domain/admin/ledger.ts';
import { costedRevenueOf, marginOf } from '../../common/domain/admin/margin.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { billionthsOf, formatUsd, type Money, mean, money, parseUsd, zero } from '../../common/domain/money.ts';
import { quarterMs } from '../../common/rollups/table.ts';

type Queries = () => LedgerQueries | undefined;

const hour = 3_600_000;
const mostGroups = 200;
/** The usual of an account is its mean over so many windows before. */
const usualWindows = 24;

export function moneyKinds(queries: Queries): AlertKind[] {
  return [
    {
      name: 'negative_margin',
      title: 'Calls of a model cost more than they were charged',
      unit: 'usd',
      bad: 'below',
      fields: { charged: 'usd', cost: 'usd' },
      defaults: { threshold: zero, clear: zero, windowMs: hour, forMs: 0, quietMs: 600_000, least: 10 },
      measure: async (span) =>
        ((await queries()?.spend(keptSpan(span), 'model', mostGroups)) ?? []).flatMap(
          (one) => marginMeasured(one) ?? [],
        ),
    },
    {
      name: 'spend_spike',
      title: 'An account spends far more than usual',
      unit: 'times',
      bad: 'above',
      fields: { spent: 'usd', usual: 'usd' },
      defaults: {
        threshold: 5_000_000_000n,
        clear: 3_000_000_000n,
        windowMs: hour,
        forMs: 0,
        quietMs: hour,
        least: parseUsd('10'),
      },
      measure: (span) => spikes(queries(), span),
    },
    {
      name: 'ledger_mismatch',
      title: 'The ledger does not add up',
      unit: 'count',
      bad: 'above',
      fields: { findings: 'count' },
      defaults: { threshold: 0, clear: 0, windowMs: 24 * hour, forMs: 0, quietMs: 0, least: 0 },
    },
    ...databaseKinds(queries),
    {
      name: 'usage_implausible',
      title: 'A vendor reported a usage that its call cannot have had',
      unit: 'count',
      bad: 'above',
      fields: { provider: 'text', model: 'text' },
      defaults: { threshold: 0, clear: 0, windowMs: hour, forMs: 0, quietMs: 0, least: 0 },
    },
    {
      name: 'unpriced_model',
      title: 'A model without a price was asked for',
      unit: 'count',
      bad: 'above',
      defaults: { threshold: 0, clear: 0, windowMs: hour, forMs: 0, quietMs: 0, least: 0 },
    },
  ];
}

function databaseKinds(queries: Queries): AlertKind[] {
  return [
    {
      name: 'database_restored',
      title: 'The database was put back to an earlier time',
      unit: 'count',
      bad: 'above',
      fields: { lost: 'count' },
      defaults: { threshold: 0, clear: 0, windowMs: 24 * hour, forMs: 0, quietMs: 0, least: 0 },
    },
    {
      name: 'dead_leases',
      title: 'A process that no longer answers has leased money',
      unit: 'milliseconds',
      bad: 'above',
      fields: { leased: 'usd' },
      defaults: { threshold: 600_000, clear: 600_000, windowMs: hour, forMs: 0, quietMs: 0, least: 0 },
      measure: async ({ until }) =>
        ((await queries()?.nodes()) ?? [])
          .filter(({ self, leases }) => !self && leases > 0)
          .map(({ name, seenAt, leased }) => {
            return { subject: name, value: Math.max(0, until - seenAt), fields: { leased: formatUsd(leased) } };
          }),
    },
  ];
}

/** Undefined where the own cost of no call is known. */
export function marginMeasured(group: SpendGroup): Measurement<Money> | undefined {
  const margin = marginOf(group);
  if (margin === undefined) return undefined;
  const { group: subject, requests, ownCostUnknown = 0 } = group;
  const charged = costedRevenueOf(group);
  const fields = { charged: formatUsd(charged), cost: formatUsd(money(charged - margin)) };
  return { subject, value: margin, sample: requests - ownCostUnknown, fields };
}

const nextQuarter = (at: number) => Math.ceil(at / quarterMs) * quarterMs;

/**
 * Shortens a span of an hour or more so that it starts at a quarter of an hour. It is then read from stored sums alone, so the cost does
 * not depend on the number of calls. A shorter span is returned unchanged.
 */
function keptSpan(span: Span): Span {
  return span.until - span.from < hour ? span : { from: nextQuarter(span.from), until: nextQuarter(span.until) };
}

async function spikes(queries: LedgerQueries | undefined, span: Span): Promise<Measurement<bigint>[]> {
  if (queries === undefined) return [];
  const recent = keptSpan(span);
  const earliest = recent.from - usualWindows * (span.until - span.from);
  // Rounding leaves out at most a quarter of an hour of a day or more.
  const from = recent === span ? earliest : nextQuarter(earliest);
  const now = await queries.spend(recent, 'account', mostGroups);
  const before = await queries.spend({ from, until: recent.from }, 'account', 1_500);
  const known = new Map(before.map(({ group, cost }) => [group, cost]));
  return now.flatMap(({ group, cost }) => spikeOf(group, cost, known.get(group)) ?? []);
}

/** `before`: what it spent in the windows before, of which the usual is the mean; undefined for a new account. */
export function spikeOf(subject: string, spent: Money, before: Money | undefined): Measurement<bigint> | undefined {
  if (before === undefined || before <= 0n) return undefined;
  const value = billionthsOf(before, money(spent * BigInt(usualWindows)));
  const fields = { spent: formatUsd(spent), usual: formatUsd(mean(before, usualWindows)) };
  return { subject, value, sample: spent, fields };
}
