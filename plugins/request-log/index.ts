/**
 * The request log: one database row and one log line per request, written in batches after the answer. A call that billing writes
 * a row for has this one: what the log knows is added to it.
 */
import { sql } from 'drizzle-orm';
import { definePlugin, type Fault, type Host } from '../../core/contract/contract.ts';
import { duration, z } from '../../core/contract/schema.ts';
import { accounts } from '../common/domain/accounts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { recordedBodies } from '../common/domain/admin/recorded-bodies.ts';
import { requestQueries, requestSumsAudit } from '../common/domain/admin/requests.ts';
import { callRow, callRows, requestSumTable } from '../common/domain/call-facts.ts';
import { unrecorded } from '../common/domain/calls.ts';
import { type Database, database } from '../common/domain/database.ts';
import { timeline } from '../common/domain/timeline.ts';
import { guardrailVerdicts } from '../common/guardrails/verdicts.ts';
import { firstIdAt } from '../common/kit/arrival.ts';
import { keySlices } from '../common/kit/key-slices.ts';
import { lookMs } from '../common/kit/pace.ts';
import { checkSums } from '../common/rollups/check.ts';
import { foldEveryMs, foldSums } from '../common/rollups/fold.ts';
import { rebuildSums } from '../common/rollups/rebuild.ts';
import { bodyCommands } from './bodies/commands.ts';
import { openBodies } from './bodies/open.ts';
import { bodiesSection, noticesOf } from './bodies/settings.ts';
import { commandsOf } from './commands.ts';
import { requestQueriesOf } from './queries.ts';
import { RowQueue } from './queue.ts';
import { addRows, requestSumsWith } from './request-sums.ts';
import { rowOf } from './row.ts';
import { storedTimeline } from './timeline.ts';

const pruneIntervalMs = 3_600_000;

const configSchema = z.strictObject({
  lines: z
    .boolean()
    .default(true)
    .describe('Write one log line for each request. Turn it off where the rows of the database are enough.'),
  retention: duration()
    .prefault('30d')
    .describe('How long rows of requests are kept. Raise it when clients and support look back further.'),
  timeline: z
    .boolean()
    .default(true)
    .describe(
      'Keep with each row the timeline of decisions: limit, price, route, conversion, charge. Turn it off to write fewer bytes for each call.',
    ),
  bodies: bodiesSection.optional(),
});

export default definePlugin({
  name: 'request-log',
  config: configSchema,
  services: {
    requires: [database],
    optional: [ledgerQueries, accounts, callRows, guardrailVerdicts],
    provides: [requestQueries, requestSumTable, requestSumsAudit, recordedBodies],
  },
  sets: [timeline],
  async setup(host, written) {
    let config = written;
    const store = host.get(database);
    await store.migrate('request-log', new URL('./migrations/', import.meta.url));
    const sums = sumsIn(host);
    let noted = 0;
    const queries = queriesIn(host, store, sums, () => noted);
    host.provide(requestQueries, queries);
    host.provide(requestSumTable, sums);
    host.provide(requestSumsAudit, {
      check: (days) => checkSums(store.orm, store.schema, sums, days),
      rebuild: (options) => rebuildSums(store.orm, store.schema, sums, options),
    });
    const bodies = openBodies(host, store, config.bodies);
    host.provide(recordedBodies, bodies.admin);
    const queue = new RowQueue((rows) => addRows(store, rows), host);
    return {
      commandLine: { commands: [...commandsOf(host, queries, bodies.admin), ...bodyCommands(host, bodies.admin)] },
      checks: { problems: () => problemsOf(config), notices: () => noticesOf(config.bodies) },
      applies: ({ unlogged }) => unlogged !== true,
      handle(exchange, next) {
        if (config.timeline) exchange.set(timeline, []);
        exchange.defer((outcome) => {
          if (exchange.find(unrecorded) === true) return;
          noted++;
          const row = rowOf(exchange, outcome);
          const story = storedTimeline(exchange.find(timeline), exchange.receivedAt);
          const isKept = exchange.find(callRow)?.complete(row, story) === true;
          if (isKept && !config.lines) return;
          // Encoded once for the log line and the row; the timeline is added to the row only.
          const line = JSON.stringify(row);
          if (!isKept) queue.push(line, story && JSON.stringify(story));
          if (config.lines) host.log.record('request', line);
        });
        return bodies.recorder.isOn ? bodies.recorder.run(exchange, next) : next();
      },
      lifecycle: {
        start() {
          host.every(lookMs, 'write request rows', () => queue.advance());
          host.every(foldEveryMs, 'fold sums of requests', () =>
            foldSums(store.orm, store.schema, sums, host.clock.now()),
          );
          host.every(pruneIntervalMs, 'prune request rows', () => prune(host, store, config.retention));
          return bodies.start();
        },
        async stop() {
          await queue.flush();
          await bodies.recorder.flush();
        },
      },
      reload: {
        async prepare(changed) {
          const commitBodies = await bodies.prepare(changed.bodies);
          return () => {
            config = changed;
            commitBodies();
          };
        },
      },
    };
  },
});

const sumsIn = (host: Host) => requestSumsWith(() => host.find(callRows)?.view);

function queriesIn(host: Host, store: Database, sums: ReturnType<typeof sumsIn>, written: () => number) {
  const [calls, verdicts] = [() => host.find(callRows), () => host.find(guardrailVerdicts)];
  return requestQueriesOf(store, sums, calls, written, verdicts);
}

/** Removes rows, and requests' facts in calls, that are older than the retention. Their sums stay. */
async function prune(host: Host, { orm, schema }: Database, retentionMs: number): Promise<void> {
  const before = host.clock.now() - retentionMs;
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  // First, so that no sum is made again of rows that are about to go.
  await orm.execute(
    sql`update ${table('request_sums_state')} set rows_from = greatest(rows_from, ${new Date(before).toISOString()}::timestamptz)`,
  );
  const requests = table('requests');
  for await (const [from, until] of keySlices(orm, requests, { from: firstIdAt(0), until: firstIdAt(before) }))
    await orm.execute(sql`delete from ${requests} where id >= ${from}::uuid and id < ${until}::uuid`);
  await host.find(callRows)?.forgetFacts(before);
}

/** Bodies are found by their rows, so they must not outlive them. */
function problemsOf({ retention, bodies }: z.output<typeof configSchema>): Fault[] {
  if (bodies === undefined || bodies.retention <= retention) return [];
  return [
    { path: ['bodies', 'retention'], message: 'Bodies must not be kept for longer than the rows of their requests.' },
  ];
}
