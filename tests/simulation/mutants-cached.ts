/** Faults in what an answer from a cache costs. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type SpendGuard, spendGuard } from '../../plugins/common/domain/calls.ts';
import { type ServedAnswer, type ServedPrice, servedBy } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';

/** Changes the price of each answer from the cache. */
function pricing(exchange: LiveExchange, change: (served: ServedAnswer) => ServedPrice): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    if ((fact as unknown) !== servedBy) return set(fact, value);
    const served = value as ServedAnswer;
    return set(fact, Object.assign(served, { price: change(served) }) as never);
  };
}

const nothing = { numerator: 0n, denominator: 1n };
const all = { numerator: 1n, denominator: 1n };

/** The share of a cost that is rounded already. */
function shareOfRounded(guard: SpendGuard, { usage, price }: ServedAnswer): ServedPrice {
  if (price === 'free' || 'fixed' in price) return price;
  const { numerator, denominator } = price.ratio;
  return { fixed: money((2n * guard.saving!(usage, nothing) * numerator + denominator) / (2n * denominator)) };
}

export const cachedMutants: Readonly<Record<string, Mutant>> = {
  'share-ignored': {
    summary: 'an answer from the cache costs as much as one that is made',
    exchange: (exchange) => pricing(exchange, ({ price }) => (price === 'free' ? price : { ratio: all })),
  },
  'share-of-rounded': {
    summary: 'the share of an answer from the cache is taken of the rounded cost',
    exchange: (exchange) => pricing(exchange, (served) => shareOfRounded(exchange.get(spendGuard), served)),
  },
  'broken-hit-charged': {
    summary: 'an answer from the cache is charged although it broke off',
    exchange: (exchange) => {
      const fail = exchange.fail.bind(exchange);
      exchange.fail = (error) => void (exchange.find(servedBy) === undefined && fail(error));
      const end = exchange.end.bind(exchange);
      exchange.end = (outcome) =>
        end(exchange.find(servedBy) === undefined ? outcome : { ...outcome, kind: 'complete' });
    },
  },
  'hit-beyond-balance': {
    summary: 'an answer from the cache is given although the balance does not cover it',
    exchange: (exchange) => {
      const set = exchange.set.bind(exchange);
      exchange.set = (fact, value) => {
        if ((fact as unknown) === spendGuard) Object.assign(value as SpendGuard, { cover: undefined });
        return set(fact, value);
      };
    },
  },
};
