/** Archived calls, read from their files: those of some requests, or of some minutes. */
import { type SQL, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../../../core/contract/errors.ts';
import { instantText } from '../../common/kit/paging.ts';
import type { Range } from '../../common/rollups/table.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { type Contents, contentsIn, type StoredFile } from './contents.ts';
import { endIn, idIn, linesOf } from './format.ts';

/** Characters of files that are kept, for the next page of the same month. */
const keptCharacters = 16_000_000;
/** Files that are read at the same time. */
const parallel = 4;
/** A sum of some minutes reads so many files at most. */
const mostOfSpan = 64;

export class ArchiveReader {
  /** Reads files that are needed once, and are not kept in memory. */
  readonly contents: Pick<Contents, 'read'>;
  readonly #kept = new LRUCache<string, string>({
    maxSize: keptCharacters,
    sizeCalculation: (content) => content.length + 1,
  });

  constructor(contents: Pick<Contents, 'read'>) {
    this.contents = contents;
  }

  /** The lines of these calls, as far as they are archived. Throws overloaded where a file cannot be read. */
  async linesOf(runner: Runner, schema: string, requestIds: readonly string[]): Promise<string[]> {
    const table = tablesOf(schema);
    const files = await rowsOf<StoredFile>(
      runner,
      sql`select distinct file.object, file.digest, file.bytes from ${table('archived_charges')} as charges
          cross join lateral (select * from ${table('archives')} as archives where archives.account_id = charges.account_id
            and last_id >= charges.id order by last_id limit 1) as file
          where charges.id = any (array(select value::uuid from json_array_elements_text(${jsonOf(requestIds)}))) and file.first_id <= charges.id`,
    );
    const wanted = new Set(requestIds);
    return this.#readAll(files, (line) => wanted.has(idIn(line)));
  }

  /** Calls that ended within one of the spans; undefined: they are in too many files. */
  async linesWithin(
    runner: Runner,
    schema: string,
    ranges: readonly Range[],
    accountId: string | undefined,
  ): Promise<string[] | undefined> {
    const overlapping = ranges.map(
      ([from, until]) =>
        sql`(last_at >= ${instantText(from)}::timestamptz and first_at < ${instantText(until)}::timestamptz)`,
    );
    const owned: SQL = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
    const files = await rowsOf<StoredFile>(
      runner,
      sql`select object, digest, bytes from ${tablesOf(schema)('archives')} where (${sql.join(overlapping, sql` or `)}) ${owned}
          order by account_id, number limit ${mostOfSpan + 1}::int`,
    );
    if (files.length > mostOfSpan) return undefined;
    return this.#readAll(files, (line) => {
      const at = Date.parse(endIn(line));
      return ranges.some(([from, until]) => at >= from && at < until);
    });
  }

  async #readAll(files: readonly StoredFile[], isWanted: (line: string) => boolean): Promise<string[]> {
    const lines: string[] = [];
    for (let from = 0; from < files.length; from += parallel) {
      const read = await Promise.all(files.slice(from, from + parallel).map((file) => this.#read(file)));
      for (const content of read) lines.push(...linesOf(content).filter(isWanted));
    }
    return lines;
  }

  async #read(file: StoredFile): Promise<string> {
    const known = this.#kept.get(file.digest);
    if (known !== undefined) return known;
    const read = await this.contents.read(file);
    if ('fault' in read) {
      const message = 'Old calls of this account cannot be read at the moment: ask the operator to run "audit".';
      throw new GatewayError('overloaded', message, {
        retryAfterMs: 60_000,
        cause: new Error(`the archived file ${file.object} ${read.fault}`),
      });
    }
    this.#kept.set(file.digest, read.content);
    return read.content;
  }
}

/** Where no store of files is: it finds nothing. */
export const noFiles = (): ArchiveReader => new ArchiveReader(contentsIn(() => undefined));

/** Where charges are: in the database, and in archived files. */
export interface ChargeStore {
  readonly orm: Runner;
  readonly schema: string;
  readonly archive: ArchiveReader;
  /** Wall-clock milliseconds. */
  readonly now: () => number;
}
