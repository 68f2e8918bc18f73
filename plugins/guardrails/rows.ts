/** Verdicts in the database, written together once a second; kept placeholders; and the key of digests and seals. */
import { createHash, createHmac } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Host } from '../../core/contract/contract.ts';
import type { Span } from '../common/domain/admin/pages.ts';
import type { Database } from '../common/domain/database.ts';
import { type FindingFilter, findingVerdicts } from '../common/guardrails/verdicts.ts';
import { instant, jsonOf, rowsOf, tableOf } from '../common/kit/sql.ts';
import { nonceBytes, type Sealing, sealed, unsealed } from './kept/seal.ts';
import { type Said, type Verdict, Verdicts } from './verdicts.ts';

interface Waiting {
  readonly account_id: string;
  readonly request_id: string;
  readonly check_name: string;
  readonly stage: string;
  readonly verdict: Said;
  readonly findings: number;
  readonly milliseconds: number;
  readonly digest: string;
  readonly at: string;
}

/** What sealed placeholders belong to. */
interface Owner {
  readonly accountId: string;
  readonly id: string;
}

interface Made {
  readonly at: number;
  readonly random: Host['random'];
}

export interface HitRate {
  readonly check: string;
  readonly stage: string;
  readonly calls: number;
  /** Calls by verdict. */
  readonly verdicts: Readonly<Record<string, number>>;
  readonly milliseconds: number;
  /** Calls of which a person has said that nothing was to be found. */
  readonly mistaken: number;
}

/** What a check has found in one call, without its text. */
export interface Finding {
  readonly account: string;
  readonly request: string;
  readonly check: string;
  readonly stage: string;
  readonly verdict: string;
  readonly findings: number;
  /** The same for the same text; empty: no place was named. */
  readonly digest: string;
  readonly mark: string;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export type FindingPlace = Pick<Finding, 'account' | 'request' | 'check' | 'stage'>;

/** The oldest are left out while the database is away for long. */
const mostWaiting = 20_000;
const mostTogether = 1_000;
/** Findings that a list of requests looks into. */
const mostListed = 50_000;
/** A request's id and its time of arrival are taken one after the other. */
const slackMs = 1_000;

export class VerdictRows {
  readonly #database: Database;
  readonly #table: SQL;
  readonly #keys: SQL;
  readonly #placeholders: SQL;
  #waiting: Waiting[] = [];
  #key = '';

  constructor(database: Database) {
    this.#database = database;
    this.#table = tableOf(database, 'guardrail_verdicts');
    this.#keys = tableOf(database, 'guardrail_digest_key');
    this.#placeholders = tableOf(database, 'guardrail_placeholders');
  }

  /** Reads the key, or makes the gateway's first one. */
  async open(random: Host['random']): Promise<void> {
    const made = random.bytes(32).toString('hex');
    const { orm } = this.#database;
    await orm.execute(sql`insert into ${this.#keys} (key) values (${made}) on conflict (is_only) do nothing`);
    const [row] = await rowsOf<{ key: string }>(orm, sql`select key from ${this.#keys}`);
    this.#key = row!.key;
  }

  digest(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex').slice(0, 16);
  }

  add(accountId: string, requestId: string, at: number, verdicts: readonly Verdict[]): void {
    for (const { check, stage, said, findings, ms, digest } of verdicts)
      this.#waiting.push({
        ...{ account_id: accountId, request_id: requestId, check_name: check, stage, verdict: said, findings },
        ...{ milliseconds: Math.round(ms), digest, at: new Date(at).toISOString() },
      });
    if (this.#waiting.length > mostWaiting) this.#waiting.splice(0, this.#waiting.length - mostWaiting);
  }

  /** undefined: there is nothing to write. */
  flush(): Promise<void> | undefined {
    return this.#waiting.length === 0 ? undefined : this.#flush();
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const rows = this.#waiting.slice(0, mostTogether);
      await this.#database.orm.execute(sql`
        insert into ${this.#table} (account_id, request_id, check_name, stage, verdict, findings, milliseconds, digest, at)
        select * from json_to_recordset(${jsonOf(rows)}) as r(account_id text, request_id text, check_name text,
          stage text, verdict text, findings integer, milliseconds integer, digest text, at timestamptz)
        on conflict (account_id, request_id, check_name, stage) do nothing`);
      this.#waiting = this.#waiting.filter((row) => !rows.includes(row));
    }
  }

  /** Under each of these ids. */
  async keep(accountId: string, ids: readonly string[], texts: ReadonlyMap<string, string>, made: Made): Promise<void> {
    const rows = ids.map((id) => ({
      ...{ account_id: accountId, answer_id: id, at: new Date(made.at).toISOString() },
      sealed: this.seal(texts, { accountId, id }, made.random),
    }));
    await this.#database.orm.execute(sql`
      insert into ${this.#placeholders} (account_id, answer_id, sealed, at)
      select * from json_to_recordset(${jsonOf(rows)}) as r(account_id text, answer_id text, sealed text, at timestamptz)
      on conflict (account_id, answer_id) do update set sealed = excluded.sealed, at = excluded.at`);
  }

  /** Empty: nothing is kept under this id. */
  async kept(accountId: string, id: string): Promise<ReadonlyMap<string, string>> {
    const [row] = await rowsOf<{ sealed: string }>(
      this.#database.orm,
      sql`select sealed from ${this.#placeholders} where account_id = ${accountId} and answer_id = ${id}`,
    );
    return row === undefined ? new Map() : this.unseal(row.sealed, { accountId, id });
  }

  seal(texts: ReadonlyMap<string, string>, { accountId, id }: Owner, random: Host['random']): string {
    return sealed(texts, random.bytes(nonceBytes), this.#sealing(accountId, id));
  }

  /** Empty: it was sealed for another one. */
  unseal(text: string, { accountId, id }: Owner): ReadonlyMap<string, string> {
    return unsealed(text, this.#sealing(accountId, id));
  }

  #sealing(accountId: string, id: string): Sealing {
    return { key: createHash('sha256').update(`placeholders ${this.#key}`).digest(), about: `${accountId} ${id}` };
  }

  async removeOld(before: number): Promise<void> {
    for (const table of [this.#table, this.#placeholders])
      await this.#database.orm.execute(sql`delete from ${table} where at < ${instant(before)}`);
  }

  /** What checks have said since then, by check and stage. */
  async rates(since: number): Promise<HitRate[]> {
    const rows = await rowsOf<
      Record<'check_name' | 'stage' | 'verdict', string> & Record<'calls' | 'ms' | 'mistaken', number>
    >(
      this.#database.pages ?? this.#database.orm,
      sql`select check_name, stage, verdict, count(*)::float8 as calls, sum(milliseconds)::float8 as ms,
            count(*) filter (where mark <> '')::float8 as mistaken
          from ${this.#table} where at >= ${instant(since)} group by 1, 2, 3 order by 1, 2, 3`,
    );
    const byCheck = Map.groupBy(rows, ({ check_name: check, stage }) => `${check} ${stage}`);
    return [...byCheck.values()].map((list) => {
      const calls = list.reduce((sum, row) => sum + row.calls, 0);
      return {
        check: list[0]!.check_name,
        stage: list[0]!.stage,
        calls,
        verdicts: Object.fromEntries(list.map(({ verdict, calls: number }) => [verdict, number])),
        mistaken: list.reduce((sum, row) => sum + row.mistaken, 0),
        milliseconds: calls === 0 ? 0 : list.reduce((sum, { ms }) => sum + ms, 0) / calls,
      };
    });
  }
  /** What checks have said in these calls, by their ids. */
  async of(
    calls: readonly { readonly requestId: string; readonly accountId: string }[],
  ): Promise<ReadonlyMap<string, string>> {
    const rows = await rowsOf<
      Record<'request' | 'check', string> & Pick<Verdict, 'stage' | 'said' | 'findings' | 'ms' | 'digest'>
    >(
      this.#database.pages ?? this.#database.orm,
      sql`select request_id as request, check_name as "check", stage, verdict as said, findings, milliseconds as ms, digest
          from ${this.#table} as v join json_to_recordset(${jsonOf(calls)}) as called ("requestId" text, "accountId" text)
            on v.account_id = called."accountId" and v.request_id = called."requestId" order by request_id, check_name`,
    );
    const found = new Map<string, Verdicts>();
    for (const { request, ...said } of rows) {
      const verdicts = found.get(request) ?? new Verdicts();
      verdicts.add(said);
      found.set(request, verdicts);
    }
    return new Map([...found].map(([request, { header }]) => [request, header!]));
  }

  /** Each verdict is read by an index of its own, the newest first. */
  found({ check, verdict }: FindingFilter, { from, until }: Span, accountId: string | undefined): SQL {
    const parts = (verdict === undefined ? findingVerdicts : [verdict]).map((one) => {
      const wanted = [
        sql`verdict = ${one} and verdict <> 'passed'`,
        sql`at >= ${instant(from - slackMs)} and at < ${instant(until + slackMs)}`,
        ...(check === undefined ? [] : [sql`check_name = ${check}`]),
        ...(accountId === undefined ? [] : [sql`account_id = ${accountId.toLowerCase()}`]),
      ];
      // Findings in messages of sessions are those of no request.
      return sql`(select case when length(request_id) = 36 then request_id::uuid end as id from ${this.#table}
        where ${sql.join(wanted, sql` and `)} order by at desc limit ${mostListed}::int)`;
    });
    return sql.join(parts, sql` union all `);
  }

  /** The newest since then. */
  async findings(since: number, limit: number): Promise<Finding[]> {
    const rows = await rowsOf<Omit<Finding, 'at'> & { at: number }>(
      this.#database.pages ?? this.#database.orm,
      sql`select account_id as account, request_id as request, check_name as check, stage, verdict, findings, digest, mark,
            (extract(epoch from at) * 1000)::float8 as at
          from ${this.#table} where at >= ${instant(since)} and verdict <> 'passed' order by at desc limit ${limit}`,
    );
    return rows.map((row) => ({ ...row, at: Math.round(row.at) }));
  }

  /** Marks one finding, and all that the same check has found in the same text. How many. */
  async mark({ account, request, check, stage }: FindingPlace, mark: '' | 'false'): Promise<number> {
    const rows = await rowsOf<{ request_id: string }>(
      this.#database.orm,
      sql`with marked as (
            select digest from ${this.#table}
            where account_id = ${account} and request_id = ${request} and check_name = ${check} and stage = ${stage} and verdict <> 'passed'
          )
          update ${this.#table} as v set mark = ${mark} from marked
          where v.verdict <> 'passed' and v.check_name = ${check} and (
            (v.account_id = ${account} and v.request_id = ${request} and v.stage = ${stage})
            or (marked.digest <> '' and v.digest = marked.digest)
          ) returning v.request_id`,
    );
    return rows.length;
  }
}
