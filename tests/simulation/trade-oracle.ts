/** Follows what is bought, redeemed, debited and paid back: each event moves its money once, and no more than was there. */
import type { Entry, MemoryLedger, StoredGrant } from './memory-ledger.ts';
import { costIn } from './memory-records.ts';
import type { ShopTables, Use } from './memory-shop.ts';
import { type Offer, TermsOracle } from './terms-oracle.ts';
import type { Violations } from './violations.ts';

/** What somebody wants to happen to an account, by its reference. */
export type Intent =
  | { readonly kind: 'purchase'; readonly account: string; readonly offer: Offer }
  | { readonly kind: 'debit'; readonly account: string; readonly amount: bigint }
  | { readonly kind: 'payout'; readonly account: string; readonly amount: bigint; readonly of: string }
  | { readonly kind: 'refund'; readonly account: string; readonly amount: bigint; readonly of: string };

export interface CodeView {
  readonly id: string;
  /** Nano-USD that it gives, for how long; or a plan, for so many days or for as long as it is sold for. */
  readonly gift:
    | { readonly kind: 'balance'; readonly amount: bigint; readonly lastsMs: number | undefined }
    | { readonly kind: 'plan'; readonly offer: Offer; readonly days: number | undefined };
  readonly maxUses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  /** Somebody learned that it is revoked. */
  revoked: boolean;
  uses: number;
  readonly users: Set<string>;
  /** Redemptions that were confirmed to somebody, and such that may have worked. */
  reported: number;
  unknown: number;
}

const dayMs = 24 * 3_600_000;

export class TradeOracle {
  readonly intents = new Map<string, Intent>();
  readonly codes = new Map<string, CodeView>();
  /** References of which somebody learned that it is done. */
  readonly acknowledged = new Set<string>();
  readonly terms: TermsOracle;
  readonly #violations: Violations;
  readonly #done = new Set<string>();
  /** Nano-USD by what they are of: payments paid out, requests given back. */
  readonly #givenBack = new Map<string, bigint>();

  constructor(violations: Violations) {
    this.#violations = violations;
    this.terms = new TermsOracle(violations);
  }

  /** The ledger has a row of no call. true: it is of a kind that is watched here. */
  entry(row: Entry, grant: StoredGrant | undefined): boolean {
    if (row.kind === 'CREDIT' && grant!.kind === 'code') this.#gift(row, grant!);
    else if (row.kind === 'CREDIT' && grant!.reference.startsWith('term:')) this.terms.granted(row, grant!);
    else if (row.kind === 'PURCHASE') this.#purchase(row);
    else if (row.kind === 'DEBIT' || row.kind === 'PAYOUT') this.#taken(row, row.reference!);
    else if (row.kind === 'REFUND') this.#taken(row, grant!.reference);
    else return false;
    return true;
  }

  #purchase(row: Entry): void {
    const { reference = '', account, at, amount } = row;
    if (reference.startsWith('renewal:')) {
      this.terms.renewed(row);
      return;
    }
    const intent = this.intents.get(reference.replace(/^plan:/, ''));
    this.#once(reference);
    if (intent?.kind !== 'purchase' || intent.account !== account || intent.offer.price !== -amount) {
      this.#violations.add('M12', reference, `${amount} nano-USD for a plan that no one bought at that price`);
    } else this.terms.entered(account, intent.offer, at, undefined);
  }

  #taken({ account, amount }: Entry, reference: string): void {
    const intent = this.intents.get(reference);
    this.#once(reference);
    if (intent === undefined || intent.kind === 'purchase' || intent.account !== account) {
      this.#violations.add('M12', reference, 'no one wanted this of this account');
      return;
    }
    const right = intent.kind === 'refund' ? intent.amount : -intent.amount;
    if (amount !== right) this.#violations.add('M12', reference, `${amount} nano-USD, ${right} are right`);
    if (intent.kind !== 'debit') this.#givenBack.set(intent.of, (this.#givenBack.get(intent.of) ?? 0n) + intent.amount);
  }

  #once(reference: string): void {
    if (this.#done.has(reference)) this.#violations.add('M12', reference, 'done twice');
    this.#done.add(reference);
  }

  // ---------------------------------------------------------------------------------------------------------- codes

  used({ codeId, number, account, at }: Use): void {
    const code = this.codes.get(codeId)!;
    code.uses += 1;
    const { gift, maxUses, oncePerAccount, expiresAt } = code;
    if (number > maxUses || code.uses > maxUses) this.#violations.add('M12', codeId, `used more than ${maxUses} times`);
    if (oncePerAccount && code.users.has(account)) this.#violations.add('M12', codeId, 'used twice by one account');
    if (code.revoked) this.#violations.add('M12', codeId, 'used although it was revoked');
    if (expiresAt !== undefined && at >= expiresAt) this.#violations.add('M12', codeId, 'used after its end');
    code.users.add(account);
    if (gift.kind === 'balance') return;
    this.terms.entered(account, gift.offer, at, gift.days === undefined ? undefined : gift.days * dayMs);
  }

  /** The row of a code's money; the use itself is committed with it. */
  #gift({ account, amount, at }: Entry, { reference, expiresAt }: StoredGrant): void {
    const [, codeId = '', number] = reference.split(':');
    const gift = this.codes.get(codeId)?.gift;
    this.#once(reference);
    const isRight = gift?.kind === 'balance' && gift.amount === amount;
    const endsAt = gift?.kind === 'balance' && gift.lastsMs !== undefined ? at + gift.lastsMs : undefined;
    if (!isRight || endsAt !== expiresAt)
      this.#violations.add('M12', reference, `${account} was given ${amount} nano-USD until ${expiresAt}`);
    this.#gifts.set(codeId, (this.#gifts.get(codeId) ?? 0) + 1);
    if (Number(number) > this.codes.get(codeId)!.maxUses) this.#violations.add('M12', reference, 'beyond the last use');
  }
  readonly #gifts = new Map<string, number>();

  /** Why a redemption was refused must be so. */
  refused(code: CodeView, why: string | undefined): void {
    if (why === 'code_used' && code.uses < code.maxUses)
      this.#violations.add('M12', code.id, `refused as used after ${code.uses} of ${code.maxUses} uses`);
    if (why === 'code_unknown') this.#violations.add('M12', code.id, 'is unknown');
  }

  // ------------------------------------------------------------------------------------------------------------ end

  finish(ledger: MemoryLedger, tables: ShopTables): void {
    for (const reference of this.acknowledged) {
      const kept = this.intents.get(reference)!.kind === 'purchase' ? `plan:${reference}` : reference;
      if (!this.#done.has(kept)) this.#violations.add('M16', reference, 'was acknowledged and is lost');
    }
    for (const code of this.codes.values()) this.#finishCode(code, tables);
    for (const [of, sum] of this.#givenBack) {
      const call = ledger.callOf(of);
      const paid = ledger.grants.get(of)?.amount ?? (call === undefined ? 0n : costIn(call));
      if (sum > paid) this.#violations.add('M12', of, `${sum} nano-USD were given back of ${paid}`);
    }
    this.terms.finish(ledger, tables);
  }

  #finishCode({ id, gift, uses, reported, unknown }: CodeView, tables: ShopTables): void {
    if (uses !== tables.usesOf(id)) this.#violations.add('M12', id, `${tables.usesOf(id)} uses are kept, not ${uses}`);
    if (uses < reported || uses > reported + unknown)
      this.#violations.add('M12', id, `used ${uses} times, ${reported} were reported and ${unknown} may have been`);
    const given = this.#gifts.get(id) ?? 0;
    if (gift.kind === 'balance' && given !== uses) this.#violations.add('M12', id, `${given} gifts for ${uses} uses`);
  }
}
