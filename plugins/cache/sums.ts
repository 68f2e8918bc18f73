/** What the cache has answered and saved, by day, account, model and operation. */
import { sql } from 'drizzle-orm';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { CacheReport, CacheSums } from '../common/domain/admin/cache.ts';
import type { Database } from '../common/domain/database.ts';
import { type Money, money, zero } from '../common/domain/money.ts';
import { rowsOf, tableOf } from '../common/kit/sql.ts';

type Kind = 'hits' | 'similar' | 'misses';

interface Row {
  readonly accountId: string;
  readonly day: string;
  readonly model: string;
  readonly operation: string;
  hits: number;
  similar: number;
  misses: number;
  saved: Money;
}

/** Rows that wait at most; further ones are counted under no model. */
const mostWaiting = 10_000;
const keptDays = 400;
const dayMs = 86_400_000;

/** Counts in memory and writes now and then: a process that dies loses the last seconds of them, and no money. */
export class Sums implements CacheReport {
  readonly #database: Database | undefined;
  readonly #clock: Clock;
  #waiting = new Map<string, Row>();

  /** Without a database the sums are those of this process since its start. */
  constructor(database: Database | undefined, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  count(kind: Kind, of: { accountId: string; model: string; operation: string }, saved: Money = zero): void {
    const row = this.#rowOf(of.accountId, of.model, of.operation);
    row[kind] += 1;
    row.saved = money(row.saved + saved);
  }

  #rowOf(accountId: string, model: string, operation: string): Row {
    const day = dayOf(this.#clock.now());
    const id = JSON.stringify([accountId, day, model, operation]);
    const known = this.#waiting.get(id);
    if (known !== undefined) return known;
    if (this.#waiting.size >= mostWaiting && model !== '') return this.#rowOf(accountId, '', operation);
    const row: Row = { accountId, day, model, operation, hits: 0, similar: 0, misses: 0, saved: zero };
    this.#waiting.set(id, row);
    return row;
  }

  /** Writes what has been counted; what cannot be written is counted on. */
  flush(): Promise<void> | undefined {
    return this.#database === undefined || this.#waiting.size === 0 ? undefined : this.#write(this.#database);
  }

  async #write(database: Database): Promise<void> {
    const rows = this.#waiting;
    this.#waiting = new Map();
    const list = [...rows.values()].map((row) => ({ ...row, saved: `${row.saved}` }));
    try {
      await database.orm.execute(sql`
        insert into ${tableOf(database, 'cache_sums')} as sums (account_id, day, model, operation, hits, similar_hits, misses, saved)
        select one->>'accountId', (one->>'day')::date, one->>'model', one->>'operation', (one->>'hits')::bigint,
          (one->>'similar')::bigint, (one->>'misses')::bigint, (one->>'saved')::numeric
        from json_array_elements(${JSON.stringify(list).replaceAll('\\u0000', '\\ufffd')}::text::json) as one
        on conflict (account_id, day, model, operation) do update set hits = sums.hits + excluded.hits,
          similar_hits = sums.similar_hits + excluded.similar_hits, misses = sums.misses + excluded.misses,
          saved = sums.saved + excluded.saved`);
    } catch (error) {
      for (const row of this.#waiting.values()) add(rows, row);
      this.#waiting = rows;
      throw error;
    }
  }

  prune(): Promise<unknown> | undefined {
    if (this.#database === undefined) return undefined;
    const before = dayOf(this.#clock.now() - keptDays * dayMs);
    return this.#database.orm.execute(
      sql`delete from ${tableOf(this.#database, 'cache_sums')} where day < ${before}::date`,
    );
  }

  async sums(options: Parameters<CacheReport['sums']>[0]): Promise<readonly CacheSums[]> {
    if (this.#database === undefined) return this.#inMemory(options.accountId);
    await this.flush();
    return this.#stored(this.#database, options);
  }

  async #stored(database: Database, { from, until, accountId }: Parameters<CacheReport['sums']>[0]) {
    const rows = await rowsOf<Record<'model' | 'operation' | 'hits' | 'similar' | 'misses' | 'saved', string>>(
      database.pages ?? database.orm,
      sql`select model, operation, sum(hits)::text as hits, sum(similar_hits)::text as similar, sum(misses)::text as misses,
            sum(saved)::text as saved
          from ${tableOf(database, 'cache_sums')}
          where day >= ${dayOf(from)}::date and day <= ${dayOf(until)}::date
            and (${accountId ?? null}::text is null or account_id = ${accountId ?? null}::text)
          group by model, operation order by sum(saved) desc, sum(hits) desc, model, operation`,
    );
    return rows.map(({ model, operation, hits, similar, misses, saved }) => ({
      ...{ model, operation },
      ...{ hits: Number(hits), similar: Number(similar), misses: Number(misses) },
      saved: money(BigInt(saved)),
    }));
  }

  #inMemory(accountId: string | undefined): CacheSums[] {
    const all = new Map<string, Row>();
    for (const row of this.#waiting.values())
      if (accountId === undefined || row.accountId === accountId) add(all, { ...row, accountId: '', day: '' });
    return [...all.values()].map(({ accountId: _account, day: _day, ...sums }) => sums);
  }
}

function add(rows: Map<string, Row>, { accountId, day, model, operation, ...counts }: Row): void {
  const id = JSON.stringify([accountId, day, model, operation]);
  const known = rows.get(id);
  if (known === undefined) return void rows.set(id, { accountId, day, model, operation, ...counts });
  known.hits += counts.hits;
  known.similar += counts.similar;
  known.misses += counts.misses;
  known.saved = money(known.saved + counts.saved);
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
