/** Alerts: rules about traffic, upstreams and money, evaluated while something happens, stored, and sent to sinks once in a fleet. */
import { isDeepStrictEqual } from 'node:util';
import { definePlugin, type Host, type PluginInstance, type Service } from '../../core/contract/contract.ts';
import { regularWorks } from '../../core/contract/outage.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import {
  type AlertSink,
  alertAdmin,
  alertEvents,
  alertKinds,
  alertSinks,
  consolePages,
  mailers,
} from '../common/domain/admin/alerts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { requestQueries } from '../common/domain/admin/requests.ts';
import { fileStatistics } from '../common/domain/admin/stored-work.ts';
import { upstreamAdmin } from '../common/domain/admin/upstreams.ts';
import { counters } from '../common/domain/counters.ts';
import { database } from '../common/domain/database.ts';
import { openAlertAdmin } from './admin.ts';
import { alertCommands } from './commands.ts';
import { type AlertsConfig, configSchema, problemsOf, type Rule, rulesOf, unreachableSinks } from './config.ts';
import { Deliveries } from './deliveries.ts';
import { Engine } from './engine.ts';
import { gatewayKinds } from './kinds/gateway.ts';
import { moneyKinds } from './kinds/money.ts';
import { trafficKinds } from './kinds/traffic.ts';
import { upstreamKinds } from './kinds/upstreams.ts';
import { AlertRows } from './rows.ts';
import { chatSinks } from './sinks/chats.ts';
import { mailSink, webhookSink } from './sinks/mail-and-webhook.ts';

const tickMs = 1_000;
const cleanIntervalMs = 3_600_000;
const reportsKeptMs = 8 * 24 * 3_600_000;

export default definePlugin<AlertsConfig>({
  name: 'alerts',
  config: configSchema,
  extensionPoints: [alertKinds, alertSinks],
  extends: [alertKinds, alertSinks],
  services: {
    requires: [database],
    optional: [
      ...[requestQueries, ledgerQueries, upstreamAdmin, mailers],
      ...[accountAdmin, fileStatistics, counters, regularWorks, consolePages],
    ],
    provides: [alertEvents, alertAdmin],
  },
  setup: setUpAlerts,
});

async function setUpAlerts(host: Host, written: AlertsConfig): Promise<PluginInstance<AlertsConfig>> {
  let config = written;
  addOwn(host);
  const store = host.get(database);
  await store.migrate('alerts', new URL('./migrations/', import.meta.url));
  const rows = new AlertRows(store);
  const sinks = new OpenSinks(host);
  const deliveries = new Deliveries(host, rows, (name) => sinks.find(name, config));
  let rules: readonly Rule[] | undefined;
  const engine = new Engine(host, rows, deliveries, {
    everyMs: () => config.every,
    rules: () => {
      rules ??= rulesOf(config, host.extensions(alertKinds));
      return rules;
    },
    written: () => host.find(requestQueries)?.written() ?? 0,
    isAway: () => !store.healthy(),
  });
  host.provide(alertEvents, engine);
  host.provide(alertAdmin, openAlertAdmin({ host, rows, deliveries, engine, config: () => config }));
  let lookedAt = host.clock.monotonic();
  const lookWhenDue = () => {
    const now = host.clock.monotonic();
    if (now - lookedAt < config.every) return undefined;
    lookedAt = now;
    return engine.look();
  };
  const isProvided = (service: Service<unknown>) => host.find(service) !== undefined;
  const problems = (of: AlertsConfig) =>
    problemsOf(of, host.extensions(alertKinds), host.extensions(alertSinks), isProvided);
  return {
    commandLine: { commands: alertCommands(host, rows, deliveries, () => config) },
    checks: { problems: () => problems(config), notices: () => unreachableSinks(config) },
    reload: {
      prepare(changed) {
        const [problem] = problems(changed);
        if (problem !== undefined && 'message' in problem) throw new Error(problem.message);
        sinks.check(changed);
        return () => {
          sinks.replace(config, changed);
          config = changed;
          rules = undefined;
        };
      },
    },
    lifecycle: {
      start() {
        host.every(tickMs, 'evaluate the rules of alerts', lookWhenDue);
        host.every(cleanIntervalMs, 'forget old alerts', () => {
          const now = host.clock.now();
          return rows.removeOld(now - config.retention, now - reportsKeptMs);
        });
      },
      stop: () => sinks.close(),
    },
  };
}

function addOwn(host: Host): void {
  const kinds = [
    ...trafficKinds(() => host.find(requestQueries)),
    ...upstreamKinds(() => host.find(upstreamAdmin)),
    ...moneyKinds(() => host.find(ledgerQueries)),
    ...gatewayKinds(host),
  ];
  for (const kind of kinds) host.extend(alertKinds, kind);
  for (const sink of [mailSink, webhookSink, ...chatSinks]) host.extend(alertSinks, sink);
}

/** Opened when their first message is sent. */
class OpenSinks {
  readonly #host: Host;
  readonly #open = new Map<string, AlertSink>();

  constructor(host: Host) {
    this.#host = host;
  }

  find(name: string, { sinks }: AlertsConfig): AlertSink | undefined {
    const found = this.#open.get(name);
    if (found !== undefined || !Object.hasOwn(sinks, name)) return found;
    const { clock, fetch } = this.#host;
    const { type, settings } = this.#parsed(name, sinks[name]!);
    const sink = type.open(settings, { clock, fetch, mailer: () => this.#host.find(mailers)?.find() });
    this.#open.set(name, sink);
    return sink;
  }

  /** Throws for a sink that its type does not take. */
  check({ sinks }: AlertsConfig): void {
    for (const [name, section] of Object.entries(sinks)) this.#parsed(name, section);
  }

  #parsed(name: string, { type, ...section }: AlertsConfig['sinks'][string]) {
    const found = this.#host.extensions(alertSinks).find((one) => one.name === type);
    if (found === undefined) throw new Error(`alerts.sinks.${name}: there is no type of sink "${type}"`);
    const parsed = (found.config as unknown as typeof configSchema).safeParse(section);
    if (parsed.success) return { type: found, settings: parsed.data as unknown };
    const [issue] = parsed.error.issues;
    throw new Error(`alerts.sinks.${name}.${issue!.path.join('.')}: ${issue!.message}`);
  }

  /** Closes changed sinks; a message that is being sent is finished or sent again. */
  replace(before: AlertsConfig, after: AlertsConfig): void {
    for (const [name, sink] of this.#open) {
      if (isDeepStrictEqual(before.sinks[name], after.sinks[name])) continue;
      this.#open.delete(name);
      void sink.close?.();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((sink) => sink.close?.()));
    this.#open.clear();
  }
}
