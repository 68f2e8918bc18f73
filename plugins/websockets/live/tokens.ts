/** Short-lived tokens for browsers: each opens a number of live sessions with fixed settings, for the key that it was made with. */
import { hash, randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import type { Database } from '../../common/domain/database.ts';
import { instant, tableOf } from '../../common/kit/sql.ts';

const marker = 'auth_tokens/';
const shape = /^auth_tokens\/[0-9a-f]{64}$/;
/** The most valid tokens of one key. */
const mostTokens = 1_000;
/** The most look-ups at once: clients without a key can send texts that look like a token. */
const mostLookups = 100;

export interface NewToken {
  readonly keyId: string;
  /** As JSON; undefined: none. */
  readonly setup: string | undefined;
  readonly fieldMask: string | undefined;
  /** 0: any number. */
  readonly uses: number;
  /** Wall-clock milliseconds. */
  readonly newSessionExpiresAt: number;
  readonly expiresAt: number;
}

export type LiveToken = Pick<NewToken, 'keyId' | 'setup' | 'fieldMask' | 'expiresAt'>;

interface Row {
  readonly key_id: string;
  readonly setup: string | null;
  readonly field_mask: string | null;
  readonly expires_ms: string;
}

/** The token of an upgrade, in the query or behind `Token`; undefined: it has none. */
export function presentedToken({ query, headers }: ClientRequest): string | undefined {
  const token = query.get('access_token') ?? /^token[ \t]+(\S+)$/i.exec(headers['authorization'] ?? '')?.[1];
  return token?.startsWith(marker) === true ? token : undefined;
}

export class LiveTokens {
  readonly #database: Database;
  readonly #clock: Clock;
  #lookups = 0;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Returns its text, of which only a digest is kept. */
  async create(token: NewToken): Promise<string> {
    const value = marker + randomBytes(32).toString('hex');
    const { keyId, setup, fieldMask, uses, newSessionExpiresAt, expiresAt } = token;
    const made = (await this.#database.orm.execute(sql`
      insert into ${this.#table} (digest, key_id, setup, field_mask, uses, new_session_expires_at, expires_at)
      select ${digestOf(value)}, ${keyId}, ${setup ?? null}, ${fieldMask ?? null}, ${uses}::int,
        ${instant(newSessionExpiresAt)}, ${instant(expiresAt)}
      where (select count(*) from ${this.#table} where key_id = ${keyId} and expires_at > ${this.#now}) < ${mostTokens}::int
      returning key_id`)) as unknown as Row[];
    if (made.length > 0) return value;
    throw new GatewayError('rate_limited', 'This key has too many tokens that have not expired.', {
      code: 'auth_tokens',
      retryAfterMs: 10_000,
    });
  }

  /** Rejects unless it is valid. */
  async find(value: string): Promise<LiveToken> {
    const row = shape.test(value) ? await this.#lookUp(value) : undefined;
    if (row === undefined) throw notValid('The token is not valid, or has expired.');
    return {
      keyId: row.key_id,
      setup: row.setup ?? undefined,
      fieldMask: row.field_mask ?? undefined,
      expiresAt: Number(row.expires_ms),
    };
  }

  /** Counts a session; rejects when it may open no other. `resumes`: it goes on with an earlier one, which is no use. */
  async use(value: string, resumes: boolean): Promise<void> {
    const rows = resumes
      ? await this.#database.orm.execute(sql`
          select digest from ${this.#table} where digest = ${digestOf(value)} and used > 0 and expires_at > ${this.#now}`)
      : await this.#database.orm.execute(sql`
          update ${this.#table} set used = used + 1
          where digest = ${digestOf(value)} and (uses = 0 or used < uses) and expires_at > ${this.#now}
            and new_session_expires_at > ${this.#now}
          returning digest`);
    if ((rows as unknown as unknown[]).length === 0)
      throw notValid('The token has opened as many sessions as it may, or may open none any more.');
  }

  async deleteExpired(): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where expires_at < ${this.#now}`);
  }

  async #lookUp(value: string): Promise<Row | undefined> {
    if (this.#lookups >= mostLookups)
      throw new GatewayError('overloaded', 'Too many tokens are being checked.', { retryAfterMs: 1_000 });
    this.#lookups += 1;
    try {
      const rows = (await this.#database.orm.execute(sql`
        select key_id, setup, field_mask, (extract(epoch from expires_at) * 1000)::bigint::text as expires_ms
        from ${this.#table} where digest = ${digestOf(value)} and expires_at > ${this.#now}`)) as unknown as Row[];
      return rows[0];
    } finally {
      this.#lookups -= 1;
    }
  }

  get #table() {
    return tableOf(this.#database, 'live_tokens');
  }

  get #now() {
    return instant(this.#clock.now());
  }
}

const digestOf = (value: string) => hash('sha256', value, 'base64url');

function notValid(message: string): GatewayError {
  return new GatewayError('unauthenticated', message, { code: 'invalid_token', shouldRetry: false });
}
