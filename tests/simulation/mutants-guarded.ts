/** Faults in what calls cost that checks of guardrails refuse. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { attempts, type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';
import { type ServedAnswer, servedBy } from '../../plugins/common/domain/ledger.ts';
import type { Mutant } from './mutants.ts';

/** Looks at what is set; true: it is not. */
function setting(exchange: LiveExchange, drops: (fact: unknown, value: unknown) => boolean): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => void (drops(fact, value) || set(fact, value));
}

const isSpared = (fact: unknown, value: unknown) => fact === servedBy && (value as ServedAnswer).name === 'guardrails';

export const guardedMutants: Readonly<Record<string, Mutant>> = {
  'refused-beside-and-charged': {
    summary: 'a prompt that is refused beside its call is charged although the policy says nothing',
    exchange: (exchange) => setting(exchange, isSpared),
  },
  'refused-answer-free': {
    summary: 'a whole answer that is refused costs nothing where its vendor has reported nothing',
    exchange: (exchange) =>
      setting(exchange, (fact, value) => {
        if (fact === usageReport && value !== undefined)
          Object.assign(value as UsageReport, { refusedHere: false } satisfies Partial<UsageReport>);
        return false;
      }),
  },
  'refused-beside-and-unpaid': {
    summary: 'what a vendor has done beside a prompt that is refused is borne by no one',
    exchange: (exchange) =>
      setting(exchange, (fact, value) => {
        const last = isSpared(fact, value) ? exchange.find(attempts)?.at(-1) : undefined;
        if (last !== undefined) last.consumed = { usage: {}, estimated: false };
        return false;
      }),
  },
};
