/** Follows the plans that accounts buy: how long each runs, and that it brings its money once for each period. */
import type { Entry, MemoryLedger, StoredGrant } from './memory-ledger.ts';
import type { ShopTables } from './memory-shop.ts';
import type { Violations } from './violations.ts';

/** A plan as it is sold; it always ends. */
export interface Offer {
  readonly name: string;
  readonly price: bigint;
  readonly lastsMs: number;
  readonly renew: boolean;
  /** What it brings, and for how long each time; undefined: nothing. */
  readonly grant: { readonly amount: bigint; readonly periodMs: number } | undefined;
}

interface TermView {
  readonly offer: Offer;
  readonly startsAt: number;
  endsAt: number;
  /** Numbers of the periods for which it has brought money. */
  readonly granted: Set<number>;
}

const dayMs = 24 * 3_600_000;
const renewWithinMs = 3 * dayMs;

export class TermsOracle {
  readonly #violations: Violations;
  /** The last of each account. */
  readonly #terms = new Map<string, TermView>();
  readonly #renewals = new Set<string>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** What was bought, or given by a code, begins or prolongs a term. */
  entered(account: string, offer: Offer, at: number, lengthMs: number | undefined): void {
    const last = this.#terms.get(account);
    const isRunning = last !== undefined && last.endsAt > at;
    if (isRunning && last.offer.name === offer.name) {
      last.endsAt += lengthMs ?? offer.lastsMs;
      return;
    }
    const endsAt = at + (lengthMs ?? offer.lastsMs);
    this.#terms.set(account, { offer, startsAt: at, endsAt, granted: new Set() });
  }

  renewed({ reference = '', account, at, amount }: Entry): void {
    const last = this.#terms.get(account);
    const isDue = last !== undefined && last.endsAt <= at && at - last.endsAt <= renewWithinMs;
    if (!isDue || !last.offer.renew || this.#renewals.has(reference) || last.offer.price !== -amount) {
      this.#violations.add('M12', reference, `${amount} nano-USD for a renewal that was not due`);
    } else this.entered(account, last.offer, at, undefined);
    this.#renewals.add(reference);
  }

  granted({ account, at, amount }: Entry, { reference, expiresAt }: StoredGrant): void {
    const last = this.#terms.get(account);
    const grant = last?.offer.grant;
    if (
      last === undefined ||
      grant === undefined ||
      at < last.startsAt ||
      at >= last.endsAt ||
      grant.amount !== amount
    ) {
      this.#violations.add('M12', reference, `${amount} nano-USD by a plan that does not run`);
      return;
    }
    const period = Math.floor((at - last.startsAt) / grant.periodMs);
    const endsAt = Math.min(last.startsAt + (period + 1) * grant.periodMs, last.endsAt);
    if (last.granted.has(period)) this.#violations.add('M12', reference, 'given twice for one period');
    if (expiresAt !== endsAt) this.#violations.add('M12', reference, `ends at ${expiresAt}, ${endsAt} is right`);
    last.granted.add(period);
  }

  /** The database has each account's last term as it must be, and the account on its plan. */
  finish(ledger: MemoryLedger, tables: ShopTables): void {
    for (const [account, { offer, startsAt, endsAt }] of this.#terms) {
      const newest = ledger.terms.newestOf(account);
      const kept = ledger.terms.byAccount.get(account)?.find(({ id }) => id === newest);
      const reported = `${kept?.plan} from ${kept?.startsAt} to ${kept?.endsAt}`;
      if (kept?.plan !== offer.name || kept.startsAt !== startsAt || kept.endsAt !== endsAt)
        this.#violations.add('M12', account, `is on ${reported}, right is ${offer.name} from ${startsAt} to ${endsAt}`);
      const plan = tables.plans.get(account);
      if (plan?.plan !== offer.name || plan.endsAt !== endsAt)
        this.#violations.add(
          'M12',
          account,
          `calls are on ${plan?.plan} until ${plan?.endsAt}, bought was ${reported}`,
        );
    }
  }
}
