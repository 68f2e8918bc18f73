/** Billing's timeline events: the hold and the cost of a call. */
import { formatRatio, formatUsd, type Money, money } from '../common/domain/money.ts';
import { defineEvent } from '../common/domain/timeline.ts';
import type { Hold } from './reservations/hold.ts';
import type { Verdict } from './reservations/outcome.ts';
import type { Terms } from './reservations/terms.ts';

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

export const heldEvent = defineEvent(
  'billing.held',
  (...[held, inputTokens, outputTokens, numerator, denominator]: HeldValues) => {
    const factor =
      numerator === null || denominator === null
        ? ''
        : `, at the official price × ${formatRatio({ numerator: BigInt(numerator), denominator: BigInt(denominator) } as Terms['ratio'])}`;
    return `${usd(held)} USD set aside for about ${inputTokens} tokens of prompt and up to ${outputTokens} of answer${factor}`;
  },
);

type EndValues = [reason: string | null, spent: string, estimated: boolean, heldInTheEnd: string | null];

export function endValues({ spent, held, extensions }: Hold, verdict: Verdict): EndValues {
  if (verdict.kind === 'VOID') return [verdict.reason, '0', false, null];
  return [null, String(spent ?? 0n), verdict.estimated, extensions === 0 ? null : String(held)];
}

export const endEvent = defineEvent('billing.end', (...[reason, spent, estimated, finalHold]: EndValues) => {
  if (reason !== null) return `nothing charged: ${reason}`;
  const more = finalHold === null ? '' : ` (${usd(finalHold)} USD set aside in the end)`;
  return `${usd(spent)} USD charged${estimated ? ', estimated' : ''}${more}`;
});

const usd = (nano: string): string => formatUsd(money(BigInt(nano)));
