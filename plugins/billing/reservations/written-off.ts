/**
 * Assigns the cost of each attempt: one at most to the client, all others that may have cost something to the
 * operator. Pure.
 */

import type { Attempt } from '../../common/domain/calls.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { type AskedUsage, possibleUsage, unknownSize } from '../../common/wire/possible-usage.ts';
import type { AttemptNote } from '../journal/records.ts';
import { officialBound, officialCost } from './charge.ts';
import { believable, type Verdict } from './outcome.ts';
import type { Terms } from './terms.ts';

export interface Shares {
  readonly notes: readonly AttemptNote[];
  /** The operator's share, at the model's official price without ratios. */
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
  terms: Pick<Terms, 'inputTokens' | 'allowance' | 'prices' | 'at' | 'context' | 'entry'>,
): Shares {
  const charged = verdict.kind === 'SETTLE' && verdict.served === undefined ? sent.at(-1) : undefined;
  // The normal case: one attempt, charged to the client.
  if (charged !== undefined && sent.length === 1) {
    return { notes: [paidBy(charged, verdict)], writtenOff: zero };
  }
  let writtenOff = 0n;
  const notes = sent.map((note): AttemptNote => {
    if (note === charged) return paidBy(note, verdict);
    const consumed = consumedBy(note, attempts, terms);
    if (consumed === undefined) return note;
    // A kind that the vendor chose may be the most expensive one.
    const exact = (consumed.estimated ? officialBound : officialCost)(terms, consumed.usage);
    const amount = exact < absurdCost ? exact : absurdCost;
    writtenOff += amount;
    return { ...note, bearer: 'operator', absorbed: amount.toString(), ...consumed };
  });
  return { notes, writtenOff: money(writtenOff) };
}

/** Keeps what the vendor reported where that was not charged. */
function paidBy(note: AttemptNote, verdict: Verdict): AttemptNote {
  const usage = verdict.kind === 'SETTLE' ? verdict.impossible : undefined;
  return { ...note, bearer: 'client', ...(usage === undefined ? {} : { usage }) };
}

function consumedBy(
  { number, result }: AttemptNote,
  attempts: readonly Attempt[],
  { inputTokens, allowance, entry }: Pick<Terms, 'inputTokens' | 'allowance' | 'entry'>,
): { usage: Usage; estimated: boolean } | undefined {
  const seen = attempts.find((attempt) => attempt.number === number)?.consumed;
  if (seen !== undefined) {
    const believed = believable(seen.usage, inputTokens, 0, allowance.others);
    const usage = possibleUsage(believed, askedIn(inputTokens, allowance), entry ?? unknownSize, nothingSeen);
    return { usage, estimated: seen.estimated || usage !== seen.usage };
  }
  if (result !== 'unknown' && result !== 'answered') return undefined;
  return { usage: { input: inputTokens, ...allowance.others }, estimated: true };
}

const nothingSeen = { bytes: 0, tokens: 0 };

/** The client's own bound of the answer is not kept with the terms. */
function askedIn(inputTokens: number, { tools, images, seconds, others: counted }: Terms['allowance']): AskedUsage {
  const asked = { inputTokens, maxOutputTokens: undefined, choices: 1, toolCalls: tools, images, seconds };
  return counted === undefined ? asked : { ...asked, counted };
}
