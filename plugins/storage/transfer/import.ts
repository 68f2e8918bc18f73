/** Fills an empty database with the rows of an export, in one transaction, and compares each table with the file. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import { developmentRefusal, isOfDevelopment } from '../development.ts';
import type { Count } from './export.ts';
import { type Head, readLines, type SchemaLine, type SequenceLine, type TableLine, wrong } from './file.ts';
import { filledTable, type Migration, migrationsOf, type Runner, rowsOf, sumOf, tableOf } from './tables.ts';

/** A statement's rows: so many characters, or one row that is longer. */
const batchChars = 1_000_000;

export interface ImportTools {
  readonly orm: Orm;
  /** Makes the tables of this schema by these migrations; those that are there stay. */
  readonly makeTables: (schema: string, migrations: readonly Migration[]) => Promise<void>;
}

/** Rejects before anything is written unless the file is whole and fits; otherwise all of it is there, or nothing. */
export async function importFrom(path: string, { orm, makeTables }: ImportTools): Promise<Count[]> {
  // The whole file is read twice, so that one that is cut short is refused before tables are made.
  for (const { schema, migrations } of await schemasOf(path)) {
    if (isOfDevelopment(migrations)) throw wrong(developmentRefusal(path));
    const filled = await filledTable(orm, schema);
    if (filled !== undefined)
      throw wrong(`The schema ${schema} is not empty (table ${filled}): import into an empty database.`);
    await makeTables(schema, migrations);
    checkMigrations(schema, migrations, await migrationsOf(orm, schema));
  }
  return orm.transaction((transaction) => new Filling(transaction).run(path));
}

async function schemasOf(path: string): Promise<SchemaLine[]> {
  const schemas: SchemaLine[] = [];
  let rows = 0;
  let isFirst = true;
  for await (const line of readLines(path)) {
    if (isFirst) checkHead(line, path);
    isFirst = false;
    if (rows > 0) rows -= 1;
    else {
      const read = JSON.parse(line) as Partial<SchemaLine & TableLine>;
      if (read.schema !== undefined) schemas.push(read as SchemaLine);
      rows = read.rows ?? 0;
    }
  }
  return schemas;
}

function checkHead(line: string, path: string): void {
  let head: Partial<Head> = {};
  try {
    head = JSON.parse(line) as Partial<Head>;
  } catch {
    // It is no JSON.
  }
  if (head.format === 'model-gateway storage' && head.version === 1) return;
  throw wrong(`${path} is no file of "gateway storage export", or of a later version.`);
}

/** Rows fit the tables of the version that wrote them. */
function checkMigrations(schema: string, theirs: readonly Migration[], ours: readonly Migration[]): void {
  const plugins = new Set(theirs.map(({ plugin }) => plugin));
  const nameOf = ({ plugin, number, checksum }: Migration) => `${plugin} ${number} ${checksum}`;
  const [left, right] = [new Set(theirs.map(nameOf)), new Set(ours.map(nameOf))];
  const odd =
    theirs.find((each) => !right.has(nameOf(each))) ??
    ours.find((each) => plugins.has(each.plugin) && !left.has(nameOf(each)));
  if (odd === undefined) return;
  throw wrong(
    `The tables of "${odd.plugin}" in ${schema} are not those of the export (migration ${odd.number}): import with the version that exported; a plugin from outside of the program: run "gateway migrate" with its file first.`,
  );
}

class Filling {
  readonly #runner: Runner;
  readonly #counts: Count[] = [];
  readonly #withTriggers: SQL[] = [];
  #schema = '';
  #table: TableLine | undefined;
  #missing = 0;
  #batch: string[] = [];
  #batchSize = 0;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  async run(path: string): Promise<Count[]> {
    for await (const line of readLines(path)) {
      if (this.#missing > 0) await this.#row(line);
      else await this.#next(JSON.parse(line) as Partial<SchemaLine & TableLine & SequenceLine>);
    }
    for (const table of this.#withTriggers) await this.#runner.execute(sql`alter table ${table} enable trigger user`);
    return this.#counts;
  }

  async #next({ schema, table, sequence, ...rest }: Partial<SchemaLine & TableLine & SequenceLine>): Promise<void> {
    if (schema !== undefined) {
      this.#schema = schema;
      this.#counts.push({ schema, tables: 0, rows: 0 });
    } else if (table !== undefined) {
      const count = this.#counts.at(-1)! as { tables: number; rows: number };
      count.tables += 1;
      count.rows += rest.rows!;
      await this.#begin({ ...(rest as Omit<TableLine, 'table'>), table });
    } else if (sequence !== undefined) {
      const name = `${quoted(this.#schema)}.${quoted(sequence.name)}`;
      await this.#runner.execute(
        sql`select setval(${name}::regclass, ${sequence.last}::bigint, ${sequence.called}::boolean)`,
      );
    }
  }

  async #begin(table: TableLine): Promise<void> {
    this.#table = table;
    this.#missing = table.rows;
    const target = tableOf(this.#schema, table.table);
    const triggers = await rowsOf(
      this.#runner,
      sql`select 1 from pg_catalog.pg_trigger where not tgisinternal and tgrelid = ${`${quoted(this.#schema)}.${quoted(table.table)}`}::regclass limit 1`,
    );
    if (triggers.length > 0) {
      // What they would count or refuse is in the file as it was.
      await this.#runner.execute(sql`alter table ${target} disable trigger user`);
      this.#withTriggers.push(target);
    }
    // Rows that migrations and this start have made.
    await this.#runner.execute(sql`delete from ${target}`);
    if (this.#missing === 0) await this.#check();
  }

  async #row(line: string): Promise<void> {
    this.#missing -= 1;
    this.#batch.push(line);
    this.#batchSize += line.length;
    if (this.#batchSize >= batchChars || this.#missing === 0) await this.#insert();
    if (this.#missing === 0) await this.#check();
  }

  async #insert(): Promise<void> {
    const { table, columns } = this.#table!;
    const target = tableOf(this.#schema, table);
    const names = sql.join(
      columns.map((name) => sql.identifier(name)),
      sql`, `,
    );
    await this.#runner.execute(
      sql`insert into ${target} (${names}) overriding system value
          select ${names} from json_populate_recordset(null::${target}, ${`[${this.#batch.join(',')}]`}::text::json)`,
    );
    this.#batch = [];
    this.#batchSize = 0;
  }

  async #check(): Promise<void> {
    const { table, rows, sum } = this.#table!;
    const found = await sumOf(this.#runner, this.#schema, table);
    if (found.rows === rows && found.sum === sum) return;
    throw wrong(
      `The rows of ${this.#schema}.${table} do not come out as they were (${found.rows} of ${rows} rows, sum ${found.sum} instead of ${sum}): nothing was imported.`,
    );
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
