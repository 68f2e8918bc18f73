/** A cache of answers: a request that was answered before, or nearly the same one, is answered again without the model, at a price of its own. */
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Fault,
  type Host,
  type Next,
  type Notice,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { caller } from '../common/domain/accounts.ts';
import { cacheReport } from '../common/domain/admin/cache.ts';
import {
  answerPolicies,
  call,
  conversation,
  pinned,
  spendGuard,
  unrecorded,
  usageReport,
  vendorBatch,
} from '../common/domain/calls.ts';
import { counters } from '../common/domain/counters.ts';
import { database } from '../common/domain/database.ts';
import { servedBy } from '../common/domain/ledger.ts';
import { catalog, model } from '../common/domain/models.ts';
import { promptRules } from '../common/wire/prompt-rules.ts';
import { opened } from '../common/wire/protocols.ts';
import { Caching } from './caching.ts';
import { cacheCommand } from './commands.ts';
import { type CacheConfig, configSchema } from './config.ts';
import { cachedRequest } from './request.ts';
import { ruleOf } from './rules.ts';
import { MemoryStore } from './stores/memory.ts';
import { PostgresStore } from './stores/postgres.ts';
import { RedisStore } from './stores/redis.ts';
import type { Bounds, EntryStore } from './stores/store.ts';
import { Sums } from './sums.ts';
import { wishIn } from './wish.ts';

const writeMs = 5_000;
const sweepMs = 60_000;
const pruneMs = 3_600_000;

export default definePlugin<CacheConfig>({
  name: 'cache',
  config: configSchema,
  services: { optional: [database, counters, promptRules, catalog], provides: [cacheReport] },
  requires: [call],
  // `spendGuard` is billing's: with billing in the list the cache stands below it.
  optional: [caller, model, opened, conversation, pinned, vendorBatch, unrecorded, answerPolicies, spendGuard],
  sets: [servedBy],
  requiresAtEnd: [usageReport],
  async setup(host, config) {
    const store = host.find(database);
    await store?.migrate('cache', new URL('./migrations/', import.meta.url));
    const sums = new Sums(store, host.clock);
    host.provide(cacheReport, sums);
    host.every(writeMs, 'write sums of the cache', () => sums.flush());
    host.every(pruneMs, 'forget old sums of the cache', () => sums.prune());
    const bounds = { bytes: config.bytes, accountBytes: Math.min(config.account, config.bytes) };
    const entries = storeOf(host, config, bounds);
    const caching = entries && new Caching({ host, store: entries, sums, bounds });
    let current = config;
    const instance: PluginInstance<CacheConfig> = {
      ...layerOf(host, config, caching),
      checks: { problems: () => problemsOf(host, current), notices: () => noticesOf(host, current) },
      commandLine: { commands: [cacheCommand(sums, host.clock)] },
      reload: {
        members: ['of', 'scope', 'honour', 'largest', 'wait', 'similar'],
        prepare(changed) {
          const [first] = problemsOf(host, changed);
          if (first !== undefined) throw new Error(`cache.${first.path.join('.')}: ${first.message}`);
          return () => {
            current = changed;
            Object.assign(instance, layerOf(host, changed, caching));
          };
        },
      },
      lifecycle: {
        async stop() {
          await caching?.ended();
          await sums.flush();
        },
      },
    };
    return instance;
  },
});

/** The members that change with the section. Without rules no endpoint has it in its chain. */
function layerOf(host: Host, config: CacheConfig, caching: Caching | undefined) {
  const rules = config.of.map(ruleOf);
  const settings = { rules, scope: config.scope, largestBytes: config.largest, now: () => host.clock.now() };
  const obeys = config.honour.includes('cache-control');
  return {
    applies: (endpoint: Endpoint) =>
      caching !== undefined &&
      isCharged(endpoint) &&
      rules.some(({ operations }) => operations?.has(endpoint.operation) ?? true),
    handle(exchange: Exchange, next: Next) {
      const request = caching && cachedRequest(exchange, settings);
      if (request === undefined) return next();
      const wish = wishIn(obeys ? exchange.request.headers['cache-control'] : undefined);
      return caching!.answer(exchange, next, request, wish, config);
    },
  };
}

/** An upstream answers it at once, to a request that is read whole. */
function isCharged({ handle, deferred, body, charges, setsOnOpen = [] }: Endpoint): boolean {
  return handle === undefined && deferred !== true && body === 'json' && charges !== false && setsOnOpen.includes(call);
}

function storeOf(host: Host, config: CacheConfig, bounds: Bounds): EntryStore | undefined {
  if (config.store === 'memory') {
    const store = new MemoryStore(host.clock, bounds);
    host.every(sweepMs, 'forget old answers', () => store.sweep());
    return store;
  }
  if (config.store === 'redis') {
    const shared = host.find(counters);
    return shared && new RedisStore(shared, `${host.schema}:${host.gateway}`, bounds);
  }
  const rows = host.find(database);
  if (rows === undefined) return undefined;
  const store = new PostgresStore(rows, bounds);
  host.every(sweepMs, 'forget old answers', () => store.sweep());
  return store;
}

function problemsOf(host: Host, { store, similar, of }: CacheConfig): Fault[] {
  const problems: Fault[] = [];
  // Commands and checks open no connection to it.
  if (store === 'redis' && host.mode === 'serve' && host.find(counters) === undefined)
    problems.push({
      path: ['store'],
      message: 'redis needs the address of the server in storage.counters: set REDIS_URL',
    });
  if (store === 'postgres' && host.find(database) === undefined)
    problems.push({ path: ['store'], message: 'postgres needs a database', lacks: { service: database } });
  if (similar !== undefined && of.length > 0) {
    if (host.find(promptRules) === undefined)
      problems.push({
        path: ['similar'],
        message: 'questions are read by the plugin "prompts"',
        lacks: { service: promptRules },
      });
    const entry = host.find(catalog)?.find(similar.model);
    if (entry?.kind !== 'embedding')
      problems.push({
        path: ['similar', 'model'],
        message: `"${similar.model}" is no model of embeddings of the catalogue`,
      });
  }
  return problems;
}

function noticesOf(host: Host, { of, store }: CacheConfig): Notice[] {
  const cached = host.endpoints().filter(isCharged);
  const known = new Set(cached.map(({ operation }) => operation));
  const unknown = of.flatMap(({ operations = [] }) => operations.filter((operation) => !known.has(operation)));
  const notices = unknown.map((operation): Notice => {
    const text = `cache.of names the operation "${operation}", which no endpoint of this gateway has whose answers can be kept.`;
    return { level: 'warning', text };
  });
  if (of.length > 0 && store === 'memory' && host.find(database)?.shared === true)
    notices.push({
      level: 'info',
      text: 'cache.store is memory: each process keeps answers of its own, and equal calls at two processes are made twice.',
    });
  return notices;
}
