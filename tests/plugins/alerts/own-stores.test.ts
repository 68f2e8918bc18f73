/** Alerts about the gateway's own stores and work: what a process sees, without a database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { regularWorks } from '../../../core/contract/outage.ts';
import { configSchema, rulesOf } from '../../../plugins/alerts/config.ts';
import { gatewayKinds } from '../../../plugins/alerts/kinds/gateway.ts';
import { verdictOf } from '../../../plugins/alerts/state.ts';
import { type AccountAdmin, accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import type { Measurement } from '../../../plugins/common/domain/admin/alerts.ts';
import { type LedgerQueries, ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { type FileStatistics, fileStatistics } from '../../../plugins/common/domain/admin/stored-work.ts';
import { type UpstreamAdmin, upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { type Counters, counters } from '../../../plugins/common/domain/counters.ts';
import { type Database, database } from '../../../plugins/common/domain/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const day = 24 * 3_600_000;

/** Verdicts by rule and subject of what is seen, with the rules as they are by default. */
async function verdicts(host: ReturnType<typeof fakeHost>) {
  const found: Record<string, string> = {};
  for (const rule of rulesOf(configSchema.parse({}), gatewayKinds({ ...host, directory: '/dev/null/none' }))) {
    const { kind } = rule;
    const seen = (kind.observe?.() ?? (await kind.measure?.({ from: 0, until: 1 })) ?? []) as readonly Measurement[];
    for (const { subject, value } of seen) found[`${rule.name} ${subject}`] = verdictOf(kind.bad, rule, value);
  }
  return found;
}

test('a process without stores, or with healthy ones, reports nothing', async () => {
  const host = fakeHost();
  assert.deepEqual(await verdicts(host), {});
  host.provide(database, { awayMs: () => 0 } as Database);
  host.provide(counters, { awayMs: () => 0 } as Counters);
  host.provide(fileStatistics, { bucketAwayMs: () => undefined } as FileStatistics);
  host.provide(ledgerQueries, { journal: () => ({ name: 'a', rows: 9, share: 0.01 }) } as unknown as LedgerQueries);
  host.provide(regularWorks, { failing: () => [] });
  host.provide(upstreamAdmin, {
    certificates: () => [{ provider: 'acme', use: 'cert', expiresAt: host.clock.now() + 300 * day }],
  } as unknown as UpstreamAdmin);
  assert.deepEqual(await verdicts(host), {});
});

test('each store, the journal, failing work, certificates and keys have alerts of their own kind', async () => {
  const host = fakeHost();
  const now = host.clock.now();
  host.provide(database, { awayMs: () => 10_001 } as Database);
  host.provide(counters, { awayMs: () => 9_999 } as Counters);
  host.provide(fileStatistics, { bucketAwayMs: () => 60_000 } as FileStatistics);
  host.provide(ledgerQueries, { journal: () => ({ name: 'a', rows: 9, share: 0.6 }) } as unknown as LedgerQueries);
  host.provide(regularWorks, { failing: () => [{ name: 'sweep files', forMs: 61_000 }] });
  host.provide(upstreamAdmin, {
    certificates: () => [
      { provider: 'acme', use: 'cert', expiresAt: now + 13 * day },
      { provider: 'acme', use: 'ca', expiresAt: now + 30 * day },
    ],
  } as unknown as UpstreamAdmin);
  const expiringKeys = async () => [
    { prefix: 'sk-gw-ab', expiresAt: now + 2 * day },
    { prefix: 'sk-gw-cd', expiresAt: now + 20 * day },
  ];
  host.provide(accountAdmin, { expiringKeys } as unknown as AccountAdmin);
  assert.deepEqual(await verdicts(host), {
    'database_away database': 'bad',
    'counters_away counters': 'between',
    'bucket_away bucket': 'bad',
    'journal_backlog a': 'bad',
    'regular_work sweep files': 'bad',
    'certificate_expiry acme cert': 'bad',
    'certificate_expiry acme ca': 'good',
    'key_expiry sk-gw-ab': 'bad',
    'key_expiry sk-gw-cd': 'good',
  });
});

test('a disk with less than a tenth free is bad, measured at the data directory', async () => {
  const host = fakeHost();
  const kinds = gatewayKinds({ ...host, directory: '/' });
  const [seen] = kinds.find(({ name }) => name === 'disk_space')!.observe!();
  assert.ok(seen === undefined || (seen.value >= 0 && seen.value <= 0.15));
  const [rule] = rulesOf(
    configSchema.parse({}),
    kinds.filter(({ name }) => name === 'disk_space'),
  );
  assert.deepEqual(
    [0.09, 0.12, 0.2].map((free) => verdictOf('below', rule!, free)),
    ['bad', 'between', 'good'],
  );
});
