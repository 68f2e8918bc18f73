/** The statements on the table of keyed calls. The database's clock alone decides: processes disagree about the time. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../core/vocabulary.ts';
import type { KeyedCall } from './key.ts';
import { decodeTold, encodeHead, type Told } from './told.ts';

/** A call under the same key, as the database has it. */
export interface KnownCall {
  readonly fingerprint: string;
  readonly requestId: string;
  readonly state: 'running' | 'answered' | 'lost';
  /** It runs, but whoever ran it has not been heard of for the length of a lease. */
  readonly forsaken: boolean;
  /** The process that ran it has come back since, and the ledger has all that its journal had. */
  readonly returned: boolean;
  readonly ageMs: number;
  readonly told: Told | undefined;
}

/** A call that has ended; without `told` its answer is lost. */
export interface EndedCall {
  readonly call: KeyedCall;
  readonly told: Told | undefined;
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
  /** How long a key lives, and how long a process may be silent that works on one. */
  readonly keepMs: number;
  readonly leaseMs: number;
}

/** What keyed calls ask of their table. */
export type KeyedRows = Pick<
  CallRows,
  'claim' | 'find' | 'takeOver' | 'finish' | 'free' | 'renew' | 'leftRunning' | 'forsake' | 'deleteExpired'
>;

export class CallRows {
  readonly #database: Database;
  readonly #table: SQL;
  readonly #owner: string;
  readonly #lifetimes: Lifetimes;

  /** `owner` outlives this process, and works nowhere else at the same time. */
  constructor(database: Database, owner: string, lifetimes: Lifetimes) {
    this.#owner = owner;
    this.#database = database;
    this.#table = sql`${sql.identifier(database.schema)}.idempotent_calls`;
    this.#lifetimes = lifetimes;
  }

  /** Marks the call as running. false: there is one under its key, alive. */
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
    const { fingerprint, request_id: requestId, state, forsaken, returned, age, told, body } = row;
    return {
      fingerprint,
      requestId,
      state,
      forsaken,
      returned,
      ageMs: Number(age),
      told: state === 'answered' ? decodeTold(told!, Buffer.from(body!, 'base64')) : undefined,
    };
  }

  /** Takes a forsaken call's place; false: somebody else did, or its process was heard of. */
  async takeOver(call: KeyedCall, forsaken: KnownCall): Promise<boolean> {
    const rows = await this.#rows<object>(sql`
      update ${this.#table} set request_id = ${call.requestId}::uuid, owner = ${this.#owner}, lease_until = ${this.#in('leaseMs')},
        created_at = now(), expires_at = ${this.#in('keepMs')}
      where account_id = ${call.accountId} and key_hash = ${call.keyHash}
        and request_id = ${forsaken.requestId}::uuid and state = 'running' and lease_until <= now()
      returning true as mine`);
    return rows.length > 0;
  }

  /** Keeps what was answered; the key's lifetime begins now. A call that was taken over keeps nothing. */
  async finish({ call, told }: EndedCall): Promise<void> {
    const body = told === undefined ? null : Buffer.from(told.body).toString('base64');
    await this.#database.orm.execute(sql`
      update ${this.#table} set state = ${told === undefined ? 'lost' : 'answered'}, expires_at = ${this.#in('keepMs')},
        told = ${told === undefined ? null : encodeHead(told)}::text, body = decode(${body}::text, 'base64')
      where ${this.#own(call)}`);
  }

  /** Nothing ran: the key is as it was before. */
  async free(call: KeyedCall): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where ${this.#own(call)}`);
  }

  /** Says that this process still works on these. */
  async renew(calls: readonly KeyedCall[]): Promise<void> {
    const ids = JSON.stringify(calls.map(({ accountId, keyHash, requestId }) => [accountId, keyHash, requestId]));
    await this.#database.orm.execute(sql`
      update ${this.#table} as known set lease_until = ${this.#in('leaseMs')}
      from json_array_elements(${ids}::text::json) as mine
      where known.account_id = mine->>0 and known.key_hash = mine->>1 and known.request_id = (mine->>2)::uuid
        and known.state = 'running'`);
  }

  /** Requests that earlier processes of this owner left running; to be asked before this one runs any. */
  async leftRunning(): Promise<readonly string[]> {
    const rows = await this.#rows<{ request_id: string }>(sql`
      select request_id::text as request_id from ${this.#table}
      where owner = ${this.#owner} and state = 'running' and lease_until > '-infinity'`);
    return rows.map(({ request_id }) => request_id);
  }

  /**
   * What an earlier process of this owner left running is forsaken at once: nobody waits for its lease. To be called when
   * the ledger has what that process's journal had. Each is named, because this statement may come late: behind calls that
   * this process has let in, or, when it has died too, behind those of the next.
   */
  async forsake(requestIds: readonly string[]): Promise<void> {
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

  async #rows<T>(statement: SQL): Promise<T[]> {
    const result: unknown = await this.#database.orm.execute(statement);
    return (Array.isArray(result) ? result : (result as { rows: T[] }).rows) as T[];
  }
}
