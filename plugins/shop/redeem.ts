/** Redeems a code: its gift goes to an account in one transaction, and no use of a code counts twice. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { CodeView } from '../common/domain/admin/shop.ts';
import type { Posting } from '../common/domain/ledger.ts';
import { money } from '../common/domain/money.ts';
import type { Redemption } from '../common/domain/plans.ts';
import { hashCode, readCode } from './code.ts';
import { enterPlan, offerNamed, type Sales } from './sale.ts';
import type { CodeStore } from './store.ts';

const dayMs = 24 * 3_600_000;

/** Every process locks the account first and the code second, which prevents deadlocks. */
export async function redeemCode(
  sales: Sales,
  store: CodeStore,
  accountId: string,
  typed: string,
): Promise<Redemption> {
  if (readCode(typed) === undefined) throw unknownCode();
  await sales.pool.admitMoney();
  return sales.pool.transact(accountId, money(0n), async (posting) => {
    const code = await store.lock(posting.orm, hashCode(typed));
    if (code === undefined) throw unknownCode();
    checkUsable(code, posting.at);
    if (code.oncePerAccount && (await store.isRedeemedBy(posting.orm, code.id, accountId))) {
      throw unusable('code_redeemed', 'This account has redeemed this code already.');
    }
    const number = code.uses + 1;
    await store.insertUse(posting.orm, code.id, number, accountId, posting.at);
    return give(sales, posting, code, `code:${code.id}:${number}`);
  });
}

function checkUsable({ revokedAt, expiresAt, uses, maxUses }: CodeView, at: number): void {
  if (revokedAt !== undefined) throw unusable('code_revoked', 'This code was revoked.');
  if (expiresAt !== undefined && expiresAt <= at) throw unusable('code_expired', 'This code has expired.');
  if (uses >= maxUses) throw unusable('code_used', 'This code has been used.');
}

async function give(
  sales: Sales,
  posting: Posting,
  { gift, prefix, batch }: CodeView,
  reference: string,
): Promise<Redemption> {
  if (gift.kind === 'balance') {
    const { amount, lastsMs } = gift;
    const expiresAt = lastsMs === undefined ? undefined : posting.at + lastsMs;
    await posting.credit(amount, { kind: 'code', reason: `code ${prefix}… (${batch})`, reference, expiresAt });
    return { amount, plan: undefined, endsAt: undefined, balance: posting.balance };
  }
  const offer = offerNamed(sales.plans, gift.plan);
  const lengthMs = gift.kind === 'days' ? gift.days * dayMs : undefined;
  const endsAt = await enterPlan(sales, posting, offer, lengthMs);
  return { amount: undefined, plan: gift.plan, endsAt, balance: posting.balance };
}

function unknownCode(): GatewayError {
  return new GatewayError('not_found', 'There is no such code.', {
    field: 'code',
    code: 'code_unknown',
    shouldRetry: false,
  });
}

function unusable(code: string, message: string): GatewayError {
  return new GatewayError('conflict', message, { field: 'code', code, shouldRetry: false });
}
