/** Guardrails: checks of what goes to a model and of what comes back, by policies, in every protocol. */

import { configFiles } from '../../core/contract/config-files.ts';
import { definePlugin, type Exchange, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { SectionPart } from '../../core/contract/remarks.ts';
import { caller } from '../common/domain/accounts.ts';
import { adminPages } from '../common/domain/admin/admin-pages.ts';
import { alertEvents } from '../common/domain/admin/alerts.ts';
import { answerPolicies, call as callKey, vendorBatch } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { servedBy, serveWithoutAttempt } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';
import { plan } from '../common/domain/plans.ts';
import { defineEvent, recordEvent, timeline } from '../common/domain/timeline.ts';
import { providers } from '../common/domain/upstreams.ts';
import {
  type CheckVerdict,
  checkVerdicts,
  type GuardrailCheckType,
  guarded,
  guardrailChecks,
} from '../common/guardrails/checks.ts';
import { callTransforms } from '../common/wire/call-transforms.ts';
import { type PromptContext, prompts } from '../common/wire/prompt-rules.ts';
import { type Opened, opened } from '../common/wire/protocols.ts';
import { replaceTexts } from '../common/wire/replace-texts.ts';
import { guardrailPage } from './admin.ts';
import { AnswerCheck, type Release } from './answer/answer-check.ts';
import { checkTranscript, transcribing } from './answer/transcripts.ts';
import { askingChecks } from './checks/asking.ts';
import { localChecks } from './checks/local.ts';
import { reportCommand, tryCommand } from './commands.ts';
import { config, type GuardrailsConfig, ownMembers } from './config.ts';
import { coverageNotices, ofAnswers, textless } from './coverage.ts';
import { type CallTools, GuardedCall } from './guarded-call.ts';
import { KeptTurns } from './kept/kept-turns.ts';
import { continued, recalled } from './kept/recall.ts';
import { openChecks, unknownType } from './open-checks.ts';
import { type Applied, Policies, unknownNames } from './policies.ts';
import { checkPrompt, maskKept } from './prompt-check.ts';
import { answerInstead, notApplicable, Refusal } from './refusal.ts';
import { requestedSchema } from './request-schema.ts';
import { VerdictRows } from './rows.ts';
import { services } from './services/index.ts';
import { askingFor, checkTools, ownRequests } from './tools.ts';
import { verdictHeader } from './verdicts.ts';

const checkedEvent = defineEvent('guardrails.checked', (said: string) => `checked by guardrails: ${said}`);

const writeMs = 1_000;
const cleanMs = 3_600_000;

export default definePlugin<GuardrailsConfig>({
  name: 'guardrails',
  config,
  extensionPoints: [guardrailChecks],
  extends: [guardrailChecks, prompts, callTransforms],
  mayExtend: [adminPages],
  services: { optional: [database, alertEvents, providers, configFiles], provides: [checkVerdicts] },
  requires: [callKey],
  optional: [caller, plan, model, timeline],
  sets: [guarded, servedBy, answerPolicies],
  setup: setUp,
});

async function setUp(host: Host, section: GuardrailsConfig): Promise<PluginInstance<GuardrailsConfig>> {
  for (const type of [...localChecks, ...askingChecks, ...services]) host.extend(guardrailChecks, type);
  const store = host.find(database);
  await store?.migrate('guardrails', new URL('./migrations/', import.meta.url));
  const rows = store && new VerdictRows(store);
  const guard = new Guard(host, section, rows);
  host.provide(checkVerdicts, guard);
  addRules(host, guard);
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
      // Without a policy at the start, calls do not enter this plugin at all.
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
    prompt: (prompt, context) => checkPrompt(guard.callOf(context)!, prompt),
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

/** The running section, and the calls under checks. */
class Guard {
  readonly #host: Host;
  readonly #rows: VerdictRows | undefined;
  readonly #listeners: ((verdict: CheckVerdict) => void)[] = [];
  readonly tools: CallTools;
  /** By the request's id. */
  readonly running = new Map<string, GuardedCall>();
  section: GuardrailsConfig;
  #policies: Promise<Policies> | undefined;
  #ready: Policies | undefined;

  constructor(host: Host, section: GuardrailsConfig, rows: VerdictRows | undefined) {
    this.#host = host;
    this.#rows = rows;
    this.section = section;
    this.tools = {
      clock: host.clock,
      log: host.log,
      broken: (check) => host.find(alertEvents)?.report('guardrail_broken', check),
      digest: (text) => rows?.digest(text) ?? '',
      said: (verdict) => {
        for (const listener of this.#listeners) listener(verdict);
      },
    };
  }

  watch(listener: (verdict: CheckVerdict) => void): void {
    this.#listeners.push(listener);
  }

  get isOn(): boolean {
    return this.section.apply.length > 0;
  }

  /** Opens the checks once. */
  opened(): Promise<Policies> {
    this.#policies ??= this.#open(this.section).then((policies) => {
      this.#ready = policies;
      return policies;
    });
    return this.#policies;
  }

  async #open(section: GuardrailsConfig): Promise<Policies> {
    const open = await openChecks(section, this.#host.extensions(guardrailChecks), checkTools(this.#host));
    return new Policies(section, open);
  }

  async prepare(section: GuardrailsConfig): Promise<() => void> {
    const [unknown] = unknownNames(section);
    if (unknown !== undefined) throw new Error(`${unknown.path.join('.')} ${unknown.message}`);
    const policies = await this.#open(section);
    return () => {
      this.section = section;
      this.#ready = policies;
      this.#policies = Promise.resolve(policies);
    };
  }

  /** The call of a request that has policies, or one for a message of a session. */
  callOf({ requestId, operation, find }: PromptContext): GuardedCall | undefined {
    if (requestId !== undefined) return this.running.get(requestId);
    const applied = this.#ready?.of({ caller: find(caller), models: [] });
    return applied && new GuardedCall(applied.checks, { operation }, this.tools);
  }

  releaseOf(isStreamed: boolean): Release {
    const { stream } = this.section;
    const usual = { release: 400, overlap: 64 };
    if (!isStreamed || stream === 'whole') return { mode: 'whole', ...usual };
    return stream === 'end' ? { mode: 'end', ...usual } : { mode: 'pieces', ...stream };
  }

  handle(exchange: Exchange, next: () => Promise<Answer>): Promise<Answer> {
    if (ownRequests.has(exchange.id) || exchange.find(vendorBatch) === 'estimate') return next();
    const request = exchange.get(callKey);
    const entry = exchange.find(model);
    const models = entry === undefined || entry.id === request.model ? [request.model] : [request.model, entry.id];
    const applied = this.#ready?.of({ caller: exchange.find(caller), models });
    return applied === undefined ? next() : this.#guarded(exchange, applied, next);
  }

  async #guarded(exchange: Exchange, applied: Applied, next: () => Promise<Answer>): Promise<Answer> {
    const { operation } = exchange.endpoint;
    const request = exchange.find(opened);
    const call = new GuardedCall(
      applied.checks,
      {
        operation,
        schema: request && requestedSchema(request.json),
        ask: askingFor(this.#host, exchange),
        continuesAt: this.#firstNumber(request),
      },
      { ...this.tools, log: exchange.log },
    );
    const ofAnswer = call.at(...ofAnswers).length > 0;
    const isTranscript = transcribing.has(operation) && !exchange.get(callKey).stream;
    const isCovered = request !== undefined || isTranscript || textless.has(operation) || !ofAnswer;
    if (!isCovered && !applied.allowsUncovered) throw notApplicable(operation);
    this.#follow(exchange, call);
    if (request !== undefined && this.#rows !== undefined)
      await recalled(exchange, call, request, this.#rows, this.#host);
    try {
      const answer = await this.#answered(exchange, call, next);
      return isTranscript && ofAnswer
        ? withHeader(call, await checkTranscript(call, answer))
        : withHeader(call, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.#instead(exchange, error);
    }
  }

  #instead(exchange: Exchange, error: Refusal): Answer {
    const now = Math.floor(this.#host.clock.now() / 1_000);
    const instead = error.stage === 'answer' ? undefined : answerInstead(exchange, error, now);
    if (instead === undefined) throw error;
    return instead;
  }

  /** A conversation that goes on by an id has another one than its earlier calls. */
  #firstNumber(request: Opened | undefined): number | undefined {
    if (request === undefined || (continued(request) === undefined && (request.keptItems ?? 0) === 0)) return undefined;
    return 1_000 + (Math.floor(this.#host.clock.now() / 1_000) % 90_000) * 10;
  }

  /** Until the exchange has ended; then what was said is stored. */
  #follow(exchange: Exchange, call: GuardedCall): void {
    const { id } = exchange;
    this.running.set(id, call);
    exchange.set(guarded, true);
    exchange.set(answerPolicies, { digest: () => call.policiesDigest });
    const accountId = exchange.find(caller)?.accountId ?? '';
    recordEvent(exchange, this.#host.clock.now(), checkedEvent, () => {
      const { header } = call.verdicts;
      return header === undefined ? undefined : [header];
    });
    exchange.defer(() => {
      this.running.delete(id);
      this.#rows?.add(accountId, id, exchange.receivedAt, call.verdicts.all);
    });
  }

  /** The answer waits for the verdicts of checks that run beside the call. */
  async #answered(exchange: Exchange, call: GuardedCall, next: () => Promise<Answer>): Promise<Answer> {
    let answer: Answer;
    try {
      answer = await next();
    } catch (error) {
      await Promise.all(call.beside);
      throw error;
    }
    try {
      await Promise.all(call.beside);
    } catch (error) {
      await leave(answer);
      const isFree = !(error instanceof Refusal) || error.check.settings.charge === 'nothing';
      if (isFree) serveWithoutAttempt(exchange, { name: 'guardrails', usage: {}, price: 'free' });
      throw error;
    }
    return answer;
  }
}

function withHeader(call: GuardedCall, answer: Answer): Answer {
  const shown = call.verdicts.header;
  if (shown !== undefined) answer.headers[verdictHeader] = shown;
  return answer;
}

async function leave({ body }: Answer): Promise<void> {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) await body[Symbol.asyncIterator]().return?.();
}
