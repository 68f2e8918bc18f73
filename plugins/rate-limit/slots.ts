/** Concurrency slots of calls: taken before a large body is read, and released, like tokens, at the end of the exchange. */
import { defineContextKey, type Endpoint, type Exchange } from '../../core/contract/contract.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { usageReport } from '../common/domain/calls.ts';
import { type Limits, type PlanTerms, plan } from '../common/domain/plans.ts';
import { totalTokens } from '../common/domain/usage.ts';
import { demandsOf } from './demands.ts';
import type { Demand, Limiter, Returned, Verdict } from './limiter.ts';
import { overLimit } from './refusal.ts';

/** Deadline of exchanges on endpoints that set none. */
const defaultDeadlineMs = 600_000;
/** Deferred work runs a little after the deadline. */
const slotGraceMs = 60_000;

/** Set if the call's slots were taken before its body was read. */
export const slotTaken = defineContextKey<true>('slot taken');

/** Takes the call's slots, of its plan and its key, by the head alone: over the limit, the body is not read. */
export async function takeSlots(exchange: Exchange, limiter: Pick<Limiter, 'take'>): Promise<undefined> {
  const terms = exchange.find(plan);
  const identity = exchange.find(caller);
  if (terms === undefined || identity === undefined) return undefined;
  const demands = slotsOf(identity, terms, slotLifetimeOf(exchange.endpoint));
  if (demands.length === 0) return undefined;
  const verdict = await limiter.take(exchange.id, demands);
  returnAtEnd(verdict, exchange, demands);
  if (verdict.refusedBy !== undefined)
    throw overLimit(ownerOf(verdict.refusedBy, identity, terms), verdict.refusedBy, verdict.retryAfterMs, {});
  exchange.set(slotTaken, true);
  return undefined;
}

function slotsOf(identity: Caller, terms: PlanTerms, slotLifetimeMs: number): Demand[] {
  const options = { reservedOutputTokens: 0, slotLifetimeMs, group: identity.accountId };
  const demands = demandsOf(identity.accountId, slotsIn(terms.limits), undefined, options);
  if (identity.keyLimits !== undefined)
    demands.push(...demandsOf(`key:${identity.keyId}`, slotsIn(identity.keyLimits), undefined, options));
  return demands;
}

function slotsIn({ concurrency }: Limits): Limits {
  return concurrency === undefined ? {} : { concurrency };
}

/** Expiry of a slot that is never released. */
export function slotLifetimeOf({ timeoutMs = defaultDeadlineMs }: Endpoint): number {
  return timeoutMs + slotGraceMs;
}

/** The owner of a limit, as error messages name it. */
export function ownerOf({ subject }: Demand, { accountId }: Caller, { name }: PlanTerms): string {
  return subject === accountId ? `plan "${name}"` : 'this key';
}

/** What is given back, as a chain: it is kept as long as the call runs. */
interface Granted extends Returned {
  usedUnits: number;
  readonly next: Granted | undefined;
}

/**
 * Returns the returnable part of a grant at the end of the exchange, in any outcome: one order to the limiter. An exchange
 * without a usage report used no tokens.
 */
export function returnAtEnd({ by, receipts }: Verdict, exchange: Exchange, demands: readonly Demand[]): void {
  let granted: Granted | undefined;
  for (let index = receipts.length - 1; index >= 0; index--) {
    const demand = demands[index]!;
    // Requests are counted as they come; slots and tokens are given back.
    if (demand.dimension === 'tpm' || demand.dimension === 'concurrency')
      granted = { demand, receipt: receipts[index]!, usedUnits: 0, next: granted };
  }
  if (granted === undefined) return;
  exchange.defer(() => {
    const returned: Returned[] = [];
    for (let each: Granted | undefined = granted; each !== undefined; each = each.next) {
      const report = each.demand.dimension === 'tpm' ? exchange.find(usageReport) : undefined;
      if (report !== undefined) each.usedUnits = totalTokens(report.usage);
      returned.push(each);
    }
    return by.giveBack(exchange.id, returned);
  });
}
