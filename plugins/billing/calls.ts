/** The money of a call: held before it is sent, within its scopes, and settled at its end. */
import type { Exchange, Host, Next, Outcome } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { callRow } from '../common/domain/call-facts.ts';
import { attempts, call, spendGuard } from '../common/domain/calls.ts';
import { heldEstimate } from '../common/domain/ledger.ts';
import { type Instead, instead, model, modelSwitch } from '../common/domain/models.ts';
import type { ScopeServices } from './budgets/own.ts';
import { PassedBudget, type Scope } from './budgets/scope.ts';
import { type Estimates, readOnIfCheap } from './estimates/unreported.ts';
import { type HoldRules, otherTerms, termsOf } from './reservations/call-terms.ts';
import { boundOf } from './reservations/charge.ts';
import type { Hold } from './reservations/hold.ts';
import { reportImpossible } from './reservations/impossible.ts';
import type { Verdict } from './reservations/outcome.ts';
import type { Reservations } from './reservations/reservations.ts';
import { HoldGuard, judged, settle } from './reservations/settle.ts';
import type { Terms } from './reservations/terms.ts';
import { holdWithin } from './reservations/within.ts';
import { recordEnd, recordHeld, recordSwitch } from './timeline.ts';

export async function estimateHold(exchange: Exchange, rules: HoldRules, at: number): Promise<Answer> {
  const terms = termsOf(exchange, rules, at);
  exchange.set(heldEstimate, boundOf(terms, terms.outputTokens));
  return { status: 204, headers: {}, body: '' };
}

/** The services that handle a call's money. */
export interface CallServices extends ScopeServices {
  readonly reservations: Reservations;
  readonly rules: HoldRules;
  readonly host: Host;
  readonly estimates: Estimates;
}

/** Holds the money, ensures that the hold ends with the exchange, and goes on. The account is normally in memory, and no wait is needed. */
export function callWithHold(exchange: Exchange, services: CallServices, next: Next): Promise<Answer> {
  const { reservations, book, rules, host } = services;
  const at = host.clock.now();
  const { cap, budget } = exchange.get(caller);
  const isUnlimited = cap === undefined && book.isEmpty && budget === undefined;
  const taken =
    isUnlimited && exchange.find(instead) === undefined
      ? reservations.create(termsOf(exchange, rules, at))
      : holdOrSwitch(exchange, services, at, isUnlimited);
  const proceed = () => (switched.has(exchange) ? namingModel(exchange, next()) : next());
  if (taken instanceof Promise)
    return taken.then((hold) => {
      settleAtEnd(exchange, services, hold);
      return proceed();
    });
  settleAtEnd(exchange, services, taken);
  // A plain call enters no further function.
  return switched.has(exchange) ? proceed() : next();
}

/** Calls that another model took since a budget was passed: their answers name it. */
const switched = new WeakSet<Exchange>();
const mostSwitches = 3;
const none: readonly Scope[] = [];

/** Where a budget is passed that names a model for such calls, that one takes the call if it can. */
function holdOrSwitch(exchange: Exchange, services: CallServices, at: number, isUnlimited: boolean) {
  const hold = (switchesLeft: number): Hold | Promise<Hold> => {
    const again = (error: unknown): Hold | Promise<Hold> => {
      const requested = exchange.get(model).id;
      const isOther = switchesLeft > 0 && error instanceof PassedBudget;
      if (!isOther || services.host.find(modelSwitch)?.serve(exchange, error.instead) !== true) throw error;
      switched.add(exchange);
      recordSwitch(exchange, at, requested, error.instead);
      return hold(switchesLeft - 1);
    };
    try {
      const taken = takeOnce(exchange, services, at, isUnlimited);
      return taken instanceof Promise ? taken.catch(again) : taken;
    } catch (error) {
      return again(error);
    }
  };
  return hold(mostSwitches);
}

function takeOnce(exchange: Exchange, services: CallServices, at: number, isUnlimited: boolean): Hold | Promise<Hold> {
  const { reservations, tallies, book, own, rules } = services;
  const identity = exchange.get(caller);
  const within = (requested: Terms) => holdWithin(tallies, book.scopesOf(identity, requested), requested, reservations);
  const take = (requested: Terms) => {
    if (isUnlimited) return reservations.create(requested);
    const reading = own.ready(identity.accountId);
    return reading === undefined ? within(requested) : reading.then(() => within(requested));
  };
  const terms = termsOf(exchange, rules, at);
  const substitutes = exchange.find(instead);
  if (substitutes === undefined) return take(terms);
  return takeForAll(take, { ...terms, others: otherTerms(exchange, rules, at) }, substitutes);
}

async function namingModel(exchange: Exchange, answering: Promise<Answer>): Promise<Answer> {
  const answer = await answering;
  answer.headers['x-gateway-model'] = exchange.get(model).id;
  return answer;
}

/** An account that cannot pay for the dearest of the models is served by its own alone. */
async function takeForAll(take: (terms: Terms) => Hold | Promise<Hold>, terms: Terms, others: Instead): Promise<Hold> {
  try {
    return await take(terms);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'insufficient_balance') throw error;
    others.withdraw();
    return take({ ...terms, others: [] });
  }
}

function settleAtEnd(exchange: Exchange, services: CallServices, hold: Hold): void {
  const { reservations, tallies, book, host, estimates } = services;
  const { revision } = book;
  const finish = (verdict: Verdict) => {
    settle(exchange, reservations, hold, verdict);
    const at = host.clock.now();
    estimates.ended(exchange, hold.terms, verdict, at);
    if (hold.spent !== undefined) {
      // It may lie in a budget that was set since it began.
      const scopes =
        revision === book.revision ? none : book.scopesOf(exchange.get(caller), { model: hold.terms.model });
      tallies.charged(hold.terms, hold.spent, at, scopes);
    }
    recordEnd(exchange, at, hold, verdict);
    if (verdict.kind === 'SETTLE' && verdict.impossible !== undefined)
      reportImpossible(host, exchange.find(attempts)?.at(-1));
  };
  let counting: Promise<void> | undefined;
  /** A promise only where the prompt has to be counted. */
  const end = (outcome: Outcome['kind']): undefined | Promise<void> => {
    const verdict = judged(exchange, hold, outcome);
    const isEstimate = verdict.kind === 'SETTLE' && verdict.estimated;
    const likely = isEstimate ? estimates.of(exchange, hold.terms, host.clock.now()) : undefined;
    if (likely instanceof Promise) return likely.then((known) => finish(judged(exchange, hold, outcome, known)));
    finish(likely === undefined ? verdict : judged(exchange, hold, outcome, likely));
    return undefined;
  };
  // A crash after the client has the whole answer must not lose its charge, so the charge is in the journal first.
  exchange.beforeEnd((outcome) => {
    // A hedge's other attempt may still run and counts too; it is awaited after the client has its answer.
    if (exchange.find(attempts)?.some(({ hedge }) => hedge === true) === true) return undefined;
    counting = end(outcome);
    // The count is for an estimate: the client does not wait for it.
    return counting === undefined ? reservations.written() : undefined;
  });
  exchange.defer((outcome) => (hold.ended ? undefined : (counting ?? end(outcome.kind))));
  exchange.beforeFirstByte((sending) => {
    estimates.sending(sending, hold.terms);
    if (sending.get(call).maxOutputTokens !== undefined) readOnIfCheap(sending, hold.terms);
    return reservations.sent(hold, sending.find(attempts)?.at(-1));
  });
  exchange.set(spendGuard, new HoldGuard(reservations, hold));
  exchange.set(callRow, { complete: (row, story) => hold.ended && reservations.complete(hold.terms, row, story) });
  recordHeld(exchange, hold);
}
