/** What billing tells of a call's money: what was set aside, and what it cost. */
import { formatUsd, type Money, money, timesExactly } from '../../core/money.ts';
import { defineLine } from '../../core/vocabulary.ts';
import type { Hold, Terms } from './hold.ts';
import type { Verdict } from './outcome.ts';

type HeldValues = [
  held: string,
  inputTokens: number,
  outputTokens: number,
  numerator: string | null,
  denominator: string | null,
];

export function heldValues(held: Money, { inputTokens, outputTokens, ratio }: Terms): HeldValues {
  const { numerator, denominator } = ratio;
  const plain = numerator === denominator;
  return [
    String(held),
    inputTokens,
    outputTokens,
    plain ? null : String(numerator),
    plain ? null : String(denominator),
  ];
}

export const heldLine = defineLine(
  'billing.held',
  (...[held, inputTokens, outputTokens, numerator, denominator]: HeldValues) => {
    const factor =
      numerator === null || denominator === null
        ? ''
        : `, at the official price × ${ratioWords({ numerator: BigInt(numerator), denominator: BigInt(denominator) } as Terms['ratio'])}`;
    return `${usd(held)} USD set aside for about ${inputTokens} tokens of prompt and up to ${outputTokens} of answer${factor}`;
  },
);

type EndValues = [reason: string | null, spent: string, estimated: boolean, heldInTheEnd: string | null];

export function endValues({ spent, held, extensions }: Hold, verdict: Verdict): EndValues {
  if (verdict.kind === 'VOID') return [verdict.reason, '0', false, null];
  return [null, String(spent ?? 0n), verdict.estimated, extensions === 0 ? null : String(held)];
}

export const endLine = defineLine('billing.end', (...[reason, spent, estimated, heldInTheEnd]: EndValues) => {
  if (reason !== null) return `nothing charged: ${reason}`;
  const more = heldInTheEnd === null ? '' : ` (${usd(heldInTheEnd)} USD set aside in the end)`;
  return `${usd(spent)} USD charged${estimated ? ', estimated' : ''}${more}`;
});

const usd = (nano: string): string => formatUsd(money(BigInt(nano)));

/** A product of ratios as a decimal where it is one with six places, else as a fraction. */
function ratioWords(ratio: Terms['ratio']): string {
  const millionths = timesExactly(1_000_000n, ratio);
  if (millionths === undefined) return `${ratio.numerator}/${ratio.denominator}`;
  const digits = millionths.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
}
