/** A scope: calls whose charges are counted together against one ceiling for each period. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { KeyCap } from '../../common/domain/accounts.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import type { Period } from '../grants/periods.ts';
import type { Calendar } from './calendar.ts';

/** Which charges count. */
export interface Spending {
  readonly accountId: string;
  readonly key?: string | undefined;
}

export interface Scope {
  /** Names it among the scopes of its account, in all processes and all periods; without spaces. */
  readonly id: string;
  readonly spending: Spending;
  readonly amount: Money;
  readonly calendar: Calendar;
}

export const keyScope = (keyId: string): string => `key:${keyId}`;

export function scopeOfKey(accountId: string, keyId: string, { amount, every }: KeyCap): Scope {
  return { id: keyScope(keyId), spending: { accountId, key: keyId }, amount, calendar: { every } };
}

const spans = { day: ' a day', week: ' a week', month: ' a month', quarter: ' a quarter', year: ' a year', ever: '' };

export function reached({ amount, calendar: { every } }: Scope, { end }: Period, now: number): GatewayError {
  const until = every === 'ever' || end <= now ? '' : ` It frees at ${new Date(end).toISOString()}.`;
  const message = `The rest of this key's spend cap, ${formatUsd(amount)} USD${spans[every]}, does not cover this call.${until}`;
  return new GatewayError('insufficient_balance', message, { code: 'key_cap_reached', shouldRetry: false });
}

export function unavailable(cause?: unknown): GatewayError {
  return new GatewayError(
    'overloaded',
    'What this key has spent cannot be read at the moment; please try again soon.',
    {
      code: 'key_spend_unavailable',
      retryAfterMs: 1_000,
      cause,
    },
  );
}

export const least = (left: bigint, right: bigint): Money => money(left < right ? left : right);
export const most = (left: bigint, right: bigint): Money => money(left > right ? left : right);
