/** Who bears each attempt of a request: its client one at most, the operator all others that may have cost something. Pure. */
import { type Money, money, zero } from '../../core/money.ts';
import type { Usage } from '../../core/usage.ts';
import type { Attempt } from '../../core/vocabulary.ts';
import { officialBound, officialCost } from './charge.ts';
import type { Terms } from './hold.ts';
import { believable, type Verdict } from './outcome.ts';
import type { AttemptNote } from './records.ts';

export interface Shares {
  readonly notes: readonly AttemptNote[];
  /** What the operator bears, at the model's official price: no ratio is a vendor's. */
  readonly absorbed: Money;
}

/** No attempt can cost more; the sum of a request's stays far from the end of a `bigint`. */
const absurdCost = money(100_000_000_000_000_000n);

/**
 * The client bears the last attempt when it is charged. Of the others those count that may have run: by what they were
 * seen to consume, else by the estimate of the prompt. Refused ones that told of no usage cost nothing.
 */
export function share(
  sent: readonly AttemptNote[],
  attempts: readonly Attempt[],
  verdict: Verdict,
  terms: Pick<Terms, 'inputTokens' | 'prices' | 'at' | 'context'>,
): Shares {
  const charged = verdict.kind === 'SETTLE' ? sent.at(-1) : undefined;
  // The rule: one attempt, whose cost is the client's.
  if (charged !== undefined && sent.length === 1) {
    return { notes: [{ ...charged, bearer: 'client' }], absorbed: zero };
  }
  let absorbed = 0n;
  const notes = sent.map((note): AttemptNote => {
    if (note === charged) return { ...note, bearer: 'client' };
    const consumed = consumedBy(note, attempts, terms.inputTokens);
    if (consumed === undefined) return note;
    // What was left to the vendor may be of the dearest kind.
    const exact = (consumed.estimated ? officialBound : officialCost)(terms, consumed.usage);
    const amount = exact < absurdCost ? exact : absurdCost;
    absorbed += amount;
    return { ...note, bearer: 'operator', absorbed: amount.toString(), ...consumed };
  });
  return { notes, absorbed: money(absorbed) };
}

function consumedBy(
  { number, result }: AttemptNote,
  attempts: readonly Attempt[],
  inputTokens: number,
): { usage: Usage; estimated: boolean } | undefined {
  const seen = attempts.find((attempt) => attempt.number === number)?.consumed;
  if (seen !== undefined) {
    const usage = believable(seen.usage, inputTokens, 0);
    return { usage, estimated: seen.estimated || usage !== seen.usage };
  }
  return result === 'unknown' || result === 'answered' ? { usage: { input: inputTokens }, estimated: true } : undefined;
}
