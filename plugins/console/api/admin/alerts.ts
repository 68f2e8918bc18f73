/** Alerts for operators: those that run, those that have ended, sinks, and acknowledging. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { alertAdmin } from '../../../common/domain/admin/alerts.ts';
import { changesOf } from '../routing/audit-changes.ts';
import { actorOf, type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  done,
  id,
  instant,
  instantInput,
  iso,
  isoOrNull,
  pageOf,
  pageQuery,
  reasonInput,
  takes,
  writerOf,
} from '../schemas.ts';

const fields = z.record(z.string(), z.union([z.string(), z.number()]));
const value = z.union([z.string(), z.number()]);
const alert = z
  .object({
    id: z.string(),
    rule: z.string(),
    kind: z.string(),
    title: z.string(),
    subject: z.string(),
    unit: z.enum(['share', 'milliseconds', 'usd', 'count', 'times']),
    value: value.describe('The last one that was bad; decimal text in the units `usd` and `times`.'),
    threshold: value,
    fields,
    beganAt: instant,
    endedAt: instant.nullable().describe('null: it runs.'),
    acknowledged: z.object({ at: instant, by: z.string(), reason: z.string() }).nullable(),
  })
  .openapi('Alert');
const sink = z
  .object({
    name: z.string(),
    type: z.string(),
    lastAt: instant.nullable(),
    fault: z.string().nullable().describe('Why its last message was not taken.'),
    waiting: z.number().describe('Messages that are sent again.'),
  })
  .openapi('AlertSink');

const alertQuery = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  state: z.enum(['running', 'ended']).optional(),
  rule: z.string().max(100).optional(),
  subject: z.string().max(200).optional(),
});
const list = route('get', '/admin/alerts', 'Alerts, newest first; those that ran in a time', answers(pageOf(alert)), {
  query: alertQuery.extend(pageQuery.shape),
});
const sinks = route('get', '/admin/alerts/sinks', 'Where alerts are sent', answers(z.object({ rows: z.array(sink) })));
const acknowledge = route(
  'post',
  '/admin/alerts/{id}/acknowledge',
  'Acknowledge an alert that runs: it is not sent again until it ends',
  answers(done),
  { params: z.object({ id }), body: takes(z.strictObject({ reason: reasonInput })) },
);

const unit = alert.shape.unit;
const muted = z.object({ until: instant, by: z.string(), reason: z.string() });
const rule = z
  .object({
    name: z.string(),
    kind: z.string(),
    title: z.string(),
    unit,
    bad: z.enum(['above', 'below']),
    threshold: value,
    clear: value,
    forMs: z.number(),
    windowMs: z.number(),
    sinks: z.array(z.string()),
    isOn: z.boolean(),
    muted: muted.nullable().describe('Its alerts are shown and not sent until then.'),
  })
  .openapi('AlertRule');
const rules = route('get', '/admin/alerts/rules', 'Rules as they run', answers(z.object({ rows: z.array(rule) })));
const named = z.object({ name: z.string().min(1).max(100) });
const trial = z.object({ subject: z.string(), value, verdict: z.enum(['bad', 'between', 'good']) });
const tryRule = route(
  'post',
  '/admin/alerts/rules/{name}/test',
  'What a rule finds now; no alert begins',
  answers(z.object({ rows: z.array(trial) })),
  { params: named },
);
const mute = route(
  'post',
  '/admin/alerts/rules/{name}/mute',
  'Send nothing of a rule until a time; its alerts are shown',
  answers(done),
  { params: named, body: takes(z.strictObject({ until: instantInput, reason: reasonInput })) },
);
const unmute = route('delete', '/admin/alerts/rules/{name}/mute', 'Send alerts of a rule again', answers(done), {
  params: named,
});
const testSink = route(
  'post',
  '/admin/alerts/sinks/{name}/test',
  'Send a test message to a sink',
  answers(z.object({ fault: z.string().nullable().describe('Why it was not taken; null: it was.') })),
  { params: named },
);
const longestMuteMs = 90 * 86_400_000;

export function alertRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, alertJson, ({ query: { limit: _limit, after: _after, state, ...filter } }, page) =>
      need(services, alertAdmin).list({ ...filter, running: state && state === 'running' }, page),
    )
    .read(sinks, async () => ({
      rows: (await need(services, alertAdmin).sinks()).map(({ name, type, last, waiting }) => ({
        ...{ name, type, waiting },
        lastAt: isoOrNull(last?.at),
        fault: last?.fault ?? null,
      })),
    }))
    .read(rules, async () => ({ rows: (await need(services, alertAdmin).rules()).map(writerOf(rule)) }))
    .action(tryRule, ({ param: { name } }) => ({
      action: 'alert.rule.test',
      subject: name,
      run: async () => {
        const rows = await need(services, alertAdmin).tryRule(name);
        if (rows === undefined) throw nothingHere('rule', 'name');
        return { rows: [...rows] };
      },
    }))
    .action(mute, ({ param: { name }, json: { until, reason }, c }) => ({
      action: 'alert.rule.mute',
      subject: name,
      reason,
      changes: changesOf({ mutedUntil: iso(until) }),
      async run() {
        const now = services.clock.now();
        if (until <= now || until > now + longestMuteMs)
          throw new GatewayError('invalid_request', 'The end lies in the next 90 days.', { field: 'until' });
        if (!(await need(services, alertAdmin).mute(name, until, actorOf(c).label, reason)))
          throw nothingHere('rule', 'name');
      },
    }))
    .action(unmute, ({ param: { name } }) => ({
      action: 'alert.rule.unmute',
      subject: name,
      async run() {
        if (!(await need(services, alertAdmin).unmute(name))) throw nothingHere('muted rule', 'name');
      },
    }))
    .action(testSink, ({ param: { name } }) => ({
      action: 'alert.sink.test',
      subject: name,
      run: async () => {
        const sent = await need(services, alertAdmin).testSink(name);
        if (sent === undefined) throw nothingHere('sink', 'name');
        return { fault: sent.fault ?? null };
      },
      outcome: ({ fault }) => (fault === null ? 'done' : 'refused'),
    }))
    .action(acknowledge, ({ param, json, c }) => ({
      action: 'alert.acknowledge',
      subject: param.id,
      reason: json.reason,
      async run() {
        const isKnown = await need(services, alertAdmin).acknowledge(param.id, actorOf(c).label, json.reason);
        if (!isKnown) throw nothingHere('running alert');
      },
    }));
}

const alertJson = writerOf(alert);
