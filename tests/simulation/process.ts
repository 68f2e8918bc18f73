/** One gateway process: the real limiter, billing, providers and routes on a simulated clock, disk and database. */

import type {
  ContextKey,
  Endpoint,
  Exchange,
  Host,
  Next,
  Plugin,
  PluginInstance,
  Service,
} from '../../core/contract/contract.ts';
import type { Log, RegularWork } from '../../core/contract/host-tools.ts';
import type { Answer } from '../../core/contract/message.ts';
import { alone } from '../../core/contract/process-group.ts';
import { uuidMaker } from '../../core/gateway/system.ts';
import { compileChain, type InstalledPlugin, type Run } from '../../core/http/chain.ts';
import type { LiveExchange } from '../../core/http/exchange.ts';
import auth, { type Stores, setUpAuth } from '../../plugins/auth/index.ts';
import billing, { setUpBilling } from '../../plugins/billing/index.ts';
import type { Files } from '../../plugins/billing/journal/segments.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { type Accounts, accounts } from '../../plugins/common/domain/accounts.ts';
import { type ShopAdmin, shopAdmin } from '../../plugins/common/domain/admin/shop.ts';
import { upstreamHealth } from '../../plugins/common/domain/admin/upstreams.ts';
import { call } from '../../plugins/common/domain/calls.ts';
import { type Database, database } from '../../plugins/common/domain/database.ts';
import { type Ledger, ledger, type Pool, pool } from '../../plugins/common/domain/ledger.ts';
import { type Plans, plans, type Shop, shop } from '../../plugins/common/domain/plans.ts';
import { providers, type UpstreamGate } from '../../plugins/common/domain/upstreams.ts';
import type { CallTransform } from '../../plugins/common/wire/call-transforms.ts';
import type { PromptTexts } from '../../plugins/common/wire/prompt-rules.ts';
import idempotency, { setUpIdempotency } from '../../plugins/idempotency/index.ts';
import type { KeyedRows, Lifetimes } from '../../plugins/idempotency/rows.ts';
import providersPlugin from '../../plugins/providers/index.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import route from '../../plugins/route/index.ts';
import { setUpShop } from '../../plugins/shop/index.ts';
import type { CodeStore } from '../../plugins/shop/store.ts';
import type { Chance } from './chance.ts';
import { type GuardRoom, openGuardRoom } from './guarded.ts';
import type { Life, Schedule } from './schedule.ts';
import { openTaskRoom, type TaskGround, type TaskRoom } from './task-room.ts';
import { forwardTool, toolEndpoint } from './tools.ts';

export interface ProcessOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly life: Life;
  readonly directory: string;
  readonly files: Files;
  readonly store: Store;
  /** Other processes spend from the same database. */
  readonly shared: boolean;
  readonly keysOf: (lifetimes: Lifetimes) => KeyedRows;
  readonly codes: CodeStore;
  /** What tasks stand on, where there are any. */
  readonly tasks: TaskGround | undefined;
  /** The tables that callers are looked up in; undefined: no one asks who they are. */
  readonly callers: Stores | undefined;
  readonly accounts: Accounts;
  readonly plans: Plans;
  /** Sections of the gateway's file. */
  readonly billing: object;
  readonly providers: object;
  readonly route: object;
  /** Wall-clock milliseconds at virtual time 0; may step. */
  readonly wallClock: () => number;
  readonly announce: (topic: string, subject: string) => Promise<void>;
  /** The centre of the onion. */
  readonly forward: Run;
  /** Called for each call that its API key has let in. */
  readonly onAdmitted: (exchange: LiveExchange) => undefined | Promise<void>;
  /** Draws how long checks of guardrails wait; undefined: there are none. */
  readonly guards: Chance | undefined;
  /** The texts of a request, for checks. */
  readonly textsOf: (exchange: Exchange) => PromptTexts;
  /** What a cache below billing answers a call with; undefined: nothing. */
  readonly fromCache: (exchange: LiveExchange) => undefined | ReturnType<Run>;
  /** The database can be reached; if not, for how long already, and how long is bridged. */
  readonly healthy: () => boolean;
  readonly awayMs: () => number;
  readonly bridgeMs: number;
  /** Called for each regular work that has begun. */
  readonly onWork: (name: string) => void;
}

export const endpoint: Endpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  operation: 'chat',
  body: 'none',
  setsOnOpen: [call as ContextKey<unknown>],
};

/** What is logged is of no use to a simulation; what happens shows elsewhere. */
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, record: () => {} };

export class Process {
  readonly life: Life;
  readonly log: Log = silent;
  readonly host: Host;
  readonly newId: () => string;
  readonly #options: ProcessOptions;
  readonly #services = new Map<Service<unknown>, unknown>();
  readonly #listeners: { topic: string; listener: (subject: string) => void }[] = [];
  #run: Run | undefined;
  #orderRun: Run | undefined;
  #toolRun: Run | undefined;
  #tasks: TaskRoom | undefined;
  #billing: PluginInstance | undefined;
  #guards: GuardRoom | undefined;
  readonly #toolCalls = new WeakMap<Exchange, (next: Next) => Promise<Answer>>();

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.life = options.life;
    this.host = this.#hostOf();
    this.newId = uuidMaker(this.host.clock, this.host.random);
  }

  /** Sets everything up and recovers what an earlier process left. Rejects when that cannot be done now. */
  async start(): Promise<void> {
    const { files, store, keysOf, forward, tasks, ...sections } = this.#options;
    // Whose switches then live in memory: no world turns one.
    await setUp(providersPlugin, this.host, sections.providers);
    this.host.provide(database, this.#databaseService());
    const installedPlugins = await this.#pluginsForCallers();
    this.host.provide(accounts, this.#options.accounts);
    this.host.provide(plans, this.#options.plans);
    const parts: PluginInstance[] = [await setUp(rateLimit, this.host, {})];
    const keyed = sectionOf(idempotency, { keep: '30d', finish: '5s' });
    parts.push(await setUpIdempotency(this.host, keyed, async (_host, _store, lifetimes) => keysOf(lifetimes)));
    this.#billing = await setUpBilling(this.host, sectionOf(billing, sections.billing), files, () => store);
    parts.push(this.#billing, await setUp(route, this.host, sections.route));
    await setUpShop(this.host, () => this.#options.codes);
    const plugins = [rateLimit, idempotency, billing, route] as unknown as Plugin[];
    const shared = plugins.map((plugin, index): InstalledPlugin => ({ plugin, instance: parts[index]! }));
    const cache: PluginInstance = {
      handle: (exchange, next) => this.#options.fromCache(exchange as LiveExchange) ?? next(),
    };
    const between = { plugin: { ...plugins[3]!, name: 'cache' }, instance: cache };
    this.#guards = await this.#openGuards();
    const guards = this.#guards?.installed ?? [];
    parts.push(...guards.map(({ instance }) => instance));
    installedPlugins.push(...shared.toSpliced(3, 0, between).toSpliced(1, 0, ...guards));
    this.#run = compileChain(endpoint, installedPlugins, async () => {}, forward);
    this.#toolRun = this.#openTools(shared);
    this.#tasks = tasks && openTaskRoom(this.host, tasks);
    if (this.#tasks !== undefined) this.#orderRun = compileChain(this.#tasks.endpoint, shared, async () => {}, forward);
    for (const part of parts) await part.lifecycle?.start?.();
    this.#tasks?.start();
    for (const part of parts) await part.lifecycle?.listening?.('http://simulated');
  }

  /** Calls of tools pass the limiter and the money, and then go to the one that asks for them. */
  #openTools([limits, , money, last]: readonly InstalledPlugin[]): Run {
    const instance: PluginInstance = { handle: (exchange, next) => this.#toolCalls.get(exchange)!(next) };
    const mcp = { plugin: { ...last!.plugin, name: 'mcp' }, instance };
    return compileChain(toolEndpoint, [limits!, money!, mcp], async () => {}, forwardTool);
  }

  async #openGuards(): Promise<GuardRoom | undefined> {
    const { guards, textsOf, schedule, life } = this.#options;
    return guards && openGuardRoom(this.host, { schedule, chance: guards, life, textsOf });
  }

  /** Who calls, asked before all others, and the one that looks on at who is let in. */
  async #pluginsForCallers(): Promise<InstalledPlugin[]> {
    const { callers, onAdmitted } = this.#options;
    if (callers === undefined) return [];
    const settings = sectionOf(auth, { secret: 'of simulated keys', failures: { per_minute: 1_000_000 } });
    const part = await setUpAuth(this.host, settings, () => callers);
    const look: PluginInstance = {
      handle: (exchange, next) => {
        const turn = onAdmitted(exchange as LiveExchange);
        return turn === undefined ? next() : turn.then(() => next());
      },
    };
    return [
      { plugin: auth as unknown as Plugin, instance: part },
      { plugin: { ...(auth as unknown as Plugin), name: 'looker-on' }, instance: look },
    ];
  }

  /** Lets the exchange into the onion. */
  handle(exchange: LiveExchange): ReturnType<Run> {
    return this.#run!(exchange);
  }

  /** Lets a call of a tool into the onion of tools; `called`: when it has passed the limiter and the money. */
  callTool(exchange: LiveExchange, called: (next: Next) => Promise<Answer>): ReturnType<Run> {
    this.#toolCalls.set(exchange, called);
    return this.#toolRun!(exchange);
  }

  /** Lets an order into the onion of tasks. */
  order(exchange: LiveExchange): ReturnType<Run> {
    return this.#orderRun!(exchange);
  }

  /** What checks answers; undefined: no one does. */
  get transform(): CallTransform | undefined {
    return this.#guards?.transform;
  }

  /** Where tasks are ordered and taken back; undefined: nowhere. */
  get tasks(): TaskRoom | undefined {
    return this.#tasks;
  }

  get ledger(): Ledger {
    return this.host.get(ledger);
  }

  get pool(): Pool {
    return this.host.get(pool);
  }

  get shop(): Shop {
    return this.host.get(shop);
  }

  get shopAdmin(): ShopAdmin {
    return this.host.get(shopAdmin);
  }

  get ownBudgets(): Store['ownBudgets'] {
    return this.#options.store.ownBudgets;
  }

  /** Calls that the route believes to be under way at a vendor, and places that they hold there. */
  takenAt(provider: string): number {
    const gate = this.host.get(providers).find(provider)?.gate as (UpstreamGate & { inFlight: number }) | undefined;
    const targets = this.host.get(upstreamHealth).targets(provider);
    return targets.reduce((sum, { inFlight }) => sum + inFlight, gate?.inFlight ?? 0);
  }

  get isReady(): boolean {
    return this.#billing?.health?.ready?.() ?? false;
  }

  hear(topic: string, subject: string): void {
    for (const known of this.#listeners) if (known.topic === topic) known.listener(subject);
  }

  async stop(): Promise<void> {
    await this.#tasks?.stop();
    this.#billing?.lifecycle?.drain?.();
    await this.#billing?.lifecycle?.stop?.();
  }

  #hostOf(): Host {
    const { schedule, chance, directory, wallClock } = this.#options;
    const startedAt = schedule.now;
    return {
      gateway: 'main',
      schema: 'main',
      directory,
      commonDirectory: directory,
      processGroup: alone,
      mode: 'serve',
      log: silent,
      clock: {
        now: () => Math.floor(wallClock()),
        monotonic: () => schedule.now - startedAt,
      },
      random: chance.random(),
      get: <T>(service: Service<T>): T => {
        if (!this.#services.has(service)) throw new Error(`no plugin provides "${service.name}"`);
        return this.#services.get(service) as T;
      },
      find: <T>(service: Service<T>) => this.#services.get(service) as T | undefined,
      provide: (service, value) => void this.#services.set(service, value),
      extend: () => {},
      extensions: () => [],
      endpoints: () => [endpoint],
      every: (intervalMs, name, work) => this.#every(intervalMs, name, work),
      perform: () => Promise.reject(new Error('there is no chain in a simulation')),
      fetch: () => Promise.reject(new Error('there is no service outside of a simulation')),
    };
  }

  /** As the core does it: a run that takes longer than its interval is not overtaken. */
  #every(intervalMs: number, name: string, work: RegularWork): void {
    const { schedule, onWork } = this.#options;
    let isRunning = false;
    const again = () => schedule.after(intervalMs, this.life, name, tick);
    const tick = () => {
      again();
      if (isRunning) return;
      onWork(name);
      const pending = work();
      if (pending === undefined) return;
      isRunning = true;
      const done = () => {
        isRunning = false;
      };
      void pending.then(done, done);
    };
    again();
  }

  #databaseService(): Database {
    const refuse = new Proxy({}, { get: (_target, name) => raise(`the store is asked for ${String(name)} directly`) });
    return {
      orm: refuse as Database['orm'],
      schema: 'main',
      migrate: async () => {},
      announce: (topic, subject) => this.#options.announce(topic, subject),
      change: () => raise('the store is asked for a change directly'),
      onChange: (topic, listener) => void this.#listeners.push({ topic, listener }),
      healthy: this.#options.healthy,
      awayMs: this.#options.awayMs,
      bridgeMs: this.#options.bridgeMs,
      shared: this.#options.shared,
    };
  }
}

function raise(message: string): never {
  throw new Error(message);
}

function sectionOf<Config>(plugin: Plugin<Config>, section: object): Config {
  return (plugin.config as unknown as { parse(value: unknown): Config }).parse(section);
}

async function setUp<Config>(plugin: Plugin<Config>, host: Host, section: object): Promise<PluginInstance> {
  return plugin.setup(host, sectionOf(plugin, section));
}
