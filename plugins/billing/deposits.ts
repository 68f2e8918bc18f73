/** Money for work that is done later: set aside and ended in the transactions of those who do it. No journal knows of it. */
import type { Host } from '../../core/contract.ts';
import { type Money, money } from '../../core/money.ts';
import {
  catalog,
  type Deposit,
  type DepositCharge,
  type DepositEnd,
  type Deposits,
  type Orm,
} from '../../core/vocabulary.ts';
import { share } from './absorbed.ts';
import type { Changes } from './changes.ts';
import { boundOf, type Charge, chargeFor } from './charge.ts';
import { decodeTerms, encodeTerms } from './deposit-terms.ts';
import { absurdCost, notCovered } from './desk.ts';
import type { Entries } from './entries.ts';
import { type Hold, holdRecord, newHold, settleRecord, type Terms, voidRecord } from './hold.ts';
import { attemptNotes, judge, type Verdict } from './outcome.ts';
import { bindingWindow, lockedAt } from './pots.ts';
import type { Departure, EndRecord, SettleRecord } from './records.ts';

const nothing = money(0n);

export class Vault implements Deposits {
  readonly #host: Host;
  readonly #changes: Changes;
  readonly #listeners: ((charge: DepositCharge) => void)[] = [];

  constructor(host: Host, changes: Changes) {
    this.#host = host;
    this.#changes = changes;
  }

  /** What a call on these terms may place. */
  offer(terms: Terms): Deposit {
    const { id, accountId, keyId } = terms;
    return { id, accountId, keyId, place: (work) => this.#place(terms, work) };
  }

  async #place(terms: Terms, work: (orm: Orm) => Promise<void>): Promise<void> {
    const { accountId, plan } = terms;
    const amount = boundOf(terms, terms.outputTokens);
    // What the plan brings is there for the first call of its period already.
    if (plan?.terms.grant !== undefined) await this.#changes.upkeep(accountId, plan);
    await this.#changes.change(accountId, amount, async (entries) => {
      await checkCovered(entries, amount);
      const { deposits } = entries.tables;
      await deposits.post([holdRecord(newHold(terms, amount, undefined), terms.at)]);
      await deposits.add(terms.id, { held: amount, terms: encodeTerms(terms) }, terms.at);
      await work(entries.runner);
    });
  }

  onCharge(told: (charge: DepositCharge) => void): void {
    this.#listeners.push(told);
  }

  async end(accountId: string, id: string, work: (orm: Orm) => Promise<DepositEnd | undefined>): Promise<boolean> {
    const record = await this.#end(accountId, id, work);
    if (record?.kind === 'SETTLE') this.#tell(record);
    return record !== undefined;
  }

  #end(accountId: string, id: string, work: (orm: Orm) => Promise<DepositEnd | undefined>) {
    return this.#changes.change(accountId, nothing, async (entries) => {
      const { deposits } = entries.tables;
      const kept = await deposits.find(id);
      const end = kept === undefined ? undefined : await work(entries.runner);
      if (kept === undefined || end === undefined) return undefined;
      const terms = { ...decodeTerms(kept.terms), id, accountId };
      const entry = this.#host.find(catalog)?.find(terms.model);
      const hold = newHold({ ...terms, entry }, kept.held, undefined);
      const record = this.#recordOf(hold, end);
      await deposits.post([record]);
      await deposits.remove(id);
      return record;
    });
  }

  #tell({ model, attempts, cost, own }: SettleRecord): void {
    const provider = attempts.find(({ bearer }) => bearer === 'client')?.provider;
    const charge = {
      model,
      provider,
      cost: money(BigInt(cost)),
      own: own === undefined ? undefined : money(BigInt(own)),
    };
    for (const listener of this.#listeners) listener(charge);
  }

  #recordOf(hold: Hold, { report, attempts, reason }: DepositEnd): EndRecord {
    const at = this.#host.clock.now();
    const { terms } = hold;
    const list = attempts.filter(({ result }) => result !== 'not_sent');
    const sent = list.map(({ startedAt, ...rest }): Departure => ({ ...rest, at: startedAt }));
    const verdict: Verdict =
      report === undefined
        ? { kind: 'VOID', reason: 'refused' }
        : judge({ attempts: list, sent, report, outcome: 'complete', inputTokens: terms.inputTokens, seenOutput: 0 });
    const shares = share(attemptNotes(list, sent), list, verdict, terms);
    if (verdict.kind === 'VOID') return voidRecord(hold, at, reason, shares);
    const charge = chargeFor(terms, verdict.usage, verdict, shares.notes);
    if (charge.cost <= absurdCost) return settleRecord(hold, at, verdict, charge, shares);
    const fields = { id: terms.id, cost: charge.cost.toString(), usage: verdict.usage };
    this.#host.log.error(fields, 'an absurd cost: the hold is charged');
    const held: Charge = { ...charge, cost: hold.held, own: undefined };
    return settleRecord(hold, at, { ...verdict, estimated: true }, held, shares);
  }
}

/** 402 unless the account has it, apart from what processes have leased, has expired or is beyond its windows. */
async function checkCovered(entries: Entries, amount: Money): Promise<void> {
  if (amount === 0n) return;
  const { pots, spent } = await entries.pool();
  const { locked } = lockedAt(pots, spent, entries.at);
  if (entries.mayTake && entries.balance - entries.leased - locked >= amount) return;
  throw notCovered(locked === 0n ? undefined : bindingWindow(pots, spent, entries.at));
}
