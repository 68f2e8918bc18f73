/** Alerts that run and have ended, and sinks, made up. */
import type {
  AlertAdmin,
  AlertMute,
  AlertRuleView,
  AlertSinkView,
  AlertView,
} from '../../../../plugins/common/domain/admin/alerts.ts';
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
  const mutes = new Map<string, AlertMute>();
  let tested: AlertSinkView['last'];
  const rule = { bad: 'below', unit: 'share', threshold: 0.9, clear: 0.95, windowMs: 10 * minute, isOn: true } as const;
  const rules: Omit<AlertRuleView, 'muted'>[] = [
    { ...rule, name: 'model_success', kind: 'model_success', title, forMs: minute, sinks: ['ops', 'chat'] },
    {
      ...rule,
      name: 'slow_fast',
      kind: 'model_first_byte',
      title: 'Time',
      unit: 'milliseconds',
      bad: 'above',
      threshold: 3_000,
      clear: 2_000,
      forMs: 0,
      sinks: ['ops'],
    },
    {
      ...rule,
      name: 'key_resting',
      kind: 'key_resting',
      title: 'Key',
      unit: 'count',
      threshold: 0,
      clear: 0,
      forMs: 0,
      sinks: [],
      isOn: false,
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
      { name: 'ops', type: 'webhook', last: tested ?? { at: at - 12 * minute, fault: undefined }, waiting: 0 },
      { name: 'chat', type: 'slack', last: { at: at - 12 * minute, fault: 'it answered 404' }, waiting: 1 },
      { name: 'mail', type: 'mail', last: undefined, waiting: 0 },
    ],
    async testSink(name) {
      if (name === 'ops') tested = { at: now(), fault: 'it did not answer in time' };
      return { fault: name === 'ops' ? tested?.fault : undefined };
    },
    rules: async () => rules.map((rule) => ({ ...rule, muted: mutes.get(rule.name) })),
    tryRule: async (name) =>
      name === 'model_success'
        ? [
            { subject: 'gpt-5.5', value: 0.62, verdict: 'bad' },
            { subject: 'claude-sonnet-5', value: 0.97, verdict: 'good' },
          ]
        : [],
    async mute(rule, until, by, reason) {
      mutes.set(rule, { until, by, reason });
      return true;
    },
    unmute: async (rule) => mutes.delete(rule),
  };
}
