/** Kinds of alerts about the gateway's own stores and work, as each process sees them: they need no database. */
import type { Host } from '../../../core/contract/contract.ts';
import { regularWorks } from '../../../core/contract/outage.ts';
import { freeShareOf } from '../../../core/tools/unwritable.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import type { AlertKind, Measurement } from '../../common/domain/admin/alerts.ts';
import { ledgerQueries } from '../../common/domain/admin/ledger.ts';
import { fileStatistics } from '../../common/domain/admin/stored-work.ts';
import { upstreamAdmin } from '../../common/domain/admin/upstreams.ts';
import { counters } from '../../common/domain/counters.ts';
import { database } from '../../common/domain/database.ts';

const day = 24 * 3_600_000;
/** Statements are sent only for values that may be bad: values far from the threshold are not reported. */
const reported = { journal: 0.1, disk: 0.15, expiryMs: 60 * day };
const mostKeys = 200;
const common = { windowMs: 600_000, forMs: 0, quietMs: 60_000, least: 0 };

export function gatewayKinds(host: Pick<Host, 'find' | 'clock' | 'directory'>): AlertKind[] {
  const away = (name: string, title: string, subject: string, awayMs: () => number | undefined): AlertKind => ({
    name,
    title,
    unit: 'milliseconds',
    bad: 'above',
    defaults: { ...common, threshold: 10_000, clear: 0 },
    observe: () => durationOf(subject, awayMs()),
  });
  return [
    away('database_away', 'The database does not answer', 'database', () => host.find(database)?.awayMs?.()),
    away('counters_away', 'The shared counters do not answer', 'counters', () => host.find(counters)?.awayMs()),
    away('bucket_away', 'The bucket of files does not answer', 'bucket', () =>
      host.find(fileStatistics)?.bucketAwayMs(),
    ),
    {
      name: 'guardrail_broken',
      title: 'A check of guardrails cannot judge',
      unit: 'count',
      bad: 'above',
      defaults: { threshold: 0, clear: 0, windowMs: 600_000, forMs: 0, quietMs: 0, least: 0 },
    },
    ...workKinds(host),
    ...expiryKinds(host),
  ];
}

const durationOf = (subject: string, value = 0): Measurement[] => (value > 0 ? [{ subject, value }] : []);

function workKinds(host: Pick<Host, 'find' | 'directory'>): AlertKind[] {
  return [
    {
      name: 'journal_backlog',
      title: 'The journal of a process is not written to the ledger, and calls are refused when it is full',
      unit: 'share',
      bad: 'above',
      fields: { rows: 'count' },
      defaults: { ...common, threshold: 0.5, clear: 0.25 },
      observe: () => {
        const { name, share, rows } = host.find(ledgerQueries)?.journal() ?? { name: '', share: 0, rows: 0 };
        return share < reported.journal ? [] : [{ subject: name, value: share, fields: { rows } }];
      },
    },
    {
      name: 'disk_space',
      title: 'The disk of the data directory is nearly full',
      unit: 'share',
      bad: 'below',
      defaults: { ...common, threshold: 0.1, clear: 0.15 },
      observe: () => {
        const free = freeShareOf(host.directory);
        return free === undefined || free > reported.disk ? [] : [{ subject: 'data directory', value: free }];
      },
    },
    {
      name: 'regular_work',
      title: 'Regular work of a process fails',
      unit: 'milliseconds',
      bad: 'above',
      defaults: { ...common, threshold: 60_000, clear: 0 },
      observe: () =>
        (host.find(regularWorks)?.failing() ?? []).map(({ name, forMs }) => ({ subject: name, value: forMs })),
    },
  ];
}

function expiryKinds(host: Pick<Host, 'find' | 'clock'>): AlertKind[] {
  const expiry = { unit: 'milliseconds', bad: 'below', fields: { expires: 'text' } } as const;
  const left = (at: number) => ({
    value: Math.max(0, at - host.clock.now()),
    fields: { expires: new Date(at).toISOString() },
  });
  return [
    {
      ...expiry,
      name: 'certificate_expiry',
      title: 'A certificate for a vendor expires',
      defaults: { ...common, threshold: 14 * day, clear: 14 * day },
      observe: () =>
        (host.find(upstreamAdmin)?.certificates() ?? [])
          .filter(({ expiresAt }) => expiresAt - host.clock.now() < reported.expiryMs)
          .map(({ provider, use, expiresAt }) => ({ subject: `${provider} ${use}`, ...left(expiresAt) })),
    },
    {
      ...expiry,
      name: 'key_expiry',
      title: 'An API key in use expires',
      defaults: { ...common, threshold: 3 * day, clear: 3 * day },
      measure: async () =>
        ((await host.find(accountAdmin)?.expiringKeys(reported.expiryMs, mostKeys)) ?? []).map(
          ({ prefix, expiresAt }) => ({
            subject: prefix,
            ...left(expiresAt),
          }),
        ),
    },
  ];
}
