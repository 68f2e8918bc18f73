/** Alerts for the console: list, acknowledge, rules as they run, mute, try a rule or a sink. */
import type { Host } from '../../core/contract/contract.ts';
import {
  type AlertAdmin,
  type AlertKind,
  type AlertRuleView,
  type AlertTrial,
  alertKinds,
} from '../common/domain/admin/alerts.ts';
import { testMessage } from './commands.ts';
import { type AlertsConfig, type Rule, rulesOf } from './config.ts';
import { type Deliveries, mostAttempts } from './deliveries.ts';
import type { Engine } from './engine.ts';
import { shownValue } from './message.ts';
import type { AlertRows } from './rows.ts';
import { verdictOf } from './state.ts';

const mostTrials = 50;

interface AdminParts {
  readonly host: Host;
  readonly rows: AlertRows;
  readonly deliveries: Deliveries;
  readonly engine: Engine;
  readonly config: () => AlertsConfig;
}

export function openAlertAdmin({ host, rows, deliveries, engine, config }: AdminParts): AlertAdmin {
  const { clock } = host;
  const kinds = () => host.extensions(alertKinds);
  const ruleOf = (name: string) => rulesOf(config(), kinds()).find((rule) => rule.name === name);
  return {
    list: (filter, page) => rows.list(filter, page),
    acknowledge: (id, by, reason) => rows.acknowledge(id, by, reason, clock.now()),
    async sinks() {
      const last = await rows.lastOfSinks(mostAttempts);
      return Object.entries(config().sinks).map(([name, { type }]) => ({
        name,
        type,
        ...(last.get(name) ?? { last: undefined, waiting: 0 }),
      }));
    },
    async testSink(name) {
      if (!Object.hasOwn(config().sinks, name)) return undefined;
      const fault = await deliveries.send(name, testMessage(host));
      await rows.recordTest(name, fault, clock.now());
      return { fault };
    },
    async rules() {
      const mutes = await rows.mutes(clock.now());
      const rules = rulesOf(config(), kinds());
      const views = rules.map((rule): AlertRuleView => ({ ...viewOf(rule), isOn: true, muted: mutes.get(rule.name) }));
      const off = kinds().filter(({ name }) => config().rules[name] === 'off');
      return [...views, ...off.map((kind) => ({ ...offView(kind), isOn: false, muted: undefined }))];
    },
    async tryRule(name) {
      const rule = ruleOf(name);
      if (rule === undefined) return undefined;
      const measured = await engine.measure(rule, clock.now());
      return measured.slice(0, mostTrials).map(
        ({ subject, value }): AlertTrial => ({
          subject,
          value: shownValue(value),
          verdict: verdictOf(rule.kind.bad, rule, value),
        }),
      );
    },
    async mute(name, until, by, reason) {
      if (ruleOf(name) === undefined) return false;
      await rows.mute(name, until, by, reason);
      return true;
    },
    unmute: (name) => rows.unmute(name),
  };
}

const viewOf = ({ name, kind, threshold, clear, forMs, windowMs, sinks }: Rule) => ({
  ...{ name, kind: kind.name, title: kind.title, unit: kind.unit, bad: kind.bad, forMs, windowMs, sinks },
  threshold: shownValue(threshold),
  clear: shownValue(clear),
});

const offView = ({ name, title, unit, bad, defaults }: AlertKind) => ({
  ...{ name, kind: name, title, unit, bad, forMs: defaults.forMs, windowMs: defaults.windowMs, sinks: [] },
  threshold: shownValue(defaults.threshold),
  clear: shownValue(defaults.clear),
});
