/** Alerts for operators: those that run, those that have ended, sinks, and acknowledging. */
import { z } from '@hono/zod-openapi';
import { alertAdmin } from '../../../common/domain/admin/alerts.ts';
import { actorOf, type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  done,
  id,
  instant,
  instantInput,
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
