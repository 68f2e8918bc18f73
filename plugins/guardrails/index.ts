/** Guardrails: checks of what goes to a model and of what comes back, by policies, in every protocol. */

import { configFiles } from '../../core/contract/config-files.ts';
import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import type { SectionPart } from '../../core/contract/remarks.ts';
import { caller } from '../common/domain/accounts.ts';
import { adminPages } from '../common/domain/admin/admin-pages.ts';
import { alertEvents } from '../common/domain/admin/alerts.ts';
import { answerPolicies, call as callKey, keptForAnswer } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { servedBy } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';
import { plan } from '../common/domain/plans.ts';
import { timeline } from '../common/domain/timeline.ts';
import { providers } from '../common/domain/upstreams.ts';
import { checkVerdicts, type GuardrailCheckType, guarded, guardrailChecks } from '../common/guardrails/checks.ts';
import { sessionGuard } from '../common/guardrails/sessions.ts';
import { guardrailVerdicts } from '../common/guardrails/verdicts.ts';
import { callTransforms } from '../common/wire/call-transforms.ts';
import { prompts } from '../common/wire/prompt-rules.ts';
import { opened } from '../common/wire/protocols.ts';
import { replaceTexts } from '../common/wire/replace-texts.ts';
import { guardrailPage } from './admin.ts';
import { AnswerCheck } from './answer/answer-check.ts';
import { askingChecks } from './checks/asking.ts';
import { localChecks } from './checks/local.ts';
import { reportCommand, tryCommand } from './commands.ts';
import { config, type GuardrailsConfig, ownMembers } from './config.ts';
import { coverageNotices, ofAnswers } from './coverage.ts';
import { Guard } from './guard.ts';
import { KeptTurns } from './kept/kept-turns.ts';
import { unknownType } from './open-checks.ts';
import { unknownNames } from './policies.ts';
import { checkPrompt, maskKept } from './prompt-check.ts';
import { VerdictRows } from './rows.ts';
import { services } from './services/index.ts';

const writeMs = 1_000;
const cleanMs = 3_600_000;

export default definePlugin<GuardrailsConfig>({
  name: 'guardrails',
  config,
  extensionPoints: [guardrailChecks],
  extends: [guardrailChecks, prompts, callTransforms],
  mayExtend: [adminPages],
  services: {
    optional: [database, alertEvents, providers, configFiles],
    provides: [checkVerdicts, guardrailVerdicts, sessionGuard],
  },
  requires: [callKey],
  optional: [caller, plan, model, timeline],
  sets: [guarded, servedBy, answerPolicies, keptForAnswer],
  setup: setUp,
});

async function setUp(host: Host, section: GuardrailsConfig): Promise<PluginInstance<GuardrailsConfig>> {
  for (const type of [...localChecks, ...askingChecks, ...services]) host.extend(guardrailChecks, type);
  const store = host.find(database);
  await store?.migrate('guardrails', new URL('./migrations/', import.meta.url));
  const rows = store && new VerdictRows(store);
  const guard = new Guard(host, section, rows);
  host.provide(checkVerdicts, guard);
  host.provide(sessionGuard, guard);
  if (rows !== undefined) host.provide(guardrailVerdicts, rows);
  // Without a policy at the start, calls do not enter this plugin at all.
  if (guard.isOn) addRules(host, guard);
  const { tools } = guard;
  host.extend(adminPages, guardrailPage({ rows, clock: host.clock, tools, policies: () => guard.opened() }));
  const instance: PluginInstance<GuardrailsConfig> = {
    applies: (endpoint) => guard.isOn && endpoint.setsOnOpen?.includes(callKey) === true,
    handle: (exchange, next) => guard.handle(exchange, next),
    checks: {
      problems: () => problemsOf(guard.section, host.extensions(guardrailChecks)),
      notices: () => coverageNotices(guard.section, host.endpoints()),
    },
    commandLine: {
      commands: [
        tryCommand(() => guard.opened(), tools),
        ...(rows === undefined ? [] : [reportCommand(rows, host.clock)]),
      ],
    },
    reload: {
      members:
        section.apply.length > 0
          ? ['checks', 'policies', 'apply', 'stream', 'keep']
          : ['checks', 'policies', 'stream', 'keep'],
      prepare: (changed) => guard.prepare(changed),
    },
    lifecycle: {
      async start() {
        await rows?.open(host.random);
        await guard.opened();
        if (rows === undefined) return;
        host.every(writeMs, 'write the verdicts of guardrails', () => rows.flush());
        host.every(cleanMs, 'forget old verdicts of guardrails', () =>
          rows.removeOld(host.clock.now() - guard.section.keep),
        );
      },
      stop: () => rows?.flush(),
    },
  };
  return instance;
}

function problemsOf(section: GuardrailsConfig, types: readonly GuardrailCheckType[]) {
  const parts = Object.entries(section.checks).map(([name, settings]) => {
    const type = types.find((one) => one.name === settings.type);
    if (type === undefined) return { path: ['checks', name, 'type'], message: unknownType(settings.type, types) };
    return {
      path: ['checks', name],
      schema: type.config as unknown as SectionPart['schema'],
      value: ownMembers(settings),
    };
  });
  return [...unknownNames(section), ...parts];
}

/** The rule reads prompts; two transforms check the answer, and put back what was masked, nearest to the client. */
function addRules(host: Host, guard: Guard): void {
  host.extend(prompts, {
    name: 'guardrails',
    applies: (context) => guard.isOn && guard.callOf(context) !== undefined,
    prompt: (prompt, context) => {
      const call = guard.callOf(context)!;
      const checked = checkPrompt(call, prompt);
      return context.requestId === undefined ? checked.finally(() => guard.keepOfSession(call, context)) : checked;
    },
  });
  host.extend(callTransforms, {
    name: 'guardrails-restore',
    answer({ id }) {
      const call = guard.running.get(id);
      const restored = call?.placeholders.restored;
      if (restored === undefined || restored.size === 0) return undefined;
      const names = [...restored.keys()];
      const pattern = new RegExp(names.map((name) => name.replace(/[[\]]/g, String.raw`\$&`)).join('|'), 'g');
      const longest = Math.max(...names.map(({ length }) => length));
      const restoring = replaceTexts({ pattern, longest, by: (match) => restored.get(match) ?? match });
      return {
        event(event) {
          if (event.type === 'reply-start') call!.answerId = event.id;
          return restoring.event(event);
        },
        repeats: (text) => text.replace(pattern, (match) => restored.get(match) ?? match),
      };
    },
  });
  host.extend(callTransforms, {
    name: 'guardrails',
    applies: ({ id }) => guard.running.get(id)?.continues === true,
    async request(prompt, { id }) {
      const texts = new KeptTurns(prompt);
      await maskKept(guard.running.get(id)!, texts);
      return texts.written();
    },
    answer(exchange) {
      const call = guard.running.get(exchange.id);
      if (call === undefined || call.at(...ofAnswers).length === 0) return undefined;
      return new AnswerCheck(call, guard.releaseOf(exchange.find(opened)?.call.stream === true));
    },
  });
}
