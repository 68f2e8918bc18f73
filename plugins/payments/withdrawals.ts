/** Money that went back to its payer: taken from the account once, as far as it was not spent, and given back where it stayed. */
import { GatewayError } from '../../core/contract/errors.ts';
import { formatUsd, type Money, money } from '../common/domain/money.ts';
import { centNano } from './config.ts';
import type { Withdrawal } from './processor.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';

/** How often less is planned, since calls may spend meanwhile. */
const mostPlans = 5;

/** Reference of the credit of a paid checkout page. */
export function creditReference(session: string): string {
  return `stripe:${session}`;
}

/** Names the credit of what a withdrawal had taken and gave back. */
function backReference(id: string): string {
  return `stripe:${id}:back`;
}

/** Takes refunded or disputed money; may be called any number of times. */
export async function takeBack(
  services: SettlementServices,
  order: Order,
  { id, cents, currency }: Withdrawal,
): Promise<void> {
  const whole = BigInt(cents) * centNano;
  const amount = currency === services.currency && whole < order.amount ? whole : order.amount;
  if (amount <= 0n) return;
  await services.withdrawals.insert(order.id, id, money(amount));
  await take(services, order, id);
}

/** A refund that failed, or a dispute that was won: what it had taken comes back. */
export async function giveBack(services: SettlementServices, order: Order, { id }: Withdrawal): Promise<void> {
  const { withdrawals, ledger, log } = services;
  // It may be half done: then it is done first, and the end is the same.
  if ((await withdrawals.find(id))?.state === 'taking') await take(services, order, id);
  if ((await withdrawals.find(id))?.state !== 'taken') return;
  const taken = await withdrawals.taken(id);
  const entry = { kind: 'top-up', reason: 'payment kept after all', reference: backReference(id) };
  if (taken > 0n) await ledger.credit(order.accountId, taken, entry);
  await withdrawals.move(id, 'taken', 'back');
  log.info({ order: order.id, account_id: order.accountId, withdrawal: id }, 'a payment was kept after all');
}

/**
 * Takes the money from the credit of the payment, then from what earlier withdrawals of it gave back, also if one gives back only
 * after this one has found too little.
 */
async function take(services: SettlementServices, order: Order, id: string): Promise<void> {
  const { withdrawals, log } = services;
  const stored = await withdrawals.find(id);
  if (stored === undefined || stored.state === 'back') return;
  const before = await withdrawals.taken(id);
  if (stored.state === 'taken' && before === stored.amount) return;
  let left: bigint = stored.amount;
  const returned = await withdrawals.returned(order.id);
  for (const credit of [creditReference(order.session!), ...returned.map(backReference)]) {
    if (left > 0n) left -= await takeFrom(services, order.accountId, id, credit, money(left));
  }
  await withdrawals.move(id, 'taking', 'taken');
  if (stored.state === 'taken' && stored.amount - left === before) return;
  const fields = { order: order.id, account_id: order.accountId, withdrawal: id, usd: formatUsd(stored.amount) };
  if (left === 0n) log.info(fields, 'a payment that was paid back was taken from its account');
  else log.error({ ...fields, spent: formatUsd(left) }, 'a payment was paid back that is spent in part');
}

/**
 * The amount is recorded before it is taken, so that a repetition takes the same. Only an amount that was surely not taken is
 * planned again. Resolves with the taken amount.
 */
async function takeFrom(
  { withdrawals, pool }: SettlementServices,
  accountId: string,
  id: string,
  credit: string,
  most: Money,
): Promise<Money> {
  for (let plans = 0; plans < mostPlans; plans += 1) {
    const { amount, done } = await withdrawals.plan(id, credit, most);
    if (done) return amount;
    const reference = `stripe:${id}:of:${credit}`;
    const rest = amount === 0n ? undefined : await refused(pool, accountId, credit, amount, reference);
    if (rest === undefined) {
      await withdrawals.take(id, credit, amount);
      return amount;
    }
    if (rest < amount) await withdrawals.planLess(id, credit, amount, rest);
  }
  throw new GatewayError('overloaded', 'The refunded money could not be taken from its account yet.');
}

/** undefined: it is taken. Else the rest of the credit that can be taken. */
async function refused(
  pool: SettlementServices['pool'],
  accountId: string,
  credit: string,
  amount: Money,
  reference: string,
): Promise<Money | undefined> {
  try {
    await pool.refundCredit(accountId, credit, amount, { reason: 'payment paid back', reference });
    return undefined;
  } catch (error) {
    const kind = error instanceof GatewayError ? error.kind : undefined;
    // Another process has taken another amount, which the next read returns.
    if (kind === 'conflict') return amount;
    if (kind !== 'insufficient_balance' && kind !== 'not_found') throw error;
    const left = (await pool.view(accountId)).grants.find(({ reference: known }) => known === credit)?.remaining ?? 0n;
    return money(left < amount ? left : amount);
  }
}
