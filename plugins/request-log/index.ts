/** One database row and one log line for each request, written in batches, off the client's path. */
import { sql } from 'drizzle-orm';
import { definePlugin } from '../../core/contract.ts';
import { moneyDesk, requestDesk } from '../../core/desk.ts';
import { duration, z } from '../../core/schema.ts';
import { database, story } from '../../core/vocabulary.ts';
import { commandsOf } from './commands.ts';
import { openDesk } from './desk.ts';
import { RowQueue } from './queue.ts';
import { rowOf } from './row.ts';
import { keptStory } from './story.ts';

const pruneIntervalMs = 3_600_000;

export default definePlugin({
  name: 'request-log',
  config: z.strictObject({
    lines: z.boolean().default(true).describe('Write one log line for each request.'),
    retention: duration().prefault('30d').describe('How long rows are kept.'),
    story: z
      .boolean()
      .default(true)
      .describe('Keep with each row what was decided on the way: limit, price, route, conversion, charge.'),
  }),
  needs: [database],
  uses: [moneyDesk],
  provides: [requestDesk],
  writes: [story],
  async setup(host, written) {
    let config = written;
    const store = host.need(database);
    await store.migrate('request-log', new URL('./migrations/', import.meta.url));
    const desk = openDesk(store);
    host.provide(requestDesk, desk);
    const schema = sql.identifier(store.schema);
    const queue = new RowQueue(async (rows) => {
      await store.orm.execute(sql`insert into ${schema}.requests
        select * from jsonb_populate_recordset(null::${schema}.requests, ${rows}::jsonb)
        on conflict (id) do nothing`);
    }, host.log);
    const prune = async () => {
      const before = new Date(host.clock.now() - config.retention).toISOString();
      await store.orm.execute(sql`delete from ${schema}.requests where received_at < ${before}::timestamptz`);
    };
    return {
      commands: commandsOf(host, desk),
      applies: ({ unlogged }) => unlogged !== true,
      handle(exchange, next) {
        if (config.story) exchange.set(story, []);
        exchange.defer((outcome) => {
          // One encoding serves the line and the row; a line tells no story.
          const line = JSON.stringify(rowOf(exchange, outcome));
          queue.push(line, keptStory(exchange.find(story), exchange.receivedAt));
          if (config.lines) host.log.record('request', line);
        });
        return next();
      },
      start() {
        host.every(RowQueue.flushIntervalMs, 'write request rows', () => queue.flush());
        host.every(pruneIntervalMs, 'prune request rows', prune);
      },
      stop: () => queue.flush(),
      prepare: (changed) => () => {
        config = changed;
      },
    };
  },
});
