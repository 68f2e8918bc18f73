/** The rows of chunks: added within the account's bounds, and read in pages for a search. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../common/domain/database.ts';
import { rowsOf, tableOf } from '../common/kit/sql.ts';
import type { FileRows, Job } from './file-rows.ts';
import { lockAccount } from './store-rows.ts';
import type { Chunk } from './text/chunks.ts';
import { type Best, base64Of, cosine, type Scored, vectorOf } from './vectors.ts';

export interface ChunkBounds {
  readonly chunks: number;
  readonly bytes: number;
}

/** Vectors that are in memory at once in a search. */
const pageRows = 256;
const rowBytes = 100;

export interface FoundText extends Scored {
  readonly text: string;
}

export class ChunkRows {
  readonly #orm: Orm;
  readonly #chunks: SQL;
  readonly #files: SQL;
  readonly #rows: FileRows;

  constructor(database: Database, rows: FileRows) {
    this.#orm = database.orm;
    this.#chunks = tableOf(database, 'vector_chunks');
    this.#files = tableOf(database, 'vector_store_files');
    this.#rows = rows;
  }

  /** `lost`: another worker has the file, or it is taken out; `full`: the account has no room for these chunks. */
  async add(
    { id, accountId, storeId }: Job,
    token: string,
    chunks: readonly (Chunk & { readonly vector: Float32Array })[],
    bounds: ChunkBounds,
  ): Promise<'added' | 'lost' | 'full'> {
    const bytes = chunks.reduce(
      (sum, { text, vector }) => sum + Buffer.byteLength(text) + vector.byteLength + rowBytes,
      0,
    );
    const rows = chunks.map(({ number, overlap, text, vector }) => ({
      n: number,
      o: overlap,
      t: text,
      v: base64Of(vector),
    }));
    return this.#orm.transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const [used] = await rowsOf<{ chunks: string; bytes: string }>(
        transaction,
        sql`select coalesce(sum(chunks), 0)::text as chunks, coalesce(sum(bytes), 0)::text as bytes
          from ${this.#files} where account_id = ${accountId}`,
      );
      if (Number(used!.chunks) + chunks.length > bounds.chunks || Number(used!.bytes) + bytes > bounds.bytes)
        return 'full';
      const grown = sql`chunks = chunks + ${chunks.length}::int, bytes = bytes + ${bytes}::bigint, tries = 0`;
      if (!(await this.#rows.leases.change(id, token, grown, transaction))) return 'lost';
      await transaction.execute(
        sql`insert into ${this.#chunks} (account_id, store_id, file, number, overlap, text, vector)
          select ${accountId}, ${storeId}, ${id}, (one->>'n')::int, (one->>'o')::int, one->>'t', decode(one->>'v', 'base64')
          from json_array_elements(${JSON.stringify(rows)}::text::json) as one`,
      );
      return 'added';
    });
  }

  /** The chunks of a store, or of these files of it, that are nearest to one of the vectors. Every vector is looked at. */
  async nearest(
    accountId: string,
    { storeId, files }: { readonly storeId: string; readonly files: readonly string[] | undefined },
    vectors: readonly Float32Array[],
    best: Best,
  ): Promise<void> {
    const among =
      files === undefined
        ? sql``
        : sql`and file in (select value from json_array_elements_text(${JSON.stringify(files)}::text::json))`;
    for (let last: { file: string; number: number } | undefined; ; ) {
      const behind = last === undefined ? sql`` : sql`and (file, number) > (${last.file}, ${last.number}::int)`;
      const rows = await rowsOf<{ file: string; number: number; vector: string }>(
        this.#orm,
        sql`select file, number, encode(vector, 'base64') as vector from ${this.#chunks}
          where account_id = ${accountId} and store_id = ${storeId} ${among} ${behind} order by file, number limit ${pageRows}::int`,
      );
      for (const { file, number, vector } of rows) {
        const own = vectorOf(vector);
        if (own === undefined) continue;
        best.add({ file, number, score: vectors.reduce((most, one) => Math.max(most, cosine(one, own)), 0) });
      }
      last = rows.at(-1);
      if (last === undefined || rows.length < pageRows) return;
    }
  }

  /** With their texts, in the same order; those that are gone meanwhile are left out. */
  async textsOf(accountId: string, found: readonly Scored[]): Promise<FoundText[]> {
    if (found.length === 0) return [];
    const list = JSON.stringify(found.map(({ file, number }) => ({ f: file, n: number })));
    const rows = await rowsOf<{ file: string; number: number; text: string }>(
      this.#orm,
      sql`select file, number, text from ${this.#chunks} where account_id = ${accountId} and (file, number) in (
        select one->>'f', (one->>'n')::int from json_array_elements(${list}::text::json) as one)`,
    );
    const texts = new Map(rows.map(({ file, number, text }) => [`${file} ${number}`, text]));
    return found.flatMap((one) => {
      const text = texts.get(`${one.file} ${one.number}`);
      return text === undefined ? [] : [{ ...one, text }];
    });
  }

  /** The text of a file, piece by piece and without what overlaps. */
  async contentOf(accountId: string, file: string): Promise<string[]> {
    const rows = await rowsOf<{ overlap: number; text: string }>(
      this.#orm,
      sql`select overlap, text from ${this.#chunks} where account_id = ${accountId} and file = ${file} order by number`,
    );
    return rows.map(({ overlap, text }) => text.slice(overlap));
  }
}
