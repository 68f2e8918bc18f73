/** People who pay in, buy plans, redeem codes, and operators who make codes, debit and pay back. */

import type { GatewayError } from '../../core/contract/errors.ts';
import type { CodeGift } from '../../plugins/common/domain/admin/shop.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { hashCode } from '../../plugins/shop/code.ts';
import type { Chance } from './chance.ts';
import type { Errands } from './errands.ts';
import type { ShopTables } from './memory-shop.ts';
import type { Oracle } from './oracle.ts';
import type { AccountProfile, Profile } from './profile.ts';
import type { CodeView, Intent } from './trade-oracle.ts';

interface Payment {
  readonly reference: string;
  readonly account: string;
  readonly amount: bigint;
}

/** Things that are remembered to come back to. */
const remembered = 40;
const dayMs = 24 * 3_600_000;

export interface TradeOptions {
  readonly chance: Chance;
  readonly profile: Profile;
  readonly oracle: Oracle;
  readonly errands: Errands;
  readonly tables: ShopTables;
  /** As the ledger has it. */
  readonly balanceOf: (account: string) => bigint;
  /** Requests of an account that have ended, by their ids. */
  readonly endedOf: (account: string) => readonly string[];
}

export class Trade {
  readonly #options: TradeOptions;
  #payments: Payment[] = [];
  #codes: { readonly text: string; readonly view: CodeView }[] = [];
  #count = 0;

  constructor(options: TradeOptions) {
    this.#options = options;
  }

  /** A payment comes in and is reported to some gateway until that has said yes. */
  topUp(account: string): void {
    const { chance, profile, oracle, errands } = this.#options;
    const amount = money(BigInt(chance.between(1, 2 * Number(profile.topUp))));
    const reference = this.#reference('payment');
    oracle.payments.set(reference, amount);
    this.#payments = [...this.#payments.slice(-remembered), { reference, account, amount }];
    errands.run({
      label: 'pay',
      work: ({ ledger }) => ledger.credit(account, amount, { kind: 'top-up', reason: 'simulation', reference }),
      reported: () => void oracle.acknowledged.add(reference),
    });
  }

  /** One thing that happens in a shop. */
  happen(): void {
    const { chance, profile } = this.#options;
    const account = chance.pick(profile.accounts);
    const deeds = [this.#buy, this.#redeem, this.#redeem, this.#makeCodes, this.#debit, this.#payOut, this.#giveBack];
    chance.pick(deeds).call(this, account);
    if (chance.oneIn(10)) this.#revoke();
  }

  #buy({ id, offers }: AccountProfile): void {
    const { offer } = this.#options.chance.pick(offers);
    const reference = this.#reference('purchase');
    this.#insist(reference, { kind: 'purchase', account: id, offer }, ({ shop }) =>
      shop.buy(id, offer.name, reference),
    );
  }

  #debit({ id }: AccountProfile): void {
    const { chance, balanceOf } = this.#options;
    // Now and then all that the operator sees.
    const amount = chance.oneIn(4) && balanceOf(id) > 0n ? money(balanceOf(id)) : this.#amount();
    const entry = { reason: 'simulation', reference: this.#reference('debit') };
    const intent = { kind: 'debit', account: id, amount } as const;
    this.#insist(entry.reference, intent, ({ pool }) => pool.debit(id, amount, entry));
  }

  #payOut(): void {
    const { chance } = this.#options;
    const { reference: of, account, amount: paid } = chance.pick(this.#payments);
    const amount = chance.oneIn(3) ? money(paid) : this.#amount();
    const entry = { reason: 'simulation', reference: this.#reference('payout') };
    const intent = { kind: 'payout', account, amount, of } as const;
    this.#insist(entry.reference, intent, ({ pool }) => pool.refundCredit(account, of, amount, entry));
  }

  #giveBack({ id: account }: AccountProfile): void {
    const { chance, endedOf, oracle } = this.#options;
    const ended = endedOf(account);
    if (ended.length === 0) return;
    const of = chance.pick(ended);
    const cost = oracle.traces.get(of)!.expected ?? 0n;
    const most = Number(cost < 1_000_000_000n ? cost : 1_000_000_000n);
    const amount = money(chance.oneIn(2) && cost > 0n ? cost : BigInt(chance.between(1, most + 1)));
    const entry = { reason: 'simulation', reference: this.#reference('refund') };
    const intent = { kind: 'refund', account, amount, of } as const;
    this.#insist(entry.reference, intent, ({ pool }) => pool.refundRequest(account, of, amount, entry));
  }

  #insist(reference: string, intent: Intent, work: Parameters<Errands['run']>[0]['work']): void {
    const { trade } = this.#options.oracle;
    trade.intents.set(reference, intent);
    const reported = () => void trade.acknowledged.add(reference);
    this.#options.errands.run({ label: intent.kind, work, reported, refused: () => {} });
  }

  // ---------------------------------------------------------------------------------------------------------- codes

  #makeCodes(): void {
    const { chance, errands, profile } = this.#options;
    const { offer } = chance.pick(chance.pick(profile.accounts).offers);
    const gift: CodeGift = chance.oneIn(2)
      ? { kind: 'balance', amount: this.#amount(), lastsMs: chance.oneIn(3) ? chance.between(1, 9) * dayMs : undefined }
      : chance.oneIn(2)
        ? { kind: 'plan', plan: offer.name }
        : { kind: 'days', plan: offer.name, days: chance.between(1, 9) };
    const maxUses = chance.oneIn(2) ? 1 : chance.between(2, 6);
    const wanted = { gift, maxUses, oncePerAccount: chance.oneIn(2), count: chance.between(1, 3), batch: undefined };
    const lifeMs = chance.oneIn(3) ? chance.between(1, 10) * dayMs : undefined;
    errands.run({
      label: 'make codes',
      work: async ({ shopAdmin, host }) => {
        const expiresAt = lifeMs === undefined ? undefined : host.clock.now() + lifeMs;
        return { made: await shopAdmin.createCodes({ ...wanted, expiresAt }), expiresAt };
      },
      reported: ({ made, expiresAt }) => {
        for (const text of made.codes)
          this.#codeMade(text, { gift, maxUses, expiresAt, oncePerAccount: wanted.oncePerAccount });
      },
      // What was made, if it was, no one has read.
      unknown: () => {},
    });
  }

  #codeMade(
    text: string,
    { gift, ...terms }: Pick<CodeView, 'maxUses' | 'oncePerAccount' | 'expiresAt'> & { readonly gift: CodeGift },
  ): void {
    const { oracle, tables } = this.#options;
    const { id } = tables.codes.get(hashCode(text))!;
    const gives = gift.kind === 'balance' ? gift : this.#planGift(gift);
    const view: CodeView = {
      ...terms,
      id,
      gift: gives,
      revoked: false,
      uses: 0,
      users: new Set(),
      reported: 0,
      unknown: 0,
    };
    oracle.trade.codes.set(id, view);
    this.#codes = [...this.#codes.slice(-remembered / 4), { text, view }];
  }

  #planGift(gift: Exclude<CodeGift, { kind: 'balance' }>): CodeView['gift'] {
    const offers = this.#options.profile.accounts.flatMap((account) => account.offers);
    const { offer } = offers.find((each) => each.offer.name === gift.plan)!;
    return { kind: 'plan', offer, days: gift.kind === 'days' ? gift.days : undefined };
  }

  /** Several accounts, or one several times, try the same code at once, wherever they come to. */
  #redeem(): void {
    const { chance, profile } = this.#options;
    if (this.#codes.length === 0) return;
    const { text, view } = chance.pick(this.#codes);
    for (let times = chance.between(1, 4); times > 0; times -= 1) {
      const { gift } = view;
      // A plan's limits are its account's: no one else redeems it.
      const owners = profile.accounts.filter(
        ({ offers }) => gift.kind === 'balance' || offers.some(({ offer }) => offer === gift.offer),
      );
      this.#redeemBy(chance.pick(owners).id, text, view);
    }
  }

  #redeemBy(account: string, text: string, view: CodeView): void {
    const { errands, oracle } = this.#options;
    errands.run({
      label: 'redeem',
      work: ({ shop }) => shop.redeem(account, text.toLowerCase()),
      reported: () => {
        view.reported += 1;
      },
      refused: (error: GatewayError) => oracle.trade.refused(view, error.code),
      unknown: () => {
        view.unknown += 1;
      },
    });
  }

  #revoke(): void {
    if (this.#codes.length === 0) return;
    const { text, view } = this.#options.chance.pick(this.#codes);
    this.#options.errands.run({
      label: 'revoke',
      work: ({ shopAdmin }) => shopAdmin.revokeCodes(text),
      reported: () => {
        view.revoked = true;
      },
    });
  }

  #amount() {
    const { chance, profile } = this.#options;
    return money(BigInt(chance.between(1, Math.ceil(Number(profile.topUp) / chance.pick([1, 5, 50])))));
  }

  #reference(kind: string): string {
    this.#count += 1;
    return `${kind}-${this.#count}`;
  }
}
