/** What one run may spend, and how far it may go, as its client says in a header. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { SharedBudget } from '../common/domain/accounts.ts';
import { formatUsd, type Money, money, parseUsd, zero } from '../common/domain/money.ts';
import { invalid } from './wanted.ts';

export const runHeader = 'x-gateway-run';
const longestHeader = 256;

/** All steps of a run together: what they hold and what they have cost is never more, but for a cost beyond its hold. */
export class RunBudget implements SharedBudget {
  readonly #limit: Money;
  #held: Money = zero;
  #spent: Money = zero;

  constructor(limit: Money) {
    this.#limit = limit;
  }

  covers(amount: Money): boolean {
    return this.#spent + this.#held + amount <= this.#limit;
  }

  hold(amount: Money): void {
    this.#held = money(this.#held + amount);
  }

  end(held: Money, cost: Money): void {
    this.#held = money(this.#held - held);
    this.#spent = money(this.#spent + cost);
  }

  refusal(): GatewayError {
    const message = `The budget of this run, ${formatUsd(this.#limit)} USD, does not cover its next step.`;
    return new GatewayError('insufficient_balance', message, { code: 'run_budget', shouldRetry: false });
  }
}

export interface RunBounds {
  readonly budget: RunBudget | undefined;
  readonly turns: number;
  readonly calls: number;
}

/** `budget=2.00; turns=4; calls=10`: each one can only narrow the settings. Throws invalid_request. */
export function boundsOf(
  header: string | undefined,
  settings: { readonly turns: number; readonly calls: number },
): RunBounds {
  const parts = header === undefined || header.trim() === '' ? [] : header.slice(0, longestHeader).split(';');
  const given = new Map(parts.map((part) => part.trim().split('=', 2) as [string, string | undefined]));
  const unknown = [...given.keys()].find((name) => name !== 'budget' && name !== 'turns' && name !== 'calls');
  if (unknown !== undefined) throw invalid('This header has "budget", "turns" and "calls".', runHeader);
  return {
    budget: given.has('budget') ? new RunBudget(amountIn(given.get('budget'))) : undefined,
    turns: numberIn(given, 'turns', settings.turns),
    calls: numberIn(given, 'calls', settings.calls),
  };
}

function amountIn(text = ''): Money {
  try {
    const amount = parseUsd(text);
    if (amount >= 0n) return amount;
  } catch {
    // No amount either.
  }
  throw invalid('The budget of a run is an amount of USD, such as 2.00.', runHeader);
}

function numberIn(given: ReadonlyMap<string, string | undefined>, name: string, most: number): number {
  if (!given.has(name)) return most;
  const text = given.get(name) ?? '';
  if (!/^[1-9]\d{0,5}$/.test(text)) throw invalid(`The ${name} of a run are a whole number from 1 on.`, runHeader);
  return Math.min(Number(text), most);
}
