/** Storage: the database of a gateway, embedded or a Postgres server, as the service `database`. */
import { definePlugin } from '../../core/contract.ts';
import { count, duration, z } from '../../core/schema.ts';
import { counters, database } from '../../core/vocabulary.ts';
import { commandsOf } from './commands.ts';
import { isCountersUrl, openCounters } from './counters.ts';
import { closedDatabase, openDatabase } from './database.ts';

const postgresUrl = /^postgres(?:ql)?:\/\/\S+$/;

export default definePlugin({
  name: 'storage',
  config: z.strictObject({
    database: z
      .string()
      .refine((value) => value === 'embedded' || (postgresUrl.test(value) && URL.canParse(value)), {
        error: 'must be "embedded" or a URL such as postgres://user:password@host:5432/name',
      })
      .default('embedded')
      .describe(
        'Where rows are kept: `embedded`, a Postgres inside the data directory, or the URL of a Postgres server.',
      ),
    counters: z
      .string()
      .refine((value) => value === 'memory' || isCountersUrl(value), {
        error: 'must be "memory", or a URL such as redis://host:6379; those of a cluster are separated by commas',
      })
      .default('memory')
      .describe('Where rates are counted: `memory`, in this process, or the URL of a Redis that all processes share.'),
    counters_within: duration()
      .prefault('50ms')
      .describe(
        'How long a request waits for shared counters; three times longer in a row, and this process counts its share.',
      ),
    pool: count()
      .refine((value) => value >= 1 && value <= 500, { error: 'must be between 1 and 500' })
      .default(10)
      .describe('Connections to the database, at most, for each gateway process.'),
  }),
  provides: [database, counters],
  async setup(host, config) {
    if (host.mode === 'check') {
      host.provide(database, closedDatabase(host.schema, config.database !== 'embedded'));
      return {};
    }
    const shared =
      config.counters === 'memory' || host.mode !== 'serve'
        ? undefined
        : openCounters(config.counters, host.log, config.counters_within);
    const opened = await openDatabase(host, { database: config.database, maxConnections: config.pool, bell: shared });
    host.provide(database, opened);
    if (shared !== undefined) host.provide(counters, shared);
    return {
      commands: commandsOf(opened),
      ready: () => opened.healthy(),
      async stop() {
        await opened.close();
        await shared?.close();
      },
    };
  },
});
