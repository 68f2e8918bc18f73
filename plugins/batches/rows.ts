/** The rows of batches: created, found, listed, cancelled, and taken by workers. */
import { type SQL, sql } from 'drizzle-orm';
import type { BatchFigures } from '../common/domain/admin/stored-work.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { givenBack, Leases, nextDueMs } from '../common/kit/jobs/leases.ts';
import {
  column,
  columnsOf,
  countColumn,
  inMs,
  jsonColumn,
  jsonOf,
  optional,
  rowsOf,
  tableOf,
  timeColumn,
  usdColumn,
} from '../common/kit/sql.ts';
import type { Batch, BatchDialect, BatchUsage, Counts, InputError, Outcome } from './batch.ts';
import { type VendorChoice, vendorChoice } from './vendor/rows.ts';

export interface NewBatch
  extends Pick<
    Batch,
    | 'id'
    | 'accountId'
    | 'keyId'
    | 'requestId'
    | 'trace'
    | 'remoteAddress'
    | 'dialect'
    | 'endpoint'
    | 'headers'
    | 'inputFile'
  > {
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly windowMs: number;
  readonly outputLifetimeMs: number | undefined;
}

export interface Page {
  readonly limit: number;
  readonly after: string | undefined;
}

/** `stops`: it was cancelled, or has expired. */
export interface Renewed {
  readonly stops: boolean;
  readonly cancelled: boolean;
}

const isOpen = sql`state <> 'ended'`;
const stored = {
  id: column<string>('id'),
  accountId: column<string>('account_id'),
  keyId: column<string>('key_id'),
  requestId: optional(column<string>('request_id')),
  trace: column<string | null>('trace'),
  remoteAddress: column<string>('remote_address'),
  dialect: column<BatchDialect>('dialect'),
  endpoint: column<string>('endpoint'),
  headers: jsonColumn<Record<string, string>>('headers'),
  inputFile: column<string>('input_file'),
  metadata: optional(jsonColumn<Record<string, string>>('metadata')),
  state: column<Batch['state']>('state'),
  outcome: optional(column<Outcome>('outcome')),
  errors: jsonColumn<InputError[]>(sql`coalesce(errors, '[]')`),
  total: column<number>('total'),
  usage: optional(jsonColumn<BatchUsage>('usage')),
  outputFile: optional(column<string>('output_file')),
  errorFile: optional(column<string>('error_file')),
  outputLifetimeMs: optional(countColumn('output_lifetime_ms')),
  createdAt: timeColumn('created_at'),
  startedAt: optional(timeColumn('started_at')),
  finishingAt: optional(timeColumn('finishing_at')),
  endedAt: optional(timeColumn('ended_at')),
  cancelAt: optional(timeColumn('cancel_at')),
  expiresAt: timeColumn('expires_at'),
};
const none: Counts = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };

export class BatchRows {
  readonly #orm: Orm;
  readonly #database: Database;
  readonly #batches: SQL;
  readonly #lines: SQL;
  readonly #leases: Leases<unknown>;

  constructor(database: Database) {
    this.#database = database;
    this.#orm = database.orm;
    this.#batches = tableOf(database, 'batches');
    this.#lines = tableOf(database, 'batch_lines');
    this.#leases = new Leases({ runner: this.#orm, table: this.#batches, columns: sql`taken.id`, open: isOpen });
  }

  /** false: the account has as many open batches as it may have. */
  async create(batch: NewBatch, mostOpen: number): Promise<boolean> {
    return this.#orm.transaction(async (transaction) => {
      await transaction.execute(
        sql`select pg_advisory_xact_lock(hashtextextended(${`batches of ${batch.accountId}`}, 0))`,
      );
      const rows = await rowsOf(
        transaction,
        sql`insert into ${this.#batches} (id, account_id, key_id, request_id, trace, remote_address, dialect, endpoint, headers, input_file,
            metadata, state, expires_at, output_lifetime_ms)
          select ${batch.id}, ${batch.accountId}, ${batch.keyId}, ${batch.requestId ?? null}::text, ${batch.trace ?? null}::text, ${batch.remoteAddress}, ${batch.dialect}, ${batch.endpoint},
            ${jsonOf(batch.headers)}, ${batch.inputFile}, ${jsonOf(batch.metadata)}, 'validating', ${inMs(batch.windowMs)},
            ${batch.outputLifetimeMs ?? null}::bigint
          where (select count(*) from ${this.#batches} where account_id = ${batch.accountId} and state <> 'ended') < ${mostOpen}::int
          returning id`,
      );
      return rows.length === 1;
    });
  }

  /** Open batches of all accounts, and the age of the oldest. */
  async figures(): Promise<BatchFigures> {
    const [row] = await rowsOf<{ open: number; oldest_ms: number }>(
      this.#orm,
      sql`select count(*)::int as open, coalesce(extract(epoch from now() - min(created_at)) * 1000, 0)::float8 as oldest_ms
        from ${this.#batches} where state <> 'ended'`,
    );
    return { open: row!.open, oldestMs: row!.oldest_ms };
  }

  async find(accountId: string, id: string): Promise<Batch | undefined> {
    const [batch] = await this.#select(sql`account_id = ${accountId} and id = ${id}`, sql``);
    return batch;
  }

  /** Newest first; one more than the page has, if there is one. `dialect`: of this one alone. */
  list(accountId: string, dialect: BatchDialect | undefined, { limit, after }: Page): Promise<Batch[]> {
    const behind =
      after === undefined
        ? sql``
        : sql`and (created_at, id) < (select created_at, id from ${this.#batches} where account_id = ${accountId} and id = ${after})`;
    const ofDialect = dialect === undefined ? sql`` : sql`and dialect = ${dialect}`;
    const ending = sql`order by created_at desc, id desc limit ${limit + 1}::int`;
    return this.#select(sql`account_id = ${accountId} ${ofDialect} ${behind}`, ending);
  }

  /** Lines that run are finished, others are not begun. Once: a second time changes nothing. */
  async cancel(accountId: string, id: string): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#batches} set cancel_at = coalesce(cancel_at, now()), due_at = now()
        where account_id = ${accountId} and id = ${id} and state <> 'ended'`,
    );
  }

  async remove(accountId: string, id: string): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`delete from ${this.#batches} where account_id = ${accountId} and id = ${id} and state = 'ended' returning id`,
    );
    return rows.length === 1;
  }

  async removeOld(ageMs: number): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#batches} where state = 'ended' and ended_at < ${inMs(-ageMs)}`);
  }

  /** Milliseconds until a batch may be taken; undefined: there is none that is open. */
  nextDueMs(): Promise<number | undefined> {
    return nextDueMs(this.#orm, this.#batches, isOpen);
  }

  /** Takes due batches that no worker holds. */
  async take(token: string, limit: number, leaseMs: number): Promise<Batch[]> {
    const taken = await this.#leases.take(token, limit, leaseMs);
    if (taken.length === 0) return [];
    return this.#select(sql`lease = ${token} and ${isOpen}`, sql``);
  }

  /** undefined: another worker holds it now. */
  renew(id: string, token: string, leaseMs: number): Promise<Renewed | undefined> {
    const columns = sql`(cancel_at is not null or expires_at <= now()) as stops, cancel_at is not null as cancelled`;
    return this.#leases.renew(id, token, leaseMs, columns);
  }

  /** `hasStopped`: the worker knows that it is cancelled or has expired, and waits for outstanding results. */
  async release(id: string, token: string, dueMs: number, hasStopped = false): Promise<void> {
    const due = sql`case when ${hasStopped}::boolean then ${inMs(dueMs)}
      when cancel_at is null then least(${inMs(dueMs)}, expires_at) else now() end`;
    await this.#leases.change(id, token, sql`${givenBack}, due_at = ${due}`);
  }

  /** Its input was read. */
  /** `vendor`: makes it by a batch of its own. */
  async begin(id: string, token: string, total: number, vendor: VendorChoice | undefined): Promise<void> {
    await this.#orm.transaction(async (transaction) => {
      const change = sql`state = 'running', total = ${total}::int, started_at = now()`;
      const isBegun = await this.#leases.change(id, token, change, transaction);
      if (isBegun && vendor !== undefined) await transaction.execute(vendorChoice(this.#database, id, vendor));
    });
  }

  async fail(id: string, token: string, errors: readonly InputError[]): Promise<boolean> {
    return this.#leases.change(
      id,
      token,
      sql`state = 'ended', outcome = 'failed', errors = ${jsonOf(errors)}, counts = ${jsonOf(none)}, cost = 0, ended_at = now(), ${givenBack}`,
    );
  }

  /** Gives the files that are to be written their ids, once. */
  async finish(
    id: string,
    token: string,
    files: { readonly output: string; readonly error: string },
  ): Promise<boolean> {
    return this.#leases.change(
      id,
      token,
      sql`state = 'finishing', finishing_at = now(), output_file = ${files.output}, error_file = ${files.error}`,
    );
  }

  /** Absent files were empty. The lines are deleted in the same transaction. */
  async end(
    id: string,
    token: string,
    ended: {
      readonly counts: Counts;
      readonly usage: BatchUsage;
      readonly output: string | undefined;
      readonly error: string | undefined;
    },
  ): Promise<void> {
    await this.#orm.transaction(async (transaction) => {
      const rows = await rowsOf(
        transaction,
        sql`update ${this.#batches} set state = 'ended', ended_at = now(), counts = ${jsonOf(ended.counts)},
            usage = ${JSON.stringify(ended.usage)},
            cost = ${this.#costOfLines(sql`${id}`)},
            outcome = case when cancel_at is not null and ${ended.counts.cancelled}::int > 0 then 'cancelled'
              when ${ended.counts.expired}::int > 0 then 'expired' when cancel_at is not null then 'cancelled' else 'completed' end,
            output_file = ${ended.output ?? null}, error_file = ${ended.error ?? null}, ${givenBack}
          where id = ${id} and lease = ${token} and state = 'finishing' returning id`,
      );
      if (rows.length === 1) await transaction.execute(sql`delete from ${this.#lines} where batch_id = ${id}`);
    });
  }

  /** Charges of the finished lines; null: one of them is unknown. */
  #costOfLines(id: SQL): SQL {
    return sql`(select case when bool_and(cost is not null) is not false then coalesce(sum(cost), 0)::bigint end
      from ${this.#lines} as lines where lines.batch_id = ${id} and lines.state = 'done')`;
  }

  async #select(which: SQL, ending: SQL): Promise<Batch[]> {
    const rows = await rowsOf<never>(
      this.#orm,
      sql`select ${this.#columns.select} from ${this.#batches} as batches where ${which} ${ending}`,
    );
    return rows.map(this.#columns.read);
  }

  get #columns() {
    const lines = (condition: SQL) => sql`from ${this.#lines} as lines
      where lines.account_id = batches.account_id and lines.batch_id = batches.id ${condition}`;
    const counted = sql`coalesce(counts::text, (select json_build_object(
      'succeeded', count(*) filter (where result = 'succeeded'), 'errored', count(*) filter (where result = 'errored'),
      'cancelled', count(*) filter (where result = 'cancelled'), 'expired', count(*) filter (where result = 'expired'))::text
      ${lines(sql``)}))`;
    return columnsOf({
      ...stored,
      counts: jsonColumn<Counts>(counted),
      cost: optional(
        usdColumn(sql`(case when state = 'ended' then cost else ${this.#costOfLines(sql`batches.id`)} end)`),
      ),
      held: usdColumn(sql`(select coalesce(sum(held), 0) ${lines(sql`and lines.state = 'placed'`)})`),
    });
  }
}
