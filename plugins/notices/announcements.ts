/** Changes of prices on their way: page by page to the accounts that they concern, so many at once, from where the last run ended. */
import { sql } from 'drizzle-orm';
import type { Host } from '../../core/contract/contract.ts';
import { accountEnds, movedAccounts, type NoticeFields } from '../common/domain/admin/notices.ts';
import { type Plans, plans } from '../common/domain/plans.ts';
import { instant, jsonOf, type Runner } from '../common/kit/sql.ts';
import type { NoticeRows } from './rows.ts';
import type { Observed, Sender } from './sender.ts';

const usedWithinMs = 30 * 86_400_000;
/** Bounds of one run: accounts of a page, pages, and accounts that are sent something, before another page is begun. */
const usualBounds = { page: 500, pages: 20, notified: 1_000 };

/** Concerns accounts that have used a model lately, or those on a plan. */
export interface Announced {
  readonly model?: string;
  readonly plan?: string;
  /** Names the change. */
  readonly period: string;
  readonly fields: NoticeFields;
}

export const priceObservation = (subject: string, { period, fields }: Pick<Announced, 'period' | 'fields'>) => ({
  ...{ kind: 'price_change', subject, period, value: 0n, of: 1n, fields },
});

export class Announcements {
  readonly #host: Host;
  readonly #rows: NoticeRows;
  readonly #sender: Pick<Sender, 'observeAll'>;
  readonly #most: typeof usualBounds;

  constructor(host: Host, rows: NoticeRows, sender: Pick<Sender, 'observeAll'>, most = usualBounds) {
    this.#host = host;
    this.#most = most;
    this.#rows = rows;
    this.#sender = sender;
  }

  /** In the transaction that notes what has changed, so that each change is announced once. */
  async add(changes: readonly Announced[], now: number, runner: Runner): Promise<void> {
    if (changes.length > 0)
      await this.#rows.query(
        sql`insert into ${this.#rows.table('announcements')} (changes, made_at) values (${jsonOf(changes)}, ${instant(now)})`,
        runner,
      );
  }

  /** Whether some accounts are left for the next run. */
  async run(): Promise<boolean> {
    let notified = 0;
    for (let page = 0; page < this.#most.pages && notified < this.#most.notified; page++) {
      const [first] = await this.#rows.query<{ id: string; changes: string; at: number; reached: string }>(
        sql`select id::text as id, changes::text as changes, (extract(epoch from made_at) * 1000)::float8 as at, reached
          from ${this.#rows.table('announcements')} order by made_at, id limit 1`,
      );
      if (first === undefined) return false;
      const { observed, last } = await this.#page(JSON.parse(first.changes) as Announced[], first.reached, first.at);
      await this.#sender.observeAll(observed);
      notified += observed.length;
      const one = sql`where id = ${first.id}::text::uuid`;
      await this.#rows.query(
        last === undefined
          ? sql`delete from ${this.#rows.table('announcements')} ${one}`
          : sql`update ${this.#rows.table('announcements')} set reached = ${last} ${one} and reached = ${first.reached}`,
      );
    }
    return true;
  }

  /** `last` undefined: there are no more accounts. */
  async #page(changes: readonly Announced[], after: string, madeAt: number) {
    const found = (await this.#host.find(accountEnds)?.standing(after, this.#most.page)) ?? [];
    const ids = found.map(({ accountId }) => accountId);
    const models = changes.flatMap(({ model }) => model ?? []);
    const used = await this.#host.find(movedAccounts)?.used(ids, models, madeAt - usedWithinMs);
    const offers = this.#host.find(plans);
    const observed = found.flatMap(({ accountId, ...account }): Observed[] => {
      const plan = planNow(account, offers, this.#host.clock.now());
      const seen = changes.flatMap((change) => {
        if (change.plan !== undefined) return change.plan === plan ? [priceObservation(`plan:${plan}`, change)] : [];
        return used?.get(accountId)?.has(change.model!) ? [priceObservation(change.model!, change)] : [];
      });
      return seen.length === 0 ? [] : [{ accountId, seen }];
    });
    return { observed, last: found.length < this.#most.page ? undefined : ids.at(-1) };
  }
}

function planNow(
  { plan, planEndsAt }: { readonly plan: string; readonly planEndsAt: number | undefined },
  offers: Plans | undefined,
  now: number,
): string {
  if (offers === undefined) return plan;
  return (planEndsAt !== undefined && planEndsAt <= now) || !offers.has(plan) ? offers.default : plan;
}
