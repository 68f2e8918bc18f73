/** Authorizations: money set aside for a task, created and ended in the caller's transaction, without the journal. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Orm } from '../../common/domain/database.ts';
import type {
  Authorization,
  AuthorizationCharge,
  AuthorizationEnd,
  Authorizations,
} from '../../common/domain/ledger.ts';
import { catalog } from '../../common/domain/models.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { type RequestedUsage, unknownSize } from '../../common/wire/possible-usage.ts';
import type { AccountChanges } from '../accounts/changes.ts';
import { bindingWindow, lockedAt } from '../grants/balances.ts';
import { notCovered } from '../grants/not-covered.ts';
import type { Entries } from '../ledger/entries.ts';
import { recordOf } from '../model/record-texts.ts';
import type { EndRecord, SentAttempt, SettleRecord } from '../model/records.ts';
import { boundOf, type Charge, chargeFor } from '../reservations/charge.ts';
import { type Hold, newHold, settleText, voidRecord } from '../reservations/hold.ts';
import { reportImpossible } from '../reservations/impossible.ts';
import { attemptNotes, judge, type Verdict } from '../reservations/outcome.ts';
import { absurdCost } from '../reservations/reservations.ts';
import type { Terms } from '../reservations/terms.ts';
import { share } from '../reservations/written-off.ts';
import { decodeTerms, encodeTerms } from './terms.ts';

const nothing = money(0n);

export class AuthorizationStore implements Authorizations {
  readonly #host: Host;
  readonly #changes: AccountChanges;
  readonly #listeners: ((charge: AuthorizationCharge) => void)[] = [];

  constructor(host: Host, changes: AccountChanges) {
    this.#host = host;
    this.#changes = changes;
  }

  /** The authorization for a call on these terms. */
  offer(terms: Terms): Authorization {
    const { id, accountId, keyId } = terms;
    const amount = boundOf(terms, terms.outputTokens);
    return { id, accountId, keyId, amount, place: (work) => this.#place(terms, amount, work) };
  }

  async #place(terms: Terms, amount: Money, work: (orm: Orm) => Promise<void>): Promise<void> {
    const { accountId, plan } = terms;
    // The plan's grant is available to the first call of its period.
    if (plan?.terms.grant !== undefined) await this.#changes.upkeep(accountId, plan);
    await this.#changes.change(accountId, amount, async (entries) => {
      await checkCovered(entries, amount);
      const { authorizations } = entries.tables;
      await authorizations.add(terms.id, { held: amount, terms: encodeTerms(terms) }, terms.at);
      await work(entries.runner);
    });
  }

  onCharge(listener: (charge: AuthorizationCharge) => void): void {
    this.#listeners.push(listener);
  }

  async end(
    accountId: string,
    id: string,
    work: (orm: Orm) => Promise<AuthorizationEnd | undefined>,
  ): Promise<boolean> {
    const record = await this.#end(accountId, id, work);
    if (record?.kind === 'SETTLE') this.#notify(record);
    return record !== undefined;
  }

  #end(accountId: string, id: string, work: (orm: Orm) => Promise<AuthorizationEnd | undefined>) {
    return this.#changes.change(accountId, nothing, async (entries) => {
      const { authorizations } = entries.tables;
      const kept = await authorizations.find(id);
      const end = kept === undefined ? undefined : await work(entries.runner);
      if (kept === undefined || end === undefined) return undefined;
      const terms = { ...decodeTerms(kept.terms), id, accountId };
      const entry = this.#host.find(catalog)?.find(terms.model);
      const hold = newHold({ ...terms, entry }, kept.held, undefined, terms.at);
      const record = this.#recordOf(hold, end);
      await authorizations.remove(id, kept.held);
      await authorizations.post(record);
      if (record.kind === 'SETTLE') await end.charged?.(entries.runner, money(BigInt(record.cost)), record.usage);
      else await end.charged?.(entries.runner, nothing, undefined);
      return record;
    });
  }

  #notify({ model, provider, cost, own }: SettleRecord): void {
    const charge = {
      model,
      provider,
      cost: money(BigInt(cost)),
      own: own === undefined ? undefined : money(BigInt(own)),
    };
    for (const listener of this.#listeners) listener(charge);
  }

  #recordOf(hold: Hold, { report, attempts, reason }: AuthorizationEnd): EndRecord {
    const at = this.#host.clock.now();
    const { terms } = hold;
    const list = attempts.filter(({ result }) => result !== 'not_sent');
    const sent = list.map(({ startedAt, ...rest }): SentAttempt => ({ ...rest, at: startedAt }));
    const verdict: Verdict =
      report === undefined
        ? { kind: 'VOID', reason: 'refused' }
        : judge({
            attempts: list,
            sent,
            report,
            outcome: 'complete',
            requested: requestedUsage(terms),
            size: terms.entry ?? unknownSize,
            seenOutput: 0,
          });
    const shares = share(attemptNotes(list, sent), list, verdict, terms);
    if (verdict.kind === 'VOID') return voidRecord(hold, at, reason, shares);
    if (verdict.impossible !== undefined) reportImpossible(this.#host, list.at(-1));
    const charge = chargeFor(terms, verdict.usage, verdict, shares.notes);
    if (charge.cost <= absurdCost) return recordOf(settleText(hold, at, verdict, charge, shares));
    const { id, accountId, keyId } = terms;
    const about = { request_id: id, account_id: accountId, key_id: keyId };
    const fields = { ...about, cost: charge.cost.toString(), usage: verdict.usage };
    this.#host.log.error(fields, 'an absurd cost: the hold is charged');
    const held: Charge = { ...charge, cost: hold.held, own: undefined };
    return recordOf(settleText(hold, at, { ...verdict, estimated: true }, held, shares));
  }
}

/** The ordered usage, by the terms: all of it was held. */
function requestedUsage({ inputTokens, outputTokens, allowance }: Terms): RequestedUsage {
  const { tools, images, seconds, others } = allowance;
  const counted = others === undefined ? {} : { counted: others };
  return { inputTokens, maxOutputTokens: outputTokens, choices: 1, toolCalls: tools, images, seconds, ...counted };
}

/** Throws 402 unless the account has the amount outside of leases, expired grants and used-up windows. */
async function checkCovered(entries: Entries, amount: Money): Promise<void> {
  if (amount === 0n) return;
  const { grants: grantBalances, spent } = await entries.pool();
  const { locked } = lockedAt(grantBalances, spent, entries.at);
  if (entries.mayTake && entries.balance - entries.leased - locked >= amount) return;
  throw notCovered(locked === 0n ? undefined : bindingWindow(grantBalances, spent, entries.at));
}
