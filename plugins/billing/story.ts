/** What billing tells of a call's money: what was set aside, and what it cost. Pure. */
import { formatUsd, type Money, timesExactly } from '../../core/money.ts';
import type { Hold, Terms } from './hold.ts';
import type { Verdict } from './outcome.ts';

export function heldWords(held: Money, { inputTokens, outputTokens, ratio }: Terms): string {
  const factor = ratio.numerator === ratio.denominator ? '' : `, at the official price × ${ratioWords(ratio)}`;
  return `${formatUsd(held)} USD set aside for about ${inputTokens} tokens of prompt and up to ${outputTokens} of answer${factor}`;
}

export function endWords({ spent, held, extensions }: Hold, verdict: Verdict): string {
  if (verdict.kind === 'VOID') return `nothing charged: ${verdict.reason}`;
  const more = extensions === 0 ? '' : ` (${formatUsd(held)} USD set aside in the end)`;
  return `${formatUsd(spent ?? 0n)} USD charged${verdict.estimated ? ', estimated' : ''}${more}`;
}

/** A product of ratios as a decimal where it is one with six places, else as a fraction. */
function ratioWords(ratio: Terms['ratio']): string {
  const millionths = timesExactly(1_000_000n, ratio);
  if (millionths === undefined) return `${ratio.numerator}/${ratio.denominator}`;
  const digits = millionths.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
}
