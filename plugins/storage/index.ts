/** Storage: the database of a gateway, embedded or a Postgres server, as the service `database`. */
import { definePlugin } from '../../core/contract.ts';
import { count, z } from '../../core/schema.ts';
import { database } from '../../core/vocabulary.ts';
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
      .refine((value) => value === 'memory', {
        error: 'must be "memory": counters that several processes share are not available in this version',
      })
      .default('memory')
      .describe('Where rates are counted: `memory`, in this process.'),
    pool: count()
      .refine((value) => value >= 1 && value <= 500, { error: 'must be between 1 and 500' })
      .default(10)
      .describe('Connections to the database, at most, for each gateway process.'),
  }),
  provides: [database],
  async setup(host, config) {
    if (host.mode === 'check') {
      host.provide(database, closedDatabase(host.schema, config.database !== 'embedded'));
      return {};
    }
    const opened = await openDatabase(host, { database: config.database, maxConnections: config.pool });
    host.provide(database, opened);
    return { ready: () => opened.healthy(), stop: () => opened.close() };
  },
});
