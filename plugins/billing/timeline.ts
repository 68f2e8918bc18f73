/** Billing's timeline events: the hold and the cost of a call. */
import type { Exchange } from '../../core/contract/contract.ts';
import { formatRatio, formatUsd, money } from '../common/domain/money.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
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

const heldEvent = defineEvent(
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

const endEvent = defineEvent('billing.end', (...[reason, spent, estimated, finalHold]: EndValues) => {
  if (reason !== null) return `nothing charged: ${reason}`;
  const more = finalHold === null ? '' : ` (${usd(finalHold)} USD set aside in the end)`;
  return `${usd(spent)} USD charged${estimated ? ', estimated' : ''}${more}`;
});

const impossibleEvent = defineEvent(
  'billing.impossible',
  (reported: string) => `the call cannot have had the reported usage ${reported}: it is estimated`,
);

const servedEvent = defineEvent('billing.served', (by: string) => `answered by ${by}, without an attempt`);

export function recordHeld(exchange: Exchange, { held, terms }: Hold): void {
  const { inputTokens, outputTokens, ratio } = terms;
  const { numerator, denominator } = ratio;
  const isPlain = numerator === denominator;
  recordEvent(exchange, terms.at, heldEvent, [
    String(held),
    inputTokens,
    outputTokens,
    isPlain ? null : String(numerator),
    isPlain ? null : String(denominator),
  ]);
}

export function recordEnd(exchange: Exchange, at: number, hold: Hold, verdict: Verdict): void {
  if (verdict.kind === 'SETTLE' && verdict.served !== undefined)
    recordEvent(exchange, at, servedEvent, [verdict.served.name]);
  if (verdict.kind === 'SETTLE' && verdict.impossible !== undefined)
    recordEvent(exchange, at, impossibleEvent, [JSON.stringify(verdict.impossible)]);
  const values: EndValues =
    verdict.kind === 'VOID'
      ? [verdict.reason, '0', false, null]
      : [null, String(hold.spent ?? 0n), verdict.estimated, hold.extensions === 0 ? null : String(hold.held)];
  recordEvent(exchange, at, endEvent, values);
}

const usd = (nano: string): string => formatUsd(money(BigInt(nano)));

const switchEvent = defineEvent('billing.instead', (requested: string, served: string) => {
  return `the call goes on with the model ${served}, at its price, as a budget does not cover ${requested}`;
});

export function recordSwitch(exchange: Exchange, at: number, requested: string, served: string): void {
  recordEvent(exchange, at, switchEvent, [requested, served]);
}
