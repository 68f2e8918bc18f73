/** Storage: the database of a gateway, embedded or a Postgres server, as the service `database`. */
import type { Command } from '../../core/contract/commands.ts';
import { definePlugin, type Fault } from '../../core/contract/contract.ts';
import { count, duration, z } from '../../core/contract/schema.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { counters } from '../common/domain/counters.ts';
import { type Database, database } from '../common/domain/database.ts';
import { closedDatabase, openDatabase } from './database.ts';
import { warmUpEmbedded } from './embedded/keeper.ts';
import { migrationsIn } from './migrate.ts';
import { tlsModeOf, tlsModes } from './tls.ts';
import { transferCommands } from './transfer/commands.ts';

const postgresUrl = /^postgres(?:ql)?:\/\/\S+$/;
const redisUrl = /^rediss?:\/\/\S+$/;

export default definePlugin({
  name: 'storage',
  config: z.strictObject({
    database: z
      .string()
      .refine((value) => value === 'embedded' || (postgresUrl.test(value) && URL.canParse(value)), {
        error: 'must be "embedded" or a URL such as postgres://user:password@host:5432/name',
        abort: true,
      })
      .refine((value) => value === 'embedded' || tlsModes.includes(tlsModeOf(value) ?? 'disable'), {
        error: `has an sslmode that does not exist; known are ${tlsModes.join(', ')}`,
      })
      .default('embedded')
      .describe(
        'Where rows are kept: `embedded`, a Postgres inside the data directory, or the URL of a Postgres server. Use a server for several processes or many calls a second.',
      ),
    counters: z
      .string()
      .refine((value) => value === 'memory' || isCountersUrl(value), {
        error: 'must be "memory", or a URL such as redis://host:6379; those of a cluster are separated by commas',
      })
      .default('memory')
      .describe(
        'Where rates are counted: `memory`, in this process, or the URL of a Redis that all processes share. Use a Redis when several processes serve and limits must hold exactly.',
      ),
    counters_within: duration()
      .prefault('50ms')
      .describe(
        'How long a request waits for shared counters; three times longer in a row, and this process counts its share. Raise it when the Redis is far away.',
      ),
    pool: count()
      .refine((value) => value >= 1 && value <= 500, { error: 'must be between 1 and 500' })
      .default(10)
      .describe(
        "Connections to the database, at most, for each gateway process. Lower it when the server's limit is shared by many processes. Default: 10.",
      ),
    start_timeout: duration()
      .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 3_600_000, 'must be from 1s to 1h')
      .prefault('60s')
      .describe(
        'How long a start waits until the database answers; then it ends with an error. Raise it when database and gateway start together.',
      ),
    bridge: duration()
      .refine((milliseconds) => milliseconds <= 600_000, 'must be from 0s to 10m')
      .prefault('120s')
      .describe(
        'How long a Postgres server may be away while known keys and accounts are served, each within what the process has leased of it. Raise it above the time of your failovers.',
      ),
    replica: z
      .string()
      .refine((value) => value === '' || (postgresUrl.test(value) && URL.canParse(value)), {
        error: 'must be a URL such as postgres://user:password@host:5432/name',
      })
      .default('')
      .describe(
        'A Postgres server that follows `database`, from which pages and exports are read; empty: from `database`. Calls and money are not read from it. Set it when pages and exports slow the database down.',
      ),
    replica_lag: duration()
      .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 3_600_000, 'must be from 1s to 1h')
      .prefault('10s')
      .describe(
        'How far behind `replica` may be; while it is further behind or away, pages are read from `database`. Raise it when pages may be older.',
      ),
    distributed: z
      .union([z.boolean(), z.enum(['0', '1']).transform((value) => value === '1')])
      .default(false)
      .describe(
        'The Postgres distributes tables over servers (Citus): tables with the account in each key are distributed by it after migrations. Turn it on only for such a server. Default: false.',
      ),
    start_empty: z
      .boolean()
      .default(false)
      .describe(
        'Start on an empty Postgres server although the data directory has an embedded database, which stays unused. Turn it on for one start when you begin without the old rows.',
      ),
  }),
  services: { optional: [ledgerQueries], provides: [database, counters] },
  warmUp(section, { directory, schema }) {
    const { database = 'embedded' } = (section ?? {}) as { database?: unknown };
    if (database === 'embedded') warmUpEmbedded(directory, schema);
  },
  async setup(host, config) {
    if (host.mode === 'check') {
      host.provide(database, closedDatabase(host.schema, config.database !== 'embedded'));
      return {
        checks: { singleProcess: () => singleProcess(config.database), problems: () => replicaProblems(config) },
      };
    }
    const isShared = config.counters !== 'memory' && host.mode === 'serve';
    const shared = isShared
      ? (await import('./counters.ts')).openCounters(config.counters, host, config.counters_within)
      : undefined;
    const refusal = await shared?.refusal();
    if (refusal !== undefined) {
      await shared?.close();
      throw new Error(refusal);
    }
    const opened = await openDatabase(host, {
      database: config.database,
      maxConnections: config.pool,
      startTimeoutMs: config.start_timeout,
      mayBeEmpty: config.start_empty,
      isDistributed: config.distributed && config.database !== 'embedded',
      bridgeMs: config.bridge,
      replica: config.replica === '' ? undefined : { url: config.replica, lagMs: config.replica_lag },
      notifier: shared,
    });
    host.provide(database, opened);
    if (shared !== undefined) host.provide(counters, shared);
    return {
      commandLine: {
        commands: [...commandsOf(opened), ...transferCommands(host, opened)],
        // Those that make tables and fill them begin with none.
        beforeCommand: (name) =>
          opened.emptiness === undefined || ['migrate', 'storage import'].includes(name) ? [] : [opened.emptiness],
      },
      health: {
        ready: () => opened.healthy() || (opened.awayMs?.() ?? 0) < (opened.bridgeMs ?? 0),
        stores: () => ({
          database: stateOf(opened),
          ...(opened.replica === undefined ? {} : { replica: opened.replica().isUsed ? 'ok' : 'away' }),
          ...(shared === undefined ? {} : { counters: stateOf(shared) }),
        }),
      },
      lifecycle: {
        async stop() {
          await opened.close();
          await shared?.close();
        },
      },
    };
  },
});

const stateOf = (store: { healthy(): boolean }) => (store.healthy() ? 'ok' : 'away');

/** Whether a text names one server (`redis://…`, `rediss://…`), or several of a cluster, separated by commas. */
function isCountersUrl(text: string): boolean {
  const urls = text.split(',');
  return urls.every((url) => redisUrl.test(url) && URL.canParse(url));
}

function replicaProblems({ database, replica }: { readonly database: string; readonly replica: string }): Fault[] {
  if (replica === '' || database !== 'embedded') return [];
  return [
    {
      path: ['replica'],
      message: 'the embedded database has no replica: set storage.database to the server that it follows',
    },
  ];
}

function singleProcess(location: string): string | undefined {
  if (location !== 'embedded') return undefined;
  return (
    'its embedded database belongs to one process. ' +
    'Set storage.database (DATABASE_URL) to a postgres:// URL, or serve it without --workers.'
  );
}

/** Every start applies pending migrations, that of a command too, so this command only reports. */
function commandsOf({ orm, schema }: Database): Command[] {
  return [
    {
      name: 'migrate',
      summary: 'Applies what the schema lacks, as every start does, and lists what it has',
      async run() {
        const migrations = await migrationsIn(orm, schema);
        const lines = migrations.map(({ plugin, name, appliedAt }) => `${appliedAt}  ${plugin.padEnd(16)}  ${name}`);
        return { json: { schema, migrations }, text: [`Schema ${schema}:`, ...lines].join('\n') };
      },
    },
  ];
}
