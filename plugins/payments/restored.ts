/** Payments that only the payment service knows, after the database was put back to an earlier time. */
import type { MissingPayment } from '../common/domain/admin/ledger.ts';
import { money } from '../common/domain/money.ts';
import { uuidForm } from '../common/kit/paging.ts';
import { centNano } from './config.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';

export async function missingSince({ processor, rows }: SettlementServices, since: number): Promise<MissingPayment[]> {
  const missing: MissingPayment[] = [];
  for (const { id: session, orderId, accountId, cents, createdAt } of await processor.paidSince(since)) {
    if (!uuidForm.test(orderId!)) continue;
    const order = await rows.find({ id: orderId! });
    if (order?.state === 'paid' || order?.state === 'mismatch') continue;
    const amount = money(BigInt(cents) * centNano);
    missing.push({ session, accountId: order?.accountId ?? accountId, amount, begunAt: createdAt });
  }
  return missing;
}

/**
 * The order of a page at the payment service. One that the database has lost is made again, for an account that it has: only
 * at an operator's word, since another gateway may sell by the same account at the payment service.
 */
export async function orderOfSession(services: SettlementServices, id: string): Promise<Order | undefined> {
  const { processor, rows } = services;
  const known = await rows.find({ session: id });
  if (known !== undefined) return known;
  const session = await processor.session(id);
  const { orderId, accountId } = session;
  if (orderId === undefined || !uuidForm.test(orderId)) return undefined;
  if ((await rows.find({ id: orderId })) === undefined) {
    const isOurs = accountId !== undefined && (await services.accounts()?.find(accountId))?.id === accountId;
    if (!isOurs) return undefined;
    const amount = money(BigInt(session.cents) * centNano);
    await rows.insert({ id: orderId, accountId, reference: `restored:${id}`, amount, at: session.createdAt });
  }
  await rows.open(orderId, id, session.url);
  return rows.find({ id: orderId });
}
