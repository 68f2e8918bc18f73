/** Refunds: a top-up paid back outside is debited, a wrong charge is credited back. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isUuid } from '../../common/domain/database.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import { settleRefund } from './credit-lines.ts';
import { checkAmount, type Entries, type Entry, notThere } from './entries.ts';
import { listNonExpiring } from './listing.ts';

/**
 * Debits a credit, or a part of it, up to its unspent rest. Of several top-ups the oldest is spent first. A
 * repeated reference changes nothing.
 */
export async function refundCredit(
  entries: Entries,
  creditReference: string,
  amount: Money,
  entry: Entry,
): Promise<void> {
  checkAmount(amount);
  if (await entries.isKnown('PAYOUT', -amount, entry.reference)) return;
  const wallet = await entries.wallet();
  const grant = (await listNonExpiring(entries, wallet)).find(({ reference }) => reference === creditReference);
  if (grant === undefined) {
    const message =
      'There is no credit of this reference that could be paid back: it is unknown, expires, or is spent.';
    throw new GatewayError('not_found', message, { field: 'of' });
  }
  const free = wallet - entries.held - entries.leased;
  const most = grant.remaining < free ? grant.remaining : free;
  if (amount > most || !entries.mayTake) {
    throw notThere(
      `Of this credit, ${formatUsd(most > 0n ? most : 0n)} USD can be paid back: the rest was spent or is in use.`,
    );
  }
  await entries.post({
    kind: 'PAYOUT',
    amount: -amount,
    funding: amount,
    grantId: grant.id,
    reference: entry.reference,
    detail: { reason: entry.reason, of: creditReference },
  });
}

/**
 * Refunds a settled request's charge or a part of it. The refunds of a request never exceed its charge. The refund
 * does not expire, whatever paid the charge. A repeated reference changes nothing.
 */
export async function refundRequest(entries: Entries, requestId: string, amount: Money, entry: Entry): Promise<void> {
  const { refunds } = entries.tables;
  const charge = isUuid(requestId) ? await refunds.chargeOf(requestId) : undefined;
  if (charge === undefined) {
    throw new GatewayError('not_found', 'This account has no settled request of this id.', { field: 'of' });
  }
  const { reason, reference } = entry;
  const grantId = await entries.insertGrant(amount, { kind: 'refund', reason, reference });
  if (grantId === undefined) return;
  const left = charge.cost - charge.refunded;
  if (amount > left) {
    const message = `Of this request's charge, ${formatUsd(money(left))} USD can still be given back.`;
    throw new GatewayError('conflict', message, { field: 'usd', code: 'refund_too_high', shouldRetry: false });
  }
  const detail = { kind: 'refund', reason, reference, of: requestId };
  await entries.post({ kind: 'REFUND', amount, revenue: -amount, grantId, detail });
  await refunds.add(grantId, requestId, amount);
  await settleRefund(entries, { requestId, earlier: charge.refunded }, amount, reference);
}
