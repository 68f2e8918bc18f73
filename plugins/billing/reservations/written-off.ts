/**
 * Assigns the cost of each attempt: one at most to the client, all others that may have cost something to the
 * operator. Pure.
 */

import type { Attempt } from '../../common/domain/calls.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import { possibleUsage, type RequestedUsage, unknownSize } from '../../common/wire/possible-usage.ts';
import type { AttemptNote } from '../model/records.ts';
import { officialBound, officialCost, ownBound } from './charge.ts';
import { believable, type Settlement, type Verdict } from './outcome.ts';
import { type Terms, termsOfAttempt } from './terms.ts';

export interface Shares {
  readonly notes: readonly AttemptNote[];
  /** The operator's share: what the attempts' targets cost the operator, else the model's official price without ratios. */
  readonly writtenOff: Money;
}

/** The most that one attempt can cost; it keeps the sum of a request far from the limits of a `bigint`. */
const absurdCost = money(100_000_000_000_000_000n);

/**
 * The client bears the last attempt when it is charged, unless the answer was given without one. Of the others those count that may have run: by the usage
 * seen, otherwise by the estimated prompt. Refused ones without a usage cost nothing.
 */
export function share(
  sent: readonly AttemptNote[],
  attempts: readonly Attempt[],
  verdict: Verdict,
  terms: LossTerms & Pick<Terms, 'before'>,
): Shares {
  const charged = verdict.kind === 'SETTLE' && verdict.served === undefined ? sent.at(-1) : undefined;
  // The normal case: one attempt, charged to the client.
  if (charged !== undefined && sent.length === 1) {
    const { impossible } = verdict as Settlement;
    const note = impossible === undefined ? ({ ...charged, bearer: 'client' } as const) : paidBy(charged, verdict);
    return { notes: [note], writtenOff: zero };
  }
  let writtenOff = 0n;
  const notes = sent.map((note): AttemptNote => {
    if (note === charged) return paidBy(note, verdict);
    const own = termsOfAttempt(terms, note.number);
    const consumed = consumedBy(note, consumedIn(attempts, note.number), own);
    if (consumed === undefined) return note;
    const amount = lossOf(note, consumed, own);
    writtenOff += amount;
    return { ...note, bearer: 'operator', absorbed: amount.toString(), ...consumed };
  });
  return { notes, writtenOff: money(writtenOff) };
}

/** Keeps what the vendor reported where that was not charged. */
function paidBy(note: AttemptNote, verdict: Verdict): AttemptNote {
  const usage = verdict.kind === 'SETTLE' ? verdict.impossible : undefined;
  return usage === undefined ? { ...note, bearer: 'client' } : { ...note, bearer: 'client', usage };
}

type LossTerms = Pick<Terms, 'inputTokens' | 'allowance' | 'prices' | 'at' | 'context' | 'entry'>;
type Consumed = NonNullable<Attempt['consumed']>;

function consumedIn(attempts: readonly Attempt[], number: number): Consumed | undefined {
  return attempts.find((attempt) => attempt.number === number)?.consumed;
}

/** The possible cost of an attempt that no client pays; zero if it cannot have run. */
export function possibleLoss(attempt: Attempt, terms: LossTerms): Money {
  const consumed = consumedBy(attempt, attempt.consumed, terms);
  return consumed === undefined ? zero : lossOf(attempt, consumed, terms);
}

/** A kind that the vendor chose may be the most expensive one. */
function lossOf(
  attempt: Pick<AttemptNote, 'provider' | 'model'>,
  { usage, estimated }: Consumed,
  terms: LossTerms,
): Money {
  const exact =
    ownBound(terms, usage, attempt, estimated) ??
    (estimated ? officialBound(terms, usage) : officialCost(terms, usage));
  return exact < absurdCost ? exact : absurdCost;
}

function consumedBy(
  { result }: Pick<AttemptNote, 'result'> | Pick<Attempt, 'result'>,
  seen: Consumed | undefined,
  { inputTokens, allowance, entry }: Pick<Terms, 'inputTokens' | 'allowance' | 'entry'>,
): Consumed | undefined {
  if (seen !== undefined) {
    const believed = believable(seen.usage, inputTokens, 0, allowance.others);
    const usage = possibleUsage(believed, requestedUsage(inputTokens, allowance), entry ?? unknownSize, nothingSeen);
    return { usage, estimated: seen.estimated || usage !== seen.usage };
  }
  if (result !== 'unknown' && result !== 'answered') return undefined;
  return { usage: { input: inputTokens, ...allowance.others }, estimated: true };
}

const nothingSeen = { bytes: 0, tokens: 0 };

/** The client's own bound of the answer is not kept with the terms. */
function requestedUsage(
  inputTokens: number,
  { tools, images, seconds, others: counted }: Terms['allowance'],
): RequestedUsage {
  const requested = { inputTokens, maxOutputTokens: undefined, choices: 1, toolCalls: tools, images, seconds };
  return counted === undefined ? requested : { ...requested, counted };
}
