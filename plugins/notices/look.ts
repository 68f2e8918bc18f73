/** The upkeep: looks at accounts with new movements of money, at what ends, and at prices; one process at a time, never in a call's path. */
import { sql } from 'drizzle-orm';
import type { Host } from '../../core/contract/contract.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import {
  accountEnds,
  type MovedAccounts,
  movedAccounts,
  type NoticeObservation,
} from '../common/domain/admin/notices.ts';
import { requestQueries } from '../common/domain/admin/requests.ts';
import { pool } from '../common/domain/ledger.ts';
import { type BudgetWarning, budgetAdmin } from '../common/domain/organizations/budgets.ts';
import { creditLineAdmin } from '../common/domain/organizations/credit-lines.ts';
import { plans } from '../common/domain/plans.ts';
import { inMs, instant, millisecondsOf } from '../common/kit/sql.ts';
import {
  budgetShare,
  capSharesOf,
  creditOverdue,
  keyAge,
  keyExpiry,
  lowBalance,
  planEnd,
  windowSharesOf,
} from './observations.ts';
import { lookAtPrices, type PriceParts } from './price-look.ts';
import type { NoticeRows } from './rows.ts';
import type { Observed, Sender } from './sender.ts';

const movementsAtOnce = 5_000;
/** What is behind them is read by the next look. */
const mostBatches = 20;
const accountsAtOnce = 200;
const endsEveryMs = 3_600_000;
const endsAtOnce = 500;
/** A charge may be committed after one with a higher number, and some time after its request was counted. */
const looksAfterTraffic = 3;

export class Look {
  readonly #host: Host;
  readonly #rows: NoticeRows;
  readonly #sender: Sender;
  readonly #prices: PriceParts;
  readonly #everyMs: () => number;
  readonly #holder: string;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #written = 0;
  #left = 0;
  #isHolder = false;
  /** The last movement that the look before has read. */
  #previous: bigint | undefined;

  constructor(prices: PriceParts, everyMs: () => number) {
    const { host, rows, sender } = prices;
    this.#host = host;
    this.#rows = rows;
    this.#sender = sender;
    this.#prices = prices;
    this.#everyMs = everyMs;
    this.#holder = host.random.bytes(12).toString('hex');
  }

  /** Money of an account may have moved outside of calls. */
  changed(): void {
    this.#left = looksAfterTraffic + 1;
  }

  /** Call it every so often. undefined: nothing can have changed, and no statement is sent. */
  whenDue(): Promise<void> | undefined {
    const now = this.#host.clock.monotonic();
    if (now - this.#lookedAt < this.#everyMs()) return undefined;
    this.#lookedAt = now;
    const written = this.#host.find(requestQueries)?.written() ?? 0;
    this.#left = written === this.#written ? this.#left - 1 : looksAfterTraffic;
    this.#written = written;
    if (this.#left <= 0 && now - this.#triedAt < endsEveryMs) return undefined;
    return this.look();
  }

  async look(): Promise<void> {
    this.#triedAt = this.#host.clock.monotonic();
    const taken = await this.#take();
    if (taken === undefined) return;
    await this.#lookAtMoved(taken.movement);
    if (taken.endsMs >= endsEveryMs) {
      await this.#lookAtEnds();
      await this.#lookAtCredit();
      await lookAtPrices(this.#prices);
      const at = instant(this.#host.clock.now());
      await this.#rows.query(sql`update ${this.#rows.table('look')} set ends_at = ${at}`);
    }
    // The rest is for the next look, also without traffic.
    if (await this.#prices.announcements.run()) this.#left = Math.max(this.#left, looksAfterTraffic);
  }

  /** Another process can look at once. */
  async release(): Promise<void> {
    if (!this.#isHolder) return;
    this.#isHolder = false;
    await this.#rows.query(sql`update ${this.#rows.table('look')} set holder = null, held_until = '-infinity'
      where holder = ${this.#holder}`);
  }

  /** undefined: another process looks. */
  async #take() {
    const now = this.#host.clock.now();
    const [row] = await this.#rows.query<{ movement: string | null; ends: number | null }>(
      sql`update ${this.#rows.table('look')} set holder = ${this.#holder}, held_until = ${inMs(3 * this.#everyMs())}
        where holder = ${this.#holder} or held_until <= now()
        returning movement::text as movement,
          case when ends_at > '-infinity' then ${millisecondsOf(sql`ends_at`)} end as ends`,
    );
    this.#isHolder = row !== undefined;
    if (row === undefined) return undefined;
    return {
      movement: row.movement === null ? undefined : BigInt(row.movement),
      endsMs: row.ends === null ? Number.POSITIVE_INFINITY : now - row.ends,
    };
  }

  async #lookAtMoved(from: bigint | undefined): Promise<void> {
    const moved = this.#host.find(movedAccounts);
    if (moved === undefined) return;
    if (from === undefined) return this.#store(await moved.latest());
    let after = from;
    for (let batch = 0; batch < mostBatches; batch++) {
      const { accountIds, upTo, isFull } = await moved.behind(after, movementsAtOnce);
      for (let at = 0; at < accountIds.length; at += accountsAtOnce)
        await this.#lookAtAccounts(moved, accountIds.slice(at, at + accountsAtOnce));
      if (isFull) {
        after = upTo;
        await this.#store(after);
        continue;
      }
      const kept = this.#previous !== undefined && this.#previous > after ? this.#previous : after;
      if (kept > from) await this.#store(kept);
      this.#previous = upTo;
      return;
    }
  }

  async #store(movement: bigint): Promise<void> {
    await this.#rows.query(
      sql`update ${this.#rows.table('look')} set movement = ${String(movement)}::text::bigint where holder = ${this.#holder}`,
    );
  }

  async #lookAtAccounts(moved: MovedAccounts, accountIds: readonly string[]): Promise<void> {
    const chosen = await this.#sender.chosen(accountIds);
    const wanting = (kind: string) =>
      accountIds.filter((accountId) => (chosen.get(accountId)!.get(kind)?.channels.length ?? 0) > 0);
    const seen: Observed[] = [];
    const add = (accountId: string, ...some: NoticeObservation[]) => void seen.push({ accountId, seen: some });
    const balances = await moved.balances(wanting('low_balance'));
    for (const [accountId, balance] of balances) add(accountId, lowBalance(balance));
    seen.push(...(await this.#capShares(wanting('cap_share'))));
    const warned = await this.#budgets(wanting('budget_share'));
    for (const [accountId, warnings] of warned) add(accountId, ...warnings.map(budgetShare));
    for (const accountId of this.#hasWindows() ? wanting('window_share') : []) {
      const view = await this.#host.find(pool)?.view(accountId);
      add(accountId, ...windowSharesOf(view?.windows ?? []));
    }
    const byAccount = Map.groupBy(seen, ({ accountId }) => accountId);
    const all = [...byAccount].map(([accountId, parts]) => ({ accountId, seen: parts.flatMap((part) => part.seen) }));
    await this.#sender.observeAll(all, chosen);
  }

  async #budgets(accountIds: readonly string[]): Promise<ReadonlyMap<string, readonly BudgetWarning[]>> {
    const budgets = this.#host.find(budgetAdmin);
    return budgets === undefined || accountIds.length === 0 ? new Map() : budgets.warnings(accountIds);
  }

  #hasWindows(): boolean {
    return (
      this.#host
        .find(plans)
        ?.list()
        .some(({ windows }) => Object.keys(windows ?? {}).length > 0) ?? false
    );
  }

  async #capShares(accountIds: readonly string[]): Promise<Observed[]> {
    const [ends, money] = [this.#host.find(accountEnds), this.#host.find(ledgerQueries)];
    if (ends === undefined || money === undefined || accountIds.length === 0) return [];
    const keys = await ends.cappedKeys(accountIds);
    const found: Observed[] = [];
    for (const [accountId, ofAccount] of Map.groupBy(keys, (key) => key.accountId)) {
      const zone = await this.#host.find(budgetAdmin)?.zone(accountId);
      const seen = await capSharesOf(money, accountId, ofAccount, { now: this.#host.clock.now(), zone });
      found.push({ accountId, seen });
    }
    return found;
  }

  /** Months of credit lines that were not paid in time. */
  async #lookAtCredit(): Promise<void> {
    const lines = this.#host.find(creditLineAdmin);
    for (let after = ''; lines !== undefined; ) {
      const page = await lines.unpaid(after, accountsAtOnce);
      const seen = page.map(({ accountId, months }) => ({
        accountId,
        seen: months.filter(({ state }) => state === 'overdue').map(creditOverdue),
      }));
      await this.#sender.observeAll(seen.filter(({ seen: some }) => some.length > 0));
      if (page.length < accountsAtOnce) return;
      after = page.at(-1)!.accountId;
    }
  }

  async #lookAtEnds(): Promise<void> {
    const ends = this.#host.find(accountEnds);
    if (ends === undefined) return;
    const now = this.#host.clock.now();
    const offers = this.#host.find(plans);
    const [keysMs, plansMs] = [await this.#sender.mostDays('key_expiry'), await this.#sender.mostDays('plan_end')];
    await this.#eachAccount(keysMs, ends.endingKeys, (key) => keyExpiry(key, now));
    await this.#eachAccount(plansMs, ends.endingPlans, (plan) =>
      planEnd(plan, offers?.offer(plan.plan)?.renew ?? false, now),
    );
    await this.#eachAccount(await this.#sender.leastDays('key_age'), ends.oldKeys, (key) => keyAge(key, now));
  }

  /** Page by page, each account in one page. `daysMs` undefined: no account wants it. */
  async #eachAccount<Row extends { readonly accountId: string }>(
    daysMs: number | undefined,
    read: (daysMs: number, after: string, most: number) => Promise<readonly Row[]>,
    observe: (row: Row) => NoticeObservation,
  ): Promise<void> {
    if (daysMs === undefined) return;
    for (let after = ''; ; ) {
      const page = await read(daysMs, after, endsAtOnce);
      const byAccount = [...Map.groupBy(page, ({ accountId }) => accountId)];
      const isFull = page.length === endsAtOnce;
      // The rest of the last account is on the next page.
      if (isFull && byAccount.length > 1) byAccount.pop();
      await this.#sender.observeAll(byAccount.map(([accountId, rows]) => ({ accountId, seen: rows.map(observe) })));
      const last = byAccount.at(-1);
      if (!isFull || last === undefined) return;
      after = last[0];
    }
  }
}
