/** Short-lived keys for browsers: each opens sessions of one model with fixed settings, for the key that it was made with. */
import { hash, randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { instant, tableOf } from '../../common/kit/sql.ts';

const marker = 'ek_';
const shape = /^ek_[0-9a-f]{64}$/;
/** The most valid secrets of one key. */
const mostSecrets = 1_000;
/** The most look-ups at once: clients without a key can send texts that look like a secret. */
const mostLookups = 100;

export interface Secret {
  readonly keyId: string;
  readonly model: string;
  /** As JSON; undefined: none. */
  readonly session: string | undefined;
}

interface Row {
  readonly key_id: string;
  readonly model: string;
  readonly session: string | null;
}

export const isSecret = (key: string): boolean => key.startsWith(marker);

export class RealtimeSecrets {
  readonly #database: Database;
  readonly #clock: Clock;
  #lookups = 0;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  get #table() {
    return tableOf(this.#database, 'realtime_secrets');
  }

  /** Returns its text, of which only a digest is kept. */
  async create({ keyId, model, session }: Secret, expiresAtMs: number): Promise<string> {
    const value = marker + randomBytes(32).toString('hex');
    const made = (await this.#database.orm.execute(sql`
      insert into ${this.#table} (digest, key_id, model, session, expires_at)
      select ${digestOf(value)}, ${keyId}, ${model}, ${session ?? null}, ${instant(expiresAtMs)}
      where (select count(*) from ${this.#table} where key_id = ${keyId} and expires_at > ${instant(this.#clock.now())}) < ${mostSecrets}
      returning key_id`)) as unknown as Row[];
    if (made.length > 0) return value;
    throw new GatewayError('rate_limited', 'This key has too many client secrets that have not expired.', {
      code: 'client_secrets',
      retryAfterMs: 10_000,
    });
  }

  async find(value: string): Promise<Secret> {
    const row = shape.test(value) ? await this.#lookUp(value) : undefined;
    if (row !== undefined) return { keyId: row.key_id, model: row.model, session: row.session ?? undefined };
    throw new GatewayError('unauthenticated', 'The client secret is not valid, or has expired.', {
      code: 'invalid_client_secret',
      shouldRetry: false,
    });
  }

  async #lookUp(value: string): Promise<Row | undefined> {
    if (this.#lookups >= mostLookups)
      throw new GatewayError('overloaded', 'Too many client secrets are being checked.', { retryAfterMs: 1_000 });
    this.#lookups += 1;
    try {
      const rows = (await this.#database.orm.execute(sql`
        select key_id, model, session from ${this.#table}
        where digest = ${digestOf(value)} and expires_at > ${instant(this.#clock.now())}`)) as unknown as Row[];
      return rows[0];
    } finally {
      this.#lookups -= 1;
    }
  }

  async deleteExpired(): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where expires_at < ${instant(this.#clock.now())}`);
  }
}

function digestOf(value: string): string {
  return hash('sha256', value, 'base64url');
}
