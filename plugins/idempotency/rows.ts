/** SQL statements on the table of keyed calls. Only the database's clock is used: the clocks of processes differ. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../common/domain/database.ts';
import { rowsOf, tableOf } from '../common/kit/sql.ts';
import type { KeyedCall } from './key.ts';
import { decodeStoredAnswer, encodeHead, type StoredAnswer } from './stored-answer.ts';

/** A call with the same key in the database. */
export interface KnownCall {
  readonly fingerprint: string;
  readonly requestId: string;
  readonly state: 'running' | 'answered' | 'lost';
  /** It runs, but its process has not renewed it for the length of a lease. */
  readonly abandoned: boolean;
  /** The process that ran it has returned since, and the ledger has all of its journal. */
  readonly returned: boolean;
  readonly ageMs: number;
  readonly answer: StoredAnswer | undefined;
}

/** A call that has ended; without `answer` its answer is lost. */
export interface EndedCall {
  readonly call: KeyedCall;
  readonly answer: StoredAnswer | undefined;
}

interface Row {
  readonly fingerprint: string;
  readonly request_id: string;
  readonly state: KnownCall['state'];
  readonly forsaken: boolean;
  readonly returned: boolean;
  readonly age: string;
  readonly told: string | null;
  readonly body: string | null;
}

export interface Lifetimes {
  /** How long a key lives, and how long a process may work on one without renewing it. */
  readonly keepMs: number;
  readonly leaseMs: number;
}

/** The operations on keyed calls. */
export type KeyedRows = Pick<
  CallRows,
  'claim' | 'find' | 'takeOver' | 'finish' | 'free' | 'renew' | 'findRunning' | 'abandon' | 'deleteExpired'
>;

export class CallRows {
  readonly #database: Database;
  readonly #table: SQL;
  readonly #owner: string;
  readonly #lifetimes: Lifetimes;

  /** `owner` outlives this process and is used by no other at the same time. */
  constructor(database: Database, owner: string, lifetimes: Lifetimes) {
    this.#owner = owner;
    this.#database = database;
    this.#table = tableOf(database, 'idempotent_calls');
    this.#lifetimes = lifetimes;
  }

  /** Marks the call as running. False: a live call has its key. */
  async claim(call: KeyedCall): Promise<boolean> {
    const rows = await this.#rows<object>(sql`
      insert into ${this.#table} as known
        (account_id, key_hash, fingerprint, request_id, owner, state, lease_until, created_at, expires_at)
      values (${call.accountId}, ${call.keyHash}, ${call.fingerprint}, ${call.requestId}::uuid, ${this.#owner}, 'running',
        ${this.#in('leaseMs')}, now(), ${this.#in('keepMs')})
      on conflict (account_id, key_hash) do update
        set fingerprint = excluded.fingerprint, request_id = excluded.request_id, owner = excluded.owner, state = 'running',
          lease_until = excluded.lease_until, created_at = now(), expires_at = excluded.expires_at,
          told = null, body = null
        where known.expires_at <= now() and (known.state <> 'running' or known.lease_until <= now())
      returning true as mine`);
    return rows.length > 0;
  }

  async find({ accountId, keyHash }: KeyedCall): Promise<KnownCall | undefined> {
    const [row] = await this.#rows<Row>(sql`
      select fingerprint, request_id::text as request_id, state, state = 'running' and lease_until <= now() as forsaken,
        lease_until = '-infinity' as returned,
        (extract(epoch from now() - created_at) * 1000)::bigint::text as age, told, encode(body, 'base64') as body
      from ${this.#table} where account_id = ${accountId} and key_hash = ${keyHash}`);
    if (row === undefined) return undefined;
    const { fingerprint, request_id: requestId, state, forsaken, returned, age, told: answer, body } = row;
    return {
      fingerprint,
      requestId,
      state,
      abandoned: forsaken,
      returned,
      ageMs: Number(age),
      answer: state === 'answered' ? decodeStoredAnswer(answer!, Buffer.from(body!, 'base64')) : undefined,
    };
  }

  /** Replaces an abandoned call; false: another process did so, or its process has renewed it. */
  async takeOver(call: KeyedCall, forsaken: KnownCall): Promise<boolean> {
    const rows = await this.#rows<object>(sql`
      update ${this.#table} set request_id = ${call.requestId}::uuid, owner = ${this.#owner}, lease_until = ${this.#in('leaseMs')},
        created_at = now(), expires_at = ${this.#in('keepMs')}
      where account_id = ${call.accountId} and key_hash = ${call.keyHash}
        and request_id = ${forsaken.requestId}::uuid and state = 'running' and lease_until <= now()
      returning true as mine`);
    return rows.length > 0;
  }

  /** Stores the answer; the key's lifetime begins now. A call that was taken over stores nothing. */
  async finish({ call, answer }: EndedCall): Promise<void> {
    const body = answer === undefined ? null : Buffer.from(answer.body).toString('base64');
    await this.#database.orm.execute(sql`
      update ${this.#table} set state = ${answer === undefined ? 'lost' : 'answered'}, expires_at = ${this.#in('keepMs')},
        told = ${answer === undefined ? null : encodeHead(answer)}::text, body = decode(${body}::text, 'base64')
      where ${this.#own(call)}`);
  }

  /** Nothing ran: the key is as it was before. */
  async free(call: KeyedCall): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where ${this.#own(call)}`);
  }

  /** Records that this process still works on these. */
  async renew(calls: readonly KeyedCall[]): Promise<void> {
    const ids = JSON.stringify(calls.map(({ accountId, keyHash, requestId }) => [accountId, keyHash, requestId]));
    await this.#database.orm.execute(sql`
      update ${this.#table} as known set lease_until = ${this.#in('leaseMs')}
      from json_array_elements(${ids}::text::json) as mine
      where known.account_id = mine->>0 and known.key_hash = mine->>1 and known.request_id = (mine->>2)::uuid
        and known.state = 'running'`);
  }

  /** Requests that earlier processes of this owner left running; to be read before this one runs any. */
  async findRunning(): Promise<readonly string[]> {
    const rows = await this.#rows<{ request_id: string }>(sql`
      select request_id::text as request_id from ${this.#table}
      where owner = ${this.#owner} and state = 'running' and lease_until > '-infinity'`);
    return rows.map(({ request_id }) => request_id);
  }

  /**
   * Abandons calls that an earlier process of this owner left running, without waiting for their leases. Call it
   * when the ledger has that process's journal. Each call is named, because this statement may execute late: after
   * calls that this process has admitted, or, if it has died too, after those of the next.
   */
  async abandon(requestIds: readonly string[]): Promise<void> {
    if (requestIds.length === 0) return;
    await this.#database.orm.execute(sql`
      update ${this.#table} set lease_until = '-infinity'
      where owner = ${this.#owner} and state = 'running' and request_id in
        (select value::uuid from json_array_elements_text(${JSON.stringify(requestIds)}::text::json))`);
  }

  async deleteExpired(): Promise<void> {
    await this.#database.orm.execute(sql`
      delete from ${this.#table} where expires_at <= now() and (state <> 'running' or lease_until <= now())`);
  }

  #own({ accountId, keyHash, requestId }: KeyedCall): SQL {
    return sql`account_id = ${accountId} and key_hash = ${keyHash} and request_id = ${requestId}::uuid and state = 'running'`;
  }

  #in(name: keyof Lifetimes): SQL {
    return sql`now() + ${this.#lifetimes[name]}::bigint * interval '1 millisecond'`;
  }

  #rows<T>(statement: SQL): Promise<T[]> {
    return rowsOf(this.#database.orm, statement);
  }
}
