/** The guard: finds the checks of a call, follows it to its end, and keeps what they have said. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { alertEvents } from '../common/domain/admin/alerts.ts';
import { answerPolicies, call as callKey, vendorBatch } from '../common/domain/calls.ts';
import { serveWithoutAttempt } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import { type CheckVerdict, guarded, guardrailChecks } from '../common/guardrails/checks.ts';
import { guardedSessions, type SessionChecks, type SessionGuard } from '../common/guardrails/sessions.ts';
import type { OpenSession, PromptContext } from '../common/wire/prompt-rules.ts';
import { type Opened, opened } from '../common/wire/protocols.ts';
import type { Release } from './answer/answer-check.ts';
import { sessionChecks } from './answer/session-checks.ts';
import { checkTranscript, transcribing } from './answer/transcripts.ts';
import type { GuardrailsConfig } from './config.ts';
import { ofAnswers, textless } from './coverage.ts';
import { type CallFacts, type CallTools, GuardedCall } from './guarded-call.ts';
import { continued, followLine, recalled } from './kept/recall.ts';
import { openChecks } from './open-checks.ts';
import { Placeholders } from './placeholders.ts';
import { type Applied, Policies, unknownNames } from './policies.ts';
import { answerInstead, notApplicable, Refusal } from './refusal.ts';
import { requestedSchema } from './request-schema.ts';
import type { VerdictRows } from './rows.ts';
import { askingFor, checkTools, ownRequests } from './tools.ts';
import { verdictHeader } from './verdicts.ts';

const checkedEvent = defineEvent('guardrails.checked', (said: string) => `checked by guardrails: ${said}`);
const free = { name: 'guardrails', usage: {}, price: 'free' } as const;

/** What stands for texts of a session, and the names of its model. */
interface KnownSession {
  readonly placeholders: Placeholders;
  models: readonly string[];
}

/** The running section, and the calls under checks. */
export class Guard {
  readonly #host: Host;
  readonly #rows: VerdictRows | undefined;
  readonly #listeners: ((verdict: CheckVerdict) => void)[] = [];
  readonly tools: CallTools;
  /** By the request's id. */
  readonly running = new Map<string, GuardedCall>();
  /** Sessions that are open. */
  readonly #sessions = new WeakMap<OpenSession, KnownSession>();
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
  callOf({ requestId, operation, session, find }: PromptContext): GuardedCall | undefined {
    if (requestId !== undefined) return this.running.get(requestId);
    const known = find(caller);
    // Before its first message has named the model, each entry about models matches.
    const models = (session && this.#sessions.get(session)?.models) ?? [];
    const applied = this.#ready?.of({ caller: known, models });
    return applied && new GuardedCall(applied.checks, this.#sessionFacts(operation, session, known), this.tools);
  }

  /** A message of a session, or an answer in it. */
  #sessionFacts(operation: string, session: OpenSession | undefined, known: Caller | undefined): CallFacts {
    if (session === undefined) return { operation, hasNoAnswer: true };
    const { placeholders } = this.#sessionOf(session);
    return { operation, hasNoAnswer: true, placeholders, ask: askingFor(this.#host, known, session.remoteAddress) };
  }

  #sessionOf(session: OpenSession): KnownSession {
    const known = this.#sessions.get(session) ?? { placeholders: new Placeholders(1, true), models: [] };
    this.#sessions.set(session, known);
    return known;
  }

  /** The checks of a session's answers; undefined: none applies. */
  of({ session, caller: known, operation, model: name }: Parameters<SessionGuard['of']>[0]): SessionChecks | undefined {
    const open = this.#sessionOf(session);
    open.models = [name];
    const applied = this.#ready?.of({ caller: known, models: [name] });
    if (applied === undefined) return undefined;
    const release = this.releaseOf(true);
    return sessionChecks(applied, release, open.placeholders.restored, (checks) => {
      const call = new GuardedCall(checks, this.#sessionFacts(operation, session, known), this.tools);
      return { call, done: () => this.#keep(call, known) };
    });
  }

  /** What checks have found in a message of a session, which is no request with a row of its own. */
  keepOfSession(call: GuardedCall, { find }: PromptContext): void {
    this.#keep(call, find(caller));
  }

  #keep(call: GuardedCall, known: Caller | undefined): void {
    const found = call.verdicts.all.filter(({ said }) => said !== 'passed');
    if (found.length === 0) return;
    const id = `session-${this.#host.random.bytes(12).toString('hex')}`;
    this.#rows?.add(known?.accountId ?? '', id, this.#host.clock.now(), found);
  }

  releaseOf(isStreamed: boolean): Release {
    const { stream } = this.section;
    const usual = { release: 400, overlap: 64 };
    if (!isStreamed || stream === 'whole') return { mode: 'whole', ...usual };
    return stream === 'end' ? { mode: 'end', ...usual } : { mode: 'pieces', ...stream };
  }

  handle(exchange: Exchange, next: () => Promise<Answer>): Promise<Answer> {
    const payer = ownRequests.get(exchange.id);
    if (payer === 'operator') return this.#freely(exchange, next);
    if (payer !== undefined || exchange.find(vendorBatch) === 'estimate') return next();
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
        ask: askingFor(this.#host, exchange.find(caller), exchange.request.remoteAddress),
        continuesAt: this.#firstNumber(request),
        hasNoAnswer: exchange.find(vendorBatch) === 'order',
      },
      { ...this.tools, log: exchange.log },
    );
    const ofAnswer = call.at(...ofAnswers).length > 0;
    const isTranscript = transcribing.has(operation) && !exchange.get(callKey).stream;
    const isRead = request !== undefined || isTranscript || guardedSessions.has(operation);
    const isCovered = isRead || textless.has(operation) || !ofAnswer;
    if (!isCovered && !applied.allowsUncovered) throw notApplicable(operation);
    this.#follow(exchange, call);
    if (request !== undefined && this.#rows !== undefined) {
      followLine(exchange, call, this.#rows, this.#host.random);
      await recalled(exchange, call, request, this.#rows, this.#host);
    }
    try {
      const answer = await this.#answered(exchange, call, applied, next);
      return isTranscript && ofAnswer
        ? withHeader(call, await checkTranscript(call, answer))
        : withHeader(call, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.#instead(exchange, error);
    }
  }

  /** A request of a check, of which the operator bears the cost. */
  async #freely(exchange: Exchange, next: () => Promise<Answer>): Promise<Answer> {
    const answer = await next();
    serveWithoutAttempt(exchange, free);
    return answer;
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

  /** The answer waits for the verdicts of checks that run beside the call, and so does the error of one that has failed. */
  async #answered(
    exchange: Exchange,
    call: GuardedCall,
    { charging }: Applied,
    next: () => Promise<Answer>,
  ): Promise<Answer> {
    const [made] = await Promise.allSettled([next()]);
    try {
      await Promise.all(call.beside);
    } catch (error) {
      if (made.status === 'fulfilled') await leave(made.value);
      const isFree = !(error instanceof Refusal) || !charging.has(error.check.name);
      if (isFree) serveWithoutAttempt(exchange, free);
      throw error;
    }
    if (made.status === 'rejected') throw made.reason;
    return made.value;
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
