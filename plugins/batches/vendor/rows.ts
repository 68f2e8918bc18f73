/** The rows of vendors' batches and of their lines. A change holds only for the worker that has the batch's lease. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../../common/domain/database.ts';
import type { Money } from '../../common/domain/money.ts';
import {
  column,
  columnsOf,
  jsonColumn,
  jsonOf,
  optional,
  type Runner,
  rowsOf,
  tableOf,
  timeColumn,
} from '../../common/kit/sql.ts';
import type { InputLine, LineAnswer } from '../batch.ts';
import type { VendorResults } from './api.ts';

export interface VendorBatch {
  readonly provider: string;
  readonly protocol: string;
  readonly model: string;
  /** The client's name of the model. */
  readonly asked: string;
  readonly credential: string | undefined;
  readonly state: 'preparing' | 'uploading' | 'ordering' | 'running' | 'reading' | 'ended';
  /** When something may have been sent in this state: wall-clock milliseconds, and milliseconds ago. */
  readonly sent: { readonly at: number; readonly agoMs: number } | undefined;
  readonly orderedAt: number | undefined;
  readonly lines: number;
  readonly fileId: string | undefined;
  readonly vendorId: string | undefined;
  readonly cancelSent: boolean;
  readonly results: VendorResults | undefined;
}

export interface PlacedLine extends InputLine {
  /** Id of the line's authorization. */
  readonly requestId: string;
  /** The line as the vendor gets it. */
  readonly request: string;
  /** Sealed by a plugin, for the answer. */
  readonly kept: string | undefined;
}

const columns = columnsOf({
  provider: column<string>('provider'),
  protocol: column<string>('protocol'),
  model: column<string>('model'),
  asked: column<string>('asked'),
  credential: optional(column<string>('credential')),
  state: column<VendorBatch['state']>('state'),
  sentAt: optional(timeColumn('sent_at')),
  sentAgoMs: optional(timeColumn(sql`(now() - sent_at)`)),
  orderedAt: optional(timeColumn('ordered_at')),
  lines: column<number>('lines'),
  fileId: optional(column<string>('file_id')),
  vendorId: optional(column<string>('vendor_id')),
  cancelSent: column<boolean>('cancel_sent'),
  results: optional(jsonColumn<VendorResults>('results')),
});

interface LineRow {
  readonly number: number;
  readonly custom_id: string;
  readonly first_byte: string;
  readonly bytes: number;
  readonly request_id: string | null;
  readonly request: string | null;
  readonly kept: string | null;
}

type Change = Partial<Pick<VendorBatch, 'state' | 'credential' | 'lines' | 'fileId' | 'vendorId' | 'results'>> & {
  readonly cancelSent?: true;
  /** `now`: the next request may be executed. */
  readonly sent?: 'now' | 'no';
  readonly ordered?: true;
};

export class VendorRows {
  readonly #orm: Orm;
  readonly #batches: SQL;
  readonly #vendors: SQL;
  readonly #table: SQL;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#batches = tableOf(database, 'batches');
    this.#vendors = tableOf(database, 'vendor_batches');
    this.#table = tableOf(database, 'batch_lines');
  }

  async find(batchId: string): Promise<VendorBatch | undefined> {
    const [row] = await rowsOf<never>(
      this.#orm,
      sql`select ${columns.select} from ${this.#vendors} where batch_id = ${batchId}`,
    );
    if (row === undefined) return undefined;
    const { sentAt: at, sentAgoMs: agoMs, ...vendor } = columns.read(row);
    return { ...vendor, sent: at === undefined ? undefined : { at, agoMs: agoMs! } };
  }

  /** Throws when another worker has the batch now. */
  async change(batchId: string, token: string, change: Change): Promise<void> {
    const sets: SQL[] = [];
    const set = (name: string, value: SQL) => sets.push(sql`${sql.identifier(name)} = ${value}`);
    if (change.state !== undefined) set('state', sql`${change.state}`);
    if (change.credential !== undefined) set('credential', sql`${change.credential}`);
    if (change.lines !== undefined) set('lines', sql`${change.lines}::int`);
    if (change.fileId !== undefined) set('file_id', sql`${change.fileId}`);
    if (change.vendorId !== undefined) set('vendor_id', sql`${change.vendorId}`);
    if (change.results !== undefined) set('results', jsonOf(change.results));
    if (change.cancelSent === true) set('cancel_sent', sql`true`);
    if (change.ordered === true) set('ordered_at', sql`now()`);
    if (change.sent !== undefined) set('sent_at', change.sent === 'now' ? sql`now()` : sql`null`);
    const rows = await rowsOf(
      this.#orm,
      sql`update ${this.#vendors} set ${sql.join(sets, sql`, `)}
        where batch_id = ${batchId} and ${this.#isHeld(batchId, token)} returning batch_id`,
    );
    if (rows.length === 0) throw lost();
  }

  /** Whether the vendor's batch is known as that of another order. */
  async isKnown(vendorId: string): Promise<boolean> {
    const rows = await rowsOf(this.#orm, sql`select 1 from ${this.#vendors} where vendor_id = ${vendorId} limit 1`);
    return rows.length > 0;
  }

  /** Lines that are not placed and have not begun, in their order. */
  async waiting(batchId: string, after: number, limit: number): Promise<InputLine[]> {
    return (await this.#lines(batchId, sql`state = 'waiting' and sent_at is null`, after, limit)).map(inputLineOf);
  }

  async placed(batchId: string, after: number, limit: number): Promise<PlacedLine[]> {
    return (await this.#lines(batchId, sql`state = 'placed'`, after, limit)).map(placedLineOf);
  }

  /** Their number and the bytes of their requests. */
  async sizes(batchId: string): Promise<{ readonly lines: number; readonly bytes: number }> {
    const [row] = await rowsOf<{ lines: number; bytes: string }>(
      this.#orm,
      sql`select count(*)::int as lines, coalesce(sum(octet_length(request)), 0)::text as bytes
        from ${this.#table} where batch_id = ${batchId} and state = 'placed'`,
    );
    return { lines: row!.lines, bytes: Number(row!.bytes) };
  }

  async numbers(batchId: string): Promise<Set<number>> {
    const rows = await rowsOf<{ number: number }>(
      this.#orm,
      sql`select number from ${this.#table} where batch_id = ${batchId} and state = 'placed'`,
    );
    return new Set(rows.map(({ number }) => number));
  }

  async line(batchId: string, number: number): Promise<PlacedLine | undefined> {
    const [row] = await this.#lines(batchId, sql`state = 'placed' and number = ${number}::int`, 0, 1);
    return row && placedLineOf(row);
  }

  /** In the transaction that sets the money aside. Throws when another worker has the batch now. */
  async place(
    orm: Runner,
    batchId: string,
    token: string,
    line: { readonly number: number; readonly requestId: string; readonly held: Money } & Pick<
      PlacedLine,
      'request' | 'kept'
    >,
  ): Promise<void> {
    const rows = await rowsOf(
      orm,
      sql`update ${this.#table} set state = 'placed', request_id = ${line.requestId},
          held = ${line.held.toString()}::bigint, request = ${line.request.replaceAll('\0', '')}, kept = ${line.kept ?? null}
        where batch_id = ${batchId} and number = ${line.number}::int and state = 'waiting' and ${this.#isHeld(batchId, token)}
        returning number`,
    );
    if (rows.length === 0) throw lost();
  }

  /** It was refused before anything was sent. */
  async refuse(batchId: string, token: string, number: number, answer: LineAnswer): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#table} set ${doneWith(answer)}, cost = 0
        where batch_id = ${batchId} and number = ${number}::int and state = 'waiting' and ${this.#isHeld(batchId, token)}`,
    );
  }

  /** false: it has its end already. Its cost follows in the same transaction. */
  async finish(orm: Runner, batchId: string, number: number, answer: LineAnswer): Promise<boolean> {
    const rows = await rowsOf(
      orm,
      sql`update ${this.#table} set ${doneWith(answer)}, held = null, request = null, kept = null
        where batch_id = ${batchId} and number = ${number}::int and state = 'placed' returning number`,
    );
    return rows.length === 1;
  }

  async setCost(orm: Runner, batchId: string, number: number, cost: Money): Promise<void> {
    await orm.execute(
      sql`update ${this.#table} set cost = ${cost.toString()}::bigint
        where batch_id = ${batchId} and number = ${number}::int`,
    );
  }

  /** It is made as a call. false: it is not placed. */
  async giveBack(orm: Runner, batchId: string, number: number): Promise<boolean> {
    const rows = await rowsOf(
      orm,
      sql`update ${this.#table} set state = 'waiting', held = null, request = null, kept = null, request_id = null
        where batch_id = ${batchId} and number = ${number}::int and state = 'placed' returning number`,
    );
    return rows.length === 1;
  }

  #lines(batchId: string, which: SQL, after: number, limit: number): Promise<LineRow[]> {
    return rowsOf<LineRow>(
      this.#orm,
      sql`select number, custom_id, first_byte::text as first_byte, bytes, request_id, request, kept
        from ${this.#table} where batch_id = ${batchId} and number > ${after}::int and ${which}
        order by number limit ${limit}::int`,
    );
  }

  #isHeld(batchId: string, token: string): SQL {
    return sql`exists (select from ${this.#batches} as held where held.id = ${batchId} and held.lease = ${token})`;
  }
}

/** The choice of a vendor for a batch that begins, in the same statement. */
export function vendorChoice(database: Database, batchId: string, choice: VendorChoice): SQL {
  const { provider, protocol, model, asked: requested } = choice;
  return sql`insert into ${tableOf(database, 'vendor_batches')} (account_id, batch_id, provider, protocol, model, asked, state)
    select account_id, id, ${provider}, ${protocol}, ${model}, ${requested}, 'preparing' from ${tableOf(database, 'batches')} where id = ${batchId}`;
}

export type VendorChoice = Pick<VendorBatch, 'provider' | 'protocol' | 'model' | 'asked'>;

function doneWith({ result, status, requestId, answer }: LineAnswer): SQL {
  return sql`state = 'done', result = ${result}, status = ${status ?? null}::int,
    request_id = ${requestId ?? null}, answer = ${answer ?? null}`;
}

function inputLineOf(row: LineRow): InputLine {
  const { number, bytes, custom_id: customId } = row;
  return { number, customId, firstByte: Number(row.first_byte), bytes };
}

function placedLineOf(row: LineRow): PlacedLine {
  return { ...inputLineOf(row), requestId: row.request_id!, request: row.request ?? '', kept: row.kept ?? undefined };
}

export function lost(): Error {
  return new Error('another worker has this batch now');
}
