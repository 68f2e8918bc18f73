/** Operators who let accounts use money before they pay, and what follows from it: brought once, never beyond what was allowed, paid as far as payments go. */
import { creditKind } from '../../plugins/billing/grants/credit-rows.ts';
import { monthAt, monthOf } from '../../plugins/billing/grants/months.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { creditLineAdmin } from '../../plugins/common/domain/organizations/credit-lines.ts';
import type { Chance } from './chance.ts';
import { Errands } from './errands.ts';
import { beginOf } from './local-periods.ts';
import { creditGrantOf } from './memory-credit.ts';
import type { Entry, MemoryLedger, StoredGrant } from './memory-ledger.ts';
import type { Node } from './node.ts';
import type { Profile } from './profile.ts';
import type { Schedule } from './schedule.ts';
import type { Violations } from './violations.ts';

const decideMeanMs = 300;
const monthMeanMs = 1_000;

export interface CreditOptions {
  readonly chance: Chance;
  readonly profile: Profile;
  readonly schedule: Schedule;
  readonly nodes: readonly Node[];
}

export class Credit {
  readonly #options: CreditOptions;
  readonly #errands: Errands;

  constructor(options: CreditOptions) {
    this.#options = options;
    this.#errands = new Errands(options.schedule, options.chance, options.nodes);
  }

  get isQuiet(): boolean {
    return this.#errands.open === 0;
  }

  begin(again: (label: string, meanMs: number, work: () => void) => void): void {
    for (const { id } of this.#options.profile.accounts) this.#decide(id);
    again('credit line', decideMeanMs, () =>
      this.#decide(this.#options.chance.pick(this.#options.profile.accounts).id),
    );
    again('end of a month', monthMeanMs, () => this.#endMonth());
  }

  /** A moment before it, for everybody at once. */
  #endMonth(): void {
    const { nodes, schedule, chance, profile } = this.#options;
    const now = Math.floor(nodes[0]!.wallMs + schedule.now);
    const { zone } = profile.billing.statements!;
    const leap = monthOf(monthAt(now, zone), zone).until - now - chance.between(0, 200);
    for (const node of nodes) node.wallMs += leap;
  }

  #decide(account: string): void {
    const { chance, profile } = this.#options;
    const amount = money(chance.oneIn(4) ? 0n : BigInt(chance.between(1, 2 * Number(profile.topUp))));
    this.#errands.run({
      label: 'credit line',
      work: ({ host }) => host.get(creditLineAdmin).set(account, amount, 'simulation'),
      reported: () => {},
    });
  }
}

/** Follows grants of credit lines and what is paid of them, by the rows alone. */
export class CreditOracle {
  /** Months are those of its calendar. */
  zone = 'UTC';
  readonly #ledger: MemoryLedger;
  readonly #violations: Violations;
  /** Taken for what is due, by the reference of the payment or the refund. */
  readonly #taken = new Map<string, bigint>();

  constructor(ledger: MemoryLedger, violations: Violations) {
    this.#ledger = ledger;
    this.#violations = violations;
  }

  /** true: it is of a credit line. */
  entry(row: Entry, grant: StoredGrant | undefined): boolean {
    if (grant?.kind === 'top-up' && grant.expiresAt === undefined && row.kind === 'CREDIT') this.#paid(row, grant);
    if (grant?.kind !== creditKind || row.kind === 'EXPIRE') return false;
    if (row.kind === 'CREDIT') this.#brought(row, grant);
    else if (row.kind === 'PAYOUT') this.#took(row, grant);
    else this.#violations.add('M12', grant.reference, `a ${row.kind} of a credit line`);
    return true;
  }

  /** When it really ends, which a decision may have brought forward. */
  endOf(grant: StoredGrant): number | undefined {
    return grant.kind === creditKind
      ? this.#ledger.grantBalances.byGrant.get(grant.id)!.grant.expiresAt
      : grant.expiresAt;
  }

  #grantsOf(account: string) {
    const grants = [...this.#ledger.grants.values()];
    return grants.filter((grant) => grant.kind === creditKind && grant.account === account);
  }

  #brought({ account, at }: Entry, given: StoredGrant): void {
    const month = given.reference.split(':').slice(0, -1).join(':');
    const ends = given.expiresAt!;
    const own = beginOf('month', this.zone, at);
    if (beginOf('month', this.zone, ends) !== ends || beginOf('month', this.zone, ends - 1) !== own)
      this.#violations.add(
        'M12',
        given.reference,
        `ends at ${ends}, which is not the end of that month in ${this.zone}`,
      );
    let counted = 0n;
    for (const grant of this.#grantsOf(account)) {
      if (!grant.reference.startsWith(`${month}:`)) continue;
      const { used, paid, amount, expiresAt } = creditGrantOf(this.#ledger, grant);
      counted += (expiresAt > at ? amount : used) - paid;
    }
    const allowed = this.#ledger.terms.lines.get(account)?.at(-1)?.amount ?? 0n;
    if (counted > allowed)
      this.#violations.add('M12', given.reference, `brings ${counted} nano-USD in a month of ${allowed}`);
  }

  #took({ account, amount, reference = '' }: Entry, grant: StoredGrant): void {
    const { used, paid } = creditGrantOf(this.#ledger, grant);
    if (paid > used) this.#violations.add('M12', grant.reference, `${paid} nano-USD were paid of ${used}`);
    const [, by = ''] = /:(?:paid|refunded):(.*)$/.exec(reference) ?? [];
    const source = this.#ledger.grants.get(by);
    const taken = (this.#taken.get(by) ?? 0n) - amount;
    this.#taken.set(by, taken);
    if (source?.account !== account || taken > source.amount)
      this.#violations.add('M12', reference, `${taken} nano-USD were taken of what ${by} has brought`);
  }

  /** Nothing stays due that a payment could have covered. */
  #paid({ account, at, amount }: Entry, { reference }: StoredGrant): void {
    const rows = this.#ledger.rows.filter(
      (row) => row.kind === 'PAYOUT' && row.reference?.endsWith(`:paid:${reference}`),
    );
    if (rows.reduce((sum, row) => sum - row.amount, 0n) >= amount) return;
    const due = this.#grantsOf(account)
      .filter(({ expiresAt }) => expiresAt! <= at)
      .map((grant) => creditGrantOf(this.#ledger, grant))
      .reduce((sum, { used, paid }) => sum + used - paid, 0n);
    const { balance = 0n, held = 0n } = this.#ledger.accounts.get(account) ?? {};
    let wallet = balance + held;
    for (const { account: of, grant } of this.#ledger.grantBalances.byGrant.values())
      if (of === account) wallet -= grant.remaining;
    if (due > 0n && wallet > 0n)
      this.#violations.add('M12', reference, `${due} nano-USD stay due beside ${wallet} that could pay them`);
  }
}
