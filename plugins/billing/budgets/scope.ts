/** Scopes: the charges of some calls count together against one ceiling in each period. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isLike } from '../../../core/tools/wildcard.ts';
import type { Caller, KeyCap } from '../../common/domain/accounts.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import type { Period } from '../grants/periods.ts';
import type { Calendar } from './calendar.ts';

/** A charge of the account counts where it has all of these. */
export interface Spending {
  readonly accountId: string;
  readonly key?: string | undefined;
  readonly person?: string | undefined;
  readonly project?: string | undefined;
  /** Ids of models, with * for any part. */
  readonly models?: readonly string[] | undefined;
  /** NAME=VALUE, which nothing but `accountId` is beside. */
  readonly tag?: string | undefined;
}

/** What may be spent beyond the amount in one period. */
export interface Addition {
  /** When it was made: within the period. */
  readonly at: number;
  readonly amount: Money;
}

/** By whom the call was made that a scope was found for, and which models may serve it. */
export interface Origin {
  readonly identity: Identity;
  readonly models: readonly string[];
}

export type Identity = Pick<Caller, 'accountId' | 'keyId'> & {
  readonly [Name in 'project' | 'attribution' | 'cap' | 'tags']?: Caller[Name] | undefined;
};

export interface Scope {
  /** Names it among the scopes of its account, in all processes and all periods; without spaces. */
  readonly id: string;
  /** Names it among those of all accounts. */
  readonly key: string;
  readonly spending: Spending;
  readonly amount: Money;
  readonly calendar: Calendar;
  readonly additions?: readonly Addition[] | undefined;
  /** The call by which the budget was found; undefined: it is the cap of a key. */
  readonly origin?: Origin;
  /** The budget as a message names it; undefined: it is the cap of a key. */
  readonly name?: string;
  /** The model that takes calls which do not fit in it. */
  readonly instead?: string | undefined;
}

/** A call did not fit in a budget that names a model for such calls. */
export class PassedBudget extends GatewayError {
  readonly instead: string;

  constructor(message: string, instead: string) {
    super('insufficient_balance', message, { code: 'budget_reached', shouldRetry: false });
    this.instead = instead;
  }
}

export const keyOf = (accountId: string, scope: string): string => `${accountId} ${scope}`;

export const keyScope = (keyId: string): string => `key:${keyId}`;

export function scopeOfKey(
  accountId: string,
  keyId: string,
  { amount, every }: KeyCap,
  zone: string | undefined,
): Scope {
  const id = keyScope(keyId);
  return { id, key: keyOf(accountId, id), spending: { accountId, key: keyId }, amount, calendar: { every, zone } };
}

/** What may be spent in the period. */
export function ceilingIn({ amount, additions }: Pick<Scope, 'amount' | 'additions'>, { start, end }: Period): Money {
  if (additions === undefined) return amount;
  const isIn = ({ at }: Addition) => at >= start && at < end;
  return money(additions.reduce((sum, added) => (isIn(added) ? sum + added.amount : sum), BigInt(amount)));
}

/** Whether a charge for this model counts. */
export function countsModel({ models }: Spending, model: string): boolean {
  return models === undefined || models.some((pattern) => isLike(pattern, model));
}

const spans = { day: ' a day', week: ' a week', month: ' a month', quarter: ' a quarter', year: ' a year', ever: '' };

/** `left`: what calls could take, as far as is known. */
export function reached(scope: Scope, left: Money, period: Period, now: number): GatewayError {
  const { name, calendar } = scope;
  const { end } = period;
  const { every } = calendar;
  const until = every === 'ever' || end <= now ? '' : ` It frees at ${new Date(end).toISOString()}.`;
  const ceiling = `${formatUsd(ceilingIn(scope, period))} USD${spans[every]}`;
  const message =
    name === undefined
      ? `The rest of this key's spend cap, ${ceiling}, does not cover this call.${until}`
      : `The budget ${name}, ${ceiling}, has ${formatUsd(left)} USD left, which does not cover this call.${until}`;
  if (scope.instead !== undefined) return new PassedBudget(message, scope.instead);
  const code = name === undefined ? 'key_cap_reached' : 'budget_reached';
  return new GatewayError('insufficient_balance', message, { code, shouldRetry: false });
}

export function unavailable({ name }: Scope, cause?: unknown): GatewayError {
  const what = name === undefined ? 'What this key has spent' : `What is left of the budget ${name}`;
  const code = name === undefined ? 'key_spend_unavailable' : 'budget_unavailable';
  const message = `${what} cannot be read at the moment; please try again soon.`;
  return new GatewayError('overloaded', message, { code, retryAfterMs: 1_000, cause });
}

export const least = (left: bigint, right: bigint): Money => money(left < right ? left : right);
export const most = (left: bigint, right: bigint): Money => money(left > right ? left : right);
