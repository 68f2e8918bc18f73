/** A call's hold while its answer runs, and its end with the exchange. */
import type { Exchange, Outcome } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import {
  type Attempt,
  attempts,
  call,
  type SpendGuard,
  type UsageReport,
  usageReport,
} from '../../common/domain/calls.ts';
import { servedBy } from '../../common/domain/ledger.ts';
import type { Model } from '../../common/domain/models.ts';
import { type Money, money, type Ratio, zero } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { unknownSize } from '../../common/wire/possible-usage.ts';
import { boundOf, chargeFor } from './charge.ts';
import { type Hold, sentAttempts, serveBy } from './hold.ts';
import { attemptNotes, judge, type Likely, type Verdict } from './outcome.ts';
import type { Reservations } from './reservations.ts';
import { termsOfAttempt } from './terms.ts';
import { possibleLoss, share } from './written-off.ts';

/** `likely`: the estimate for unreported usage. */
export function judged(exchange: Exchange, hold: Hold, outcome: Outcome['kind'], likely?: Likely): Verdict {
  const list = exchange.find(attempts) ?? [];
  // A model of which no target could be asked has served nothing.
  if (hold.terms.before !== undefined) hold.terms = termsOfAttempt(hold.terms, list.at(-1)?.number ?? 0);
  const { seenOutput, unpaid, terms } = hold;
  return judge({
    attempts: list,
    sent: sentAttempts(hold),
    report: exchange.find(usageReport),
    outcome,
    served: exchange.find(servedBy),
    seenOutput,
    unpaid,
    requested: exchange.get(call),
    size: terms.entry ?? unknownSize,
    likely,
  });
}

export function settle(exchange: Exchange, reservations: Reservations, hold: Hold, verdict: Verdict): void {
  const list = exchange.find(attempts) ?? [];
  if (verdict.kind === 'VOID' || verdict.served !== undefined) noteConsumed(list.at(-1), exchange.find(usageReport));
  reservations.settle(hold, verdict, share(attemptNotes(list, hold.sent), list, verdict, hold.terms));
}

/** The client got something else in the place of an answer, so the operator bears what came of that. */
function noteConsumed(last: Attempt | undefined, report: UsageReport | undefined): void {
  if (last?.result !== 'answered' || last.consumed !== undefined || report === undefined) return;
  last.consumed = { usage: report.usage, estimated: report.estimated };
}

/** Compares a running answer with the hold. */
export class HoldGuard implements SpendGuard {
  readonly #reservations: Reservations;
  readonly #hold: Hold;

  constructor(reservations: Reservations, hold: Hold) {
    this.#reservations = reservations;
    this.#hold = hold;
  }

  observe(outputTokens: number): boolean {
    return this.#reservations.observe(this.#hold, outputTokens);
  }

  usedUp(): GatewayError | undefined {
    const { terms, seenOutput, held } = this.#hold;
    const lacking = money(boundOf(terms, seenOutput) - held);
    return terms.cap?.covers(lacking) === false ? terms.cap.refusal(lacking) : undefined;
  }

  writeOff(attempt: Attempt, share: number): boolean {
    const { terms } = this.#hold;
    return this.#reservations.absorb.take(possibleLoss(attempt, terms), share, terms.accountId);
  }

  serve(entry: Model, attempts: number): boolean {
    return serveBy(this.#hold, entry, attempts);
  }

  saving(usage: Usage, share: Ratio): Money {
    return money(chargeFor(this.#hold.terms, usage, {}, []).cost - this.#shareOf(usage, share));
  }

  cover(usage: Usage, share: Ratio): undefined | Promise<void> {
    return this.#reservations.cover(this.#hold, this.#shareOf(usage, share));
  }

  #shareOf(usage: Usage, share: Ratio): Money {
    if (share.numerator === 0n) return zero;
    return chargeFor(this.#hold.terms, usage, { served: { name: '', usage, price: { ratio: share } } }, []).cost;
  }

  charged(): ReturnType<NonNullable<SpendGuard['charged']>> {
    const { spent, own, usage = {} } = this.#hold;
    return spent === undefined ? undefined : { cost: spent, usage, own };
  }
}
