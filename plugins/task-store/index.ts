/** Images and videos as tasks: ordered by clients, made by vendors, kept by files, and paid once. */
import { definePlugin, type Host, type Part } from '../../core/contract.ts';
import { taskDesk, upstreamHealth } from '../../core/desk.ts';
import { GuardedClient } from '../../core/guarded-get.ts';
import {
  accounts,
  attempts,
  call,
  caller,
  catalog,
  database,
  deposit,
  deposits,
  errorShape,
  files,
  model,
  providers,
  usageReport,
} from '../../core/vocabulary.ts';
import { adapters } from './adapters/index.ts';
import { Callbacks, callbackKey, callbackSecret, checkCallback } from './callbacks.ts';
import { commandsOf } from './commands.ts';
import { configSchema, type TaskConfig } from './config.ts';
import { endpointsOf } from './endpoints.ts';
import { Engine } from './engine.ts';
import { ListQueries } from './list-queries.ts';
import { Queries } from './queries.ts';
import { imageTask, videoTask } from './shapes/index.ts';
import { SqlTaskRows } from './sql-rows.ts';
import type { Adapters } from './targets.ts';
import { openTaskDesk } from './task-desk.ts';
import type { Timing, Tools } from './tools.ts';
import { openVendors } from './vendor.ts';
import { viewOf } from './view.ts';
import { fetcherOf } from './with-bytes.ts';

const turnIntervalMs = 250;
const callbackIntervalMs = 500;
const sweepIntervalMs = 600_000;
const callbackBytes = 0;

export default definePlugin<TaskConfig>({
  name: 'task-store',
  config: configSchema,
  needs: [database, catalog, providers, deposits, files],
  uses: [accounts, errorShape, upstreamHealth],
  reads: [call, caller, model, deposit],
  // No exchange of an order has attempts: the task has.
  writes: [attempts, usageReport],
  provides: [taskDesk],
  setup: (host, config) => setUpTasks(host, config, adapters),
});

/** The plugin's setup with vendors of the caller's choice. */
export async function setUpTasks(host: Host, config: TaskConfig, spoken: Adapters): Promise<Part> {
  const store = host.need(database);
  await store.migrate('task-store', new URL('./migrations/', import.meta.url));
  const vendors = openVendors(host);
  const references = new GuardedClient({
    allowPrivate: config.references.allow_private,
    maxBytes: config.references.limit,
  });
  const outside = new GuardedClient({ allowPrivate: config.callbacks.allow_private, maxBytes: callbackBytes });
  const tools: Tools = {
    store,
    rows: new SqlTaskRows(store),
    deposits: host.need(deposits),
    files: host.need(files),
    catalog: host.need(catalog),
    providers: host.need(providers),
    health: () => host.find(upstreamHealth),
    adapters: spoken,
    vendors,
    withBytes: fetcherOf(references),
    clock: host.clock,
    random: host.random,
    log: host.log,
    timing: timingOf(config),
  };
  host.provide(taskDesk, openTaskDesk(tools));
  const engine = new Engine(tools, config.workers);
  const endpoints = endpointsOf({
    host,
    config,
    tools,
    engine,
    queries: new Queries(tools),
    lists: new ListQueries(tools),
    checkCallback: (address) => checkCallback(outside, address),
  });
  const secret = () => callbackKey(store, config.callbacks.secret, host.random);
  return {
    endpoints,
    applies: (endpoint) => endpoint.later === true && endpoints.includes(endpoint),
    handle: (_exchange, next) => next(),
    commands: commandsOf(host, async (accountId) => callbackSecret(await secret(), accountId)),
    async start() {
      const callbacks = new Callbacks({
        ...tools,
        post: (url, body, headers, signal) => outside.post(url, body, headers, signal),
        word: (task) => (task.kind === 'image' ? imageTask : videoTask).told(viewOf(task, tools.files, undefined)),
        secret: await secret(),
        firstPauseMs: config.callbacks.pause,
      });
      host.every(turnIntervalMs, 'take tasks', () => engine.turn());
      host.every(callbackIntervalMs, 'deliver callbacks', () => callbacks.turn());
      host.every(sweepIntervalMs, 'forget old tasks', () => tools.rows.deleteOld(config.retention));
    },
    async stop() {
      await engine.stop(config.drain);
      await Promise.all([vendors.close(), references.close(), outside.close()]);
    },
  };
}

function timingOf(config: TaskConfig): Timing {
  return {
    leaseMs: config.lease,
    deadlineMs: config.deadline,
    reconcileMs: config.reconcile,
    pollMs: config.poll.first,
    longestPollMs: config.poll.longest,
    retryMs: config.retry.first,
    longestRetryMs: config.retry.longest,
  };
}
