/** One database row and one log line for each request, written in batches, off the client's path. */
import { sql } from 'drizzle-orm';
import { definePlugin, type Fault } from '../../core/contract.ts';
import { bodyDesk, moneyDesk, requestDesk } from '../../core/desk.ts';
import { duration, z } from '../../core/schema.ts';
import { accounts, database, story } from '../../core/vocabulary.ts';
import { bodyCommands } from './bodies/commands.ts';
import { openBodies } from './bodies/open.ts';
import { bodiesSection, noticesOf } from './bodies/settings.ts';
import { commandsOf } from './commands.ts';
import { openDesk } from './desk.ts';
import { RowQueue } from './queue.ts';
import { rowOf } from './row.ts';
import { keptStory } from './story.ts';

const pruneIntervalMs = 3_600_000;

const configSchema = z.strictObject({
  lines: z.boolean().default(true).describe('Write one log line for each request.'),
  retention: duration().prefault('30d').describe('How long rows are kept.'),
  story: z
    .boolean()
    .default(true)
    .describe('Keep with each row what was decided on the way: limit, price, route, conversion, charge.'),
  bodies: bodiesSection.optional(),
});

export default definePlugin({
  name: 'request-log',
  config: configSchema,
  needs: [database],
  uses: [moneyDesk, accounts],
  provides: [requestDesk, bodyDesk],
  writes: [story],
  async setup(host, written) {
    let config = written;
    const store = host.need(database);
    await store.migrate('request-log', new URL('./migrations/', import.meta.url));
    const desk = openDesk(store);
    host.provide(requestDesk, desk);
    const bodies = openBodies(host, store, config.bodies);
    const { recorder } = bodies;
    host.provide(bodyDesk, bodies.desk);
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
      commands: [...commandsOf(host, desk, bodies.desk), ...bodyCommands(host, bodies.desk)],
      problems: () => problemsOf(config),
      notices: () => noticesOf(config.bodies),
      applies: ({ unlogged }) => unlogged !== true,
      handle(exchange, next) {
        if (config.story) exchange.set(story, []);
        exchange.defer((outcome) => {
          // One encoding serves the line and the row; a line tells no story.
          const line = JSON.stringify(rowOf(exchange, outcome));
          queue.push(line, keptStory(exchange.find(story), exchange.receivedAt));
          if (config.lines) host.log.record('request', line);
        });
        return recorder.isOn ? recorder.run(exchange, next) : next();
      },
      start() {
        host.every(RowQueue.flushIntervalMs, 'write request rows', () => queue.flush());
        host.every(pruneIntervalMs, 'prune request rows', prune);
        return bodies.start();
      },
      async stop() {
        await queue.flush();
        await recorder.flush();
      },
      async prepare(changed) {
        const commitBodies = await bodies.prepare(changed.bodies);
        return () => {
          config = changed;
          commitBodies();
        };
      },
    };
  },
});

/** Who deletes rows sooner than bodies would look for the one without the other. */
function problemsOf({ retention, bodies }: z.output<typeof configSchema>): Fault[] {
  if (bodies === undefined || bodies.retention <= retention) return [];
  return [
    { path: ['bodies', 'retention'], message: 'Bodies must not be kept for longer than the rows of their requests.' },
  ];
}
