/** Scopes: the charges of some calls count together against one ceiling in each period. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isLike } from '../../../core/tools/wildcard.ts';
import type { KeyCap } from '../../common/domain/accounts.ts';
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
}

export interface Scope {
  /** Names it among the scopes of its account, in all processes and all periods; without spaces. */
  readonly id: string;
  /** Names it among those of all accounts. */
  readonly key: string;
  readonly spending: Spending;
  readonly amount: Money;
  readonly calendar: Calendar;
  /** The budget as a message names it; undefined: it is the cap of a key. */
  readonly name?: string;
}

export const keyOf = (accountId: string, scope: string): string => `${accountId} ${scope}`;

export const keyScope = (keyId: string): string => `key:${keyId}`;

export function scopeOfKey(accountId: string, keyId: string, { amount, every }: KeyCap): Scope {
  const id = keyScope(keyId);
  return { id, key: keyOf(accountId, id), spending: { accountId, key: keyId }, amount, calendar: { every } };
}

/** Whether a charge for this model counts. */
export function countsModel({ models }: Spending, model: string): boolean {
  return models === undefined || models.some((pattern) => isLike(pattern, model));
}

const spans = { day: ' a day', week: ' a week', month: ' a month', quarter: ' a quarter', year: ' a year', ever: '' };

/** `left`: what calls could take, as far as is known. */
export function reached(
  { amount, name, calendar: { every } }: Scope,
  left: Money,
  { end }: Period,
  now: number,
): GatewayError {
  const until = every === 'ever' || end <= now ? '' : ` It frees at ${new Date(end).toISOString()}.`;
  const ceiling = `${formatUsd(amount)} USD${spans[every]}`;
  const message =
    name === undefined
      ? `The rest of this key's spend cap, ${ceiling}, does not cover this call.${until}`
      : `The budget ${name}, ${ceiling}, has ${formatUsd(left)} USD left, which does not cover this call.${until}`;
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
