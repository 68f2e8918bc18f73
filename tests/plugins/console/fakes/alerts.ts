/** Alerts that run and have ended, and sinks, made up. */
import type { AlertAdmin, AlertView } from '../../../../plugins/common/domain/admin/alerts.ts';
import { paged } from './lists.ts';

const minute = 60_000;

export function fakeAlerts(now: () => number): AlertAdmin {
  const at = now();
  const common = { unit: 'share', threshold: 0.9, fields: {}, endedAt: undefined, acknowledged: undefined } as const;
  const title = 'Share of requests that the model answers';
  const rows: AlertView[] = [
    {
      ...common,
      id: 'a3',
      rule: 'model_success',
      kind: 'model_success',
      title,
      subject: 'gpt-5.5',
      value: 0.62,
      beganAt: at - 12 * minute,
    },
    {
      ...common,
      id: 'a2',
      rule: 'stock',
      kind: 'stock_low',
      title: 'Something of a plugin runs low',
      subject: '<b>shelf</b>',
      unit: 'count',
      value: 2,
      beganAt: at - 30 * minute,
      acknowledged: { at: at - 20 * minute, by: 'oscar@example.test', reason: 'ordered' },
    },
    {
      ...common,
      id: 'a4',
      rule: 'negative_margin',
      kind: 'negative_margin',
      title: 'Calls of a model cost more than they were charged',
      subject: 'sold-below-cost',
      unit: 'usd',
      value: '-0.000000001',
      threshold: '0.00',
      fields: { charged: '0.00', cost: '0.000000001' },
      beganAt: at - 40 * minute,
      acknowledged: { at: at - 20 * minute, by: 'oscar@example.test', reason: 'a test' },
    },
    {
      ...common,
      id: 'a1',
      rule: 'provider_first_byte',
      kind: 'provider_first_byte',
      title: 'Time to the first byte of the provider, 95th percentile',
      subject: 'openai',
      unit: 'milliseconds',
      value: 41_200,
      threshold: 30_000,
      beganAt: at - 300 * minute,
      endedAt: at - 280 * minute,
    },
  ];
  return {
    list: async ({ running, subject, rule, from = 0, until = Number.POSITIVE_INFINITY }, page) =>
      paged(
        rows.filter(
          (row) =>
            (running === undefined || running === (row.endedAt === undefined)) &&
            (rule === undefined || row.rule === rule) &&
            (subject === undefined || row.subject.includes(subject)) &&
            row.beganAt < until &&
            (row.endedAt ?? Number.POSITIVE_INFINITY) >= from,
        ),
        page,
      ),
    async acknowledge(id, by, reason) {
      const index = rows.findIndex((row) => row.id === id && row.endedAt === undefined);
      if (index >= 0) rows[index] = { ...rows[index]!, acknowledged: { at: now(), by, reason } };
      return index >= 0;
    },
    sinks: async () => [
      { name: 'ops', type: 'webhook', last: { at: at - 12 * minute, fault: undefined }, waiting: 0 },
      { name: 'chat', type: 'slack', last: { at: at - 12 * minute, fault: 'it answered 404' }, waiting: 1 },
    ],
  };
}
