/** Uploads that come in pieces: one row each, by the digest of the secret in its address. */
import { hash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { column, columnsOf, countColumn, instant, optional, rowsOf, tableOf } from '../../common/kit/sql.ts';

export const sessionLifetimeMs = 86_400_000;
/** Sessions of one account. */
const mostSessions = 1_000;
const secretFormat = /^[0-9a-f]{64}$/;

export interface UploadSession {
  readonly accountId: string;
  readonly keyId: string;
  readonly fileId: string;
  readonly name: string;
  readonly chosenName?: string | undefined;
  readonly mediaType: string;
  /** As announced. */
  readonly bytes: number | undefined;
}

const columns = columnsOf({
  accountId: column<string>('account_id'),
  keyId: column<string>('key_id'),
  fileId: column<string>('file_id'),
  name: column<string>('name'),
  chosenName: optional(column<string>('chosen_name')),
  mediaType: column<string>('media_type'),
  bytes: optional(countColumn('bytes')),
});

export class UploadSessions {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(database: Database, clock: Clock, random: Random) {
    this.#database = database;
    this.#clock = clock;
    this.#random = random;
  }

  /** Resolves with its secret, of which only a digest is kept. */
  async begin({ accountId, keyId, fileId, name, chosenName, mediaType, bytes }: UploadSession): Promise<string> {
    const secret = this.#random.bytes(32).toString('hex');
    // Uploads dated by a clock that was ahead, and came back, do not count.
    const made = (await this.#database.orm.execute(sql`
      insert into ${this.#table} (digest, account_id, key_id, file_id, name, chosen_name, media_type, bytes, expires_at)
      select ${digestOf(secret)}, ${accountId}, ${keyId}, ${fileId}, ${name}, ${chosenName ?? null}, ${mediaType},
        ${bytes ?? null}::bigint, ${this.#in(sessionLifetimeMs)}
      where (select count(*) from ${this.#table} where account_id = ${accountId} and expires_at > ${this.#in(0)}
          and expires_at < ${this.#in(2 * sessionLifetimeMs)})
        < ${mostSessions}::int
      returning digest`)) as unknown as unknown[];
    if (made.length > 0) return secret;
    throw new GatewayError('rate_limited', `At most ${mostSessions} uploads of an account are begun in a day.`, {
      code: 'uploads',
      retryAfterMs: 60_000,
    });
  }

  /** undefined: there never was one, it was cancelled, or has expired. */
  async find(secret: string): Promise<UploadSession | undefined> {
    if (!secretFormat.test(secret)) return undefined;
    const [row] = await rowsOf<never>(
      this.#database.orm,
      sql`select ${columns.select} from ${this.#table} where digest = ${digestOf(secret)} and expires_at > ${this.#in(0)}`,
    );
    return row && columns.read(row);
  }

  async remove(secret: string): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where digest = ${digestOf(secret)}`);
  }

  async deleteExpired(): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where expires_at <= ${this.#in(0)}`);
  }

  get #table() {
    return tableOf(this.#database, 'resumable_uploads');
  }

  #in(milliseconds: number) {
    return instant(this.#clock.now() + milliseconds);
  }
}

const digestOf = (secret: string) => hash('sha256', secret, 'base64url');
