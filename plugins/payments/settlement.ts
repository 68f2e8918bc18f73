/** What becomes of an order, by the payment service's own word: credited once, and taken back once. No event is believed. */
import type { Clock, Log } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, money } from '../../core/money.ts';
import type { Ledger, Pool } from '../../core/vocabulary.ts';
import { centNano } from './config.ts';
import type { Processor, Session, Withdrawal } from './processor.ts';
import type { Order, OrderRows, StoredWithdrawal } from './rows.ts';

/** How often less is planned, since calls may spend meanwhile. */
const mostPlans = 5;

export interface Books {
  readonly rows: OrderRows;
  readonly processor: Processor;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly currency: string;
}

/** Asks the payment service how an order stands, and does what follows; any number of times, by any number of processes. */
export async function lookAt(books: Books, order: Order): Promise<void> {
  if (order.session === undefined) return;
  const session = await books.processor.session(order.session);
  if (session.state === 'expired' && order.state !== 'paid') return books.rows.end(order.id, 'expired');
  if (session.state !== 'paid' || order.state === 'mismatch') return;
  if (order.state !== 'paid' && !(await receive(books, order, session))) return;
  if (session.payment === undefined) return;
  for (const withdrawal of await books.processor.withdrawals(session.payment)) {
    await (withdrawal.standing ? takeBack(books, order, withdrawal) : giveBack(books, order, withdrawal));
  }
}

/** Credits what was paid. false: it is not what was ordered, so that nobody but an operator can tell what is right. */
async function receive(books: Books, order: Order, session: Session): Promise<boolean> {
  const { rows, ledger, log, clock } = books;
  const paid = BigInt(session.cents) * centNano;
  const fields = { order: order.id, account: order.accountId, session: session.id };
  if (session.currency !== books.currency || paid !== order.amount || session.orderId !== order.id) {
    log.error({ ...fields, cents: session.cents, currency: session.currency }, 'a payment is not what was ordered');
    await rows.end(order.id, 'mismatch');
    return false;
  }
  const entry = { kind: 'top-up', reason: 'payment', reference: creditReference(session.id) };
  await ledger.credit(order.accountId, order.amount, entry);
  await rows.pay(order.id, session.payment, clock.now());
  log.info({ ...fields, usd: formatUsd(order.amount) }, 'a payment was credited');
  return true;
}

function creditReference(session: string): string {
  return `stripe:${session}`;
}

/** Takes what was paid back or is disputed, as far as it was not spent. */
async function takeBack(books: Books, order: Order, { id, cents, currency }: Withdrawal): Promise<void> {
  const whole = BigInt(cents) * centNano;
  const amount = currency === books.currency && whole < order.amount ? whole : order.amount;
  if (amount <= 0n) return;
  const stored = await books.rows.withdraw(order.id, id, money(amount));
  if (stored.state === 'taking') await take(books, order, stored);
}

/**
 * How much is taken is written down before it is, so that a repetition takes the same. Only what was surely not taken is
 * planned anew.
 */
async function take({ rows, pool, log }: Books, order: Order, planned: StoredWithdrawal): Promise<void> {
  const { id, amount } = planned;
  const credit = creditReference(order.session!);
  for (let plan = planned, plans = 0; plans < mostPlans; plans += 1) {
    const rest = plan.taken === 0n ? undefined : await refused(pool, order.accountId, credit, plan);
    if (rest === undefined) {
      await rows.move(id, 'taking', 'taken');
      const fields = { order: order.id, account: order.accountId, withdrawal: id, usd: formatUsd(plan.taken) };
      if (plan.taken === amount) log.info(fields, 'a payment that was paid back was taken from its account');
      else
        log.error(
          { ...fields, spent: formatUsd(amount - plan.taken) },
          'a payment was paid back that is spent in part',
        );
      return;
    }
    if (rest < plan.taken) await rows.planLess(id, plan.taken, rest);
    plan = await rows.withdraw(order.id, id, amount);
    if (plan.state !== 'taking') return;
  }
  throw new GatewayError('overloaded', 'What was paid back could not be taken from its account yet.');
}

/** undefined: it is taken. Else what is left of the credit to take. */
async function refused(
  pool: Pool,
  accountId: string,
  credit: string,
  { id, taken }: StoredWithdrawal,
): Promise<Money | undefined> {
  try {
    await pool.refundCredit(accountId, credit, taken, { reason: 'payment paid back', reference: `stripe:${id}` });
    return undefined;
  } catch (error) {
    const kind = error instanceof GatewayError ? error.kind : undefined;
    // A conflict: another process has taken another amount, which the next reading tells.
    if (kind === 'conflict') return taken;
    if (kind !== 'insufficient_balance' && kind !== 'not_found') throw error;
    const left = (await pool.view(accountId)).grants.find(({ reference }) => reference === credit)?.remaining ?? 0n;
    return money(left < taken ? left : taken);
  }
}

/** A refund that failed, or a dispute that was won: what it had taken comes back. */
async function giveBack(books: Books, order: Order, { id }: Withdrawal): Promise<void> {
  const { rows, ledger, log } = books;
  if (!(await rows.isKnownWithdrawal(id))) return;
  let stored = await rows.withdraw(order.id, id, order.amount);
  if (stored.state === 'taking') {
    // It may be half done: the end of both is the same.
    await take(books, order, stored);
    stored = await rows.withdraw(order.id, id, order.amount);
  }
  if (stored.state !== 'taken') return;
  const entry = { kind: 'top-up', reason: 'payment kept after all', reference: `stripe:${id}:back` };
  if (stored.taken > 0n) await ledger.credit(order.accountId, stored.taken, entry);
  await rows.move(id, 'taken', 'back');
  log.info({ order: order.id, account: order.accountId, withdrawal: id }, 'a payment was kept after all');
}
