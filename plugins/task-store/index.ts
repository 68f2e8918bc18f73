/** Images and videos as asynchronous tasks: made by vendors, stored as files, charged once. */
import type { Command } from '../../core/contract/commands.ts';
import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { GuardedClient } from '../../core/tools/guarded-fetch.ts';
import { accounts, caller } from '../common/domain/accounts.ts';
import { taskAdmin } from '../common/domain/admin/tasks.ts';
import { upstreamHealth } from '../common/domain/admin/upstreams.ts';
import { type Attempt, attempts, call, usageReport } from '../common/domain/calls.ts';
import { type Database, database } from '../common/domain/database.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { authorization, authorizations } from '../common/domain/ledger.ts';
import { catalog, model } from '../common/domain/models.ts';
import { files } from '../common/domain/stored-files.ts';
import { mediaProtocols, providers } from '../common/domain/upstreams.ts';
import { DueWatch } from '../common/kit/jobs/due-watch.ts';
import { nextDueMs } from '../common/kit/jobs/leases.ts';
import { tableOf } from '../common/kit/sql.ts';
import { mediaAdapters } from '../common/media/adapters.ts';
import { orderSpans } from '../common/wire/trace.ts';
import { ownAdapters } from './adapters/index.ts';
import { openTaskAdmin } from './admin/task-admin.ts';
import { configSchema, type TaskConfig } from './config.ts';
import type { Adapters } from './contract.ts';
import { Callbacks, callbackKeys, callbackSecret, checkCallback, rotatedCallbacks } from './engine/callbacks.ts';
import type { Timing, Tools } from './engine/dependencies.ts';
import { Engine } from './engine/engine.ts';
import { fetcherOf } from './engine/reference-bytes.ts';
import type { StoredTask } from './engine/rows.ts';
import { SqlTaskRows } from './engine/sql-rows.ts';
import { openVendors } from './engine/vendor.ts';
import { endpointsOf } from './orders/endpoints.ts';
import { ListQueries } from './orders/list-queries.ts';
import { Queries } from './orders/queries.ts';
import { imageTask, videoTask } from './orders/shapes/index.ts';
import { viewOf } from './orders/view.ts';

const turnIntervalMs = 250;
const callbackIntervalMs = 500;
const sweepIntervalMs = 600_000;
const longestSleepMs = 5_000;
/** Other processes share the tasks of one that has no worker free. */
const longestSharedSleepMs = 1_000;
const callbackBytes = 0;

export default definePlugin<TaskConfig>({
  name: 'task-store',
  config: configSchema,
  extensionPoints: [mediaAdapters],
  extends: [mediaAdapters],
  services: {
    requires: [database, catalog, providers, authorizations, files],
    optional: [accounts, errorShape, upstreamHealth, orderSpans],
    provides: [taskAdmin, mediaProtocols],
  },
  requires: [call, caller, model, authorization],
  // Exchanges of orders have no attempts; the task has them.
  sets: [attempts, usageReport],
  setup: setUpTasks,
});

async function setUpTasks(host: Host, config: TaskConfig): Promise<PluginInstance> {
  const adapters = adaptersOf(host);
  const store = host.get(database);
  await store.migrate('task-store', new URL('./migrations/', import.meta.url));
  const vendors = openVendors(host);
  const { allow_private: allowPrivate, limit: maxBytes } = config.references;
  const references = new GuardedClient({ allowPrivate, maxBytes });
  const outside = new GuardedClient({ allowPrivate: config.callbacks.allow_private, maxBytes: callbackBytes });
  const due = watchesOf(host, store);
  const tools: Tools = {
    store,
    rows: new SqlTaskRows(store),
    authorizations: host.get(authorizations),
    files: host.get(files),
    catalog: host.get(catalog),
    providers: host.get(providers),
    health: () => host.find(upstreamHealth),
    get adapters() {
      return adapters();
    },
    vendors,
    withBytes: fetcherOf(references),
    clock: host.clock,
    random: host.random,
    log: host.log,
    timing: timingOf(config),
    onEnd: (task, attempts) => ended(host, due.callbacks, task, attempts),
  };
  host.provide(taskAdmin, openTaskAdmin(tools));
  const engine = new Engine(tools, config.workers, () => due.tasks.changed());
  const endpoints = endpointsOf({
    ...{ host, config, tools, engine, queries: new Queries(tools), lists: new ListQueries(tools) },
    checkCallback: (address) => checkCallback(outside, address),
  });
  const secrets = () => callbackKeys(store, config.callbacks.secret, host.random);
  return {
    endpoints,
    applies: (endpoint) => endpoint.deferred === true && endpoints.includes(endpoint),
    handle: (_exchange, next) => next(),
    commandLine: {
      secrets: () => [rotatedCallbacks(store, config.callbacks.secret)],
      commands: commandsOf(host, async (accountId) => (await secrets()).map((one) => callbackSecret(one, accountId))),
    },
    lifecycle: {
      async start() {
        const callbacks = callbacksBy(tools, outside, await secrets(), config.callbacks.pause);
        host.every(turnIntervalMs, 'take tasks', () => due.tasks.look(() => engine.turn()));
        host.every(callbackIntervalMs, 'deliver callbacks', () => due.callbacks.look(() => callbacks.turn()));
        host.every(sweepIntervalMs, 'forget old tasks', () => tools.rows.deleteOld(config.retention));
      },
      async stop() {
        await engine.stop(config.drain);
        await Promise.all([vendors.close(), references.close(), outside.close()]);
      },
    },
  };
}

/** The last attempt took until now: its vendor may have worked on it long after its answer. */
function ended(host: Host, callbacks: DueWatch, task: StoredTask, attempts: readonly Attempt[]): void {
  callbacks.changed();
  const spans = host.find(orderSpans);
  if (spans === undefined) return;
  const last = attempts.at(-1);
  for (const attempt of attempts) {
    const durationMs = attempt === last ? Math.max(0, host.clock.now() - attempt.startedAt) : attempt.durationMs;
    spans.add(task, { operation: `create_${task.kind}`, isGeneration: true, attempt: { ...attempt, durationMs } });
  }
}

/** Adds this plugin's own adapters; those of all plugins are complete when every plugin is set up. */
function adaptersOf(host: Host): () => Adapters {
  for (const adapter of ownAdapters) host.extend(mediaAdapters, adapter);
  let all: Adapters | undefined;
  const adapters = () => {
    all ??= new Map(host.extensions(mediaAdapters).map((adapter) => [adapter.name, adapter]));
    return all;
  };
  host.provide(mediaProtocols, { paths: () => new Map([...adapters()].map(([name, { path }]) => [name, path])) });
  return adapters;
}

function callbacksBy(
  tools: Tools,
  outside: GuardedClient,
  secrets: readonly string[],
  firstPauseMs: number,
): Callbacks {
  return new Callbacks({
    ...tools,
    post: (url, body, headers, signal) => outside.post(url, body, headers, signal),
    render: (task) => (task.kind === 'image' ? imageTask : videoTask).render(viewOf(task, tools.files, undefined)),
    secrets,
    firstPauseMs,
  });
}

/** When tasks and callbacks fall due. */
function watchesOf({ clock }: Host, store: Database): { readonly tasks: DueWatch; readonly callbacks: DueWatch } {
  const watch = (table: string, longestMs: number) =>
    new DueWatch({ clock, longestMs, nextMs: () => nextDueMs(store.orm, tableOf(store, table)) });
  return {
    tasks: watch('tasks', store.shared === true ? longestSharedSleepMs : longestSleepMs),
    callbacks: watch('task_callbacks', longestSleepMs),
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

function commandsOf(host: Host, secretsOf: (accountId: string) => Promise<readonly string[]>): Command[] {
  return [
    {
      name: 'callbacks secret',
      summary: 'Shows the secrets with which an account verifies its callbacks, the newest first; each signs.',
      arguments: ['<account>'],
      async run({ account: name }) {
        const account = await host.find(accounts)?.find(String(name));
        if (account === undefined)
          throw new GatewayError('not_found', `There is no account "${String(name)}".`, { field: 'account' });
        const [secret, ...others] = await secretsOf(account.id);
        return {
          json: { account: account.name, secret, others },
          text: [secret, ...others.map((other) => `${other}  (before it)`)].join('\n'),
        };
      },
    },
  ];
}
