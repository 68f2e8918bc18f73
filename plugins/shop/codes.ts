/** Creates and revokes codes, with the same rules for the command line and the console. */

import type { Clock, Random } from '../../core/contract/host-tools.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { CodeGift, ShopAdmin } from '../common/domain/admin/shop.ts';
import type { Plans } from '../common/domain/plans.ts';
import { hashCode, makeCode, prefixOf } from './code.ts';
import { offerNamed } from './sale.ts';
import type { CodeStore } from './store.ts';

export const mostCodes = 10_000;
export const mostUses = 1_000_000;
export const mostDays = 36_500;
/** The largest single credit of an account. */
const largestGift = 1_000_000_000_000_000_000n;
const longestMs = 100 * 366 * 24 * 3_600_000;

export interface CodeMakers {
  readonly codes: CodeStore;
  readonly plans: Plans;
  readonly clock: Clock;
  readonly random: Random;
}

/** Creates codes and returns them, for the only time. Throws invalid_request with the field, not_found for a plan. */
export async function makeCodes(
  { codes, plans, clock, random }: CodeMakers,
  { gift, count, maxUses, oncePerAccount, expiresAt, batch: named }: Parameters<ShopAdmin['createCodes']>[0],
): ReturnType<ShopAdmin['createCodes']> {
  const now = clock.now();
  checkCount('count', count, mostCodes);
  checkCount('maxUses', maxUses, mostUses);
  checkGift(gift, plans);
  if (expiresAt !== undefined && !(expiresAt > now && expiresAt <= now + longestMs)) {
    throw invalid('Codes expire at a time to come, within a hundred years.', 'expiresAt');
  }
  const made = Array.from({ length: count }, () => makeCode(random));
  const batch = named ?? `batch-${new Date(now).toISOString().slice(0, 10)}-${prefixOf(made[0]!)}`;
  if (!/^[\w.:-]{1,100}$/.test(batch))
    throw invalid('A batch is named by up to 100 letters, digits, and . : - _', 'batch');
  await codes.insert({
    batch,
    gift,
    maxUses,
    oncePerAccount,
    expiresAt,
    createdAt: now,
    codes: made.map((code) => ({ hash: hashCode(code), prefix: prefixOf(code) })),
  });
  return { batch, codes: made };
}

/** Revokes the code with this id or text, or those of this batch. Resolves with the number revoked. */
export function endCodes({ codes, clock }: Pick<CodeMakers, 'codes' | 'clock'>, named: string): Promise<number> {
  return codes.revoke(named, hashCode(named), clock.now());
}

function checkGift(gift: CodeGift, plans: Plans): void {
  if (gift.kind !== 'balance') {
    offerNamed(plans, gift.plan);
    if (gift.kind === 'days') checkCount('days', gift.days, mostDays);
    return;
  }
  if (gift.amount <= 0n || gift.amount > largestGift)
    throw invalid('The amount must be above 0 and at most 1,000,000,000 USD.', 'amount');
  if (gift.lastsMs !== undefined) checkCount('lastsMs', gift.lastsMs, longestMs);
}

function checkCount(field: string, count: number, most: number): void {
  if (Number.isSafeInteger(count) && count >= 1 && count <= most) return;
  throw invalid(`"${field}" is a whole number from 1 to ${most}.`, field);
}
