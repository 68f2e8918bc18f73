/** Statements with named parameters, and rows that come as columns in such parameters. */
import { type Placeholder, type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { MadeParameters } from '../domain/database.ts';

/** A statement in words, and the names of its parameters, in the order of their numbers. */
export interface Wording {
  readonly text: string;
  readonly names: readonly string[];
}

/** A text that the driver passes as it is, whatever it takes the type for. */
export const named = (name: string, type = 'text'): SQL =>
  type === 'text' ? sql`${sql.placeholder(name)}::text` : sql`${sql.placeholder(name)}::text::${sql.raw(type)}`;

const dialect = new PgDialect();

/** The same name gets the same number each time. */
export function wordingOf(statement: SQL): Wording {
  const { sql: text, params } = dialect.sqlToQuery(statement);
  const given = params.map((parameter) => (parameter as Placeholder).name as string);
  const names = [...new Set(given)];
  return { text: text.replace(/\$(\d+)/g, (_all, number) => `$${names.indexOf(given[number - 1]!) + 1}`), names };
}

/** The statement with parameters in the order of the names. */
export function filled({ text }: Wording, parameters: readonly unknown[]): SQL {
  const pieces = text.split(/\$(\d+)/);
  return sql.join(pieces.map((piece, index) => (index % 2 === 0 ? sql.raw(piece) : sql`${parameters[+piece - 1]}`)));
}

/** The statement with parameters that the driver has made. Only the first is known to the query builder: it stands for all. */
export function filledBeside({ text }: Wording, made: MadeParameters): SQL {
  const [before, after] = [text.indexOf('$1'), text.indexOf('$1') + 2];
  return sql`${sql.raw(text.slice(0, before))}${made}${sql.raw(text.slice(after))}`;
}

/** The rows of columns, as a source. In the first one no value is null. */
export function rowsOfColumns(
  columns: readonly { readonly name: string; readonly type: string }[],
  as = columns.map(({ name }) => name),
): SQL {
  const lists = columns.map(({ name, type }, index) => {
    const list =
      type === 'text'
        ? sql`string_to_array(${named(name)}, ${named('separator')}, ${named('nothing')})`
        : named(name, `${type}[]`);
    return sql`unnest(${list}) as ${sql.identifier(as[index]!)}`;
  });
  // Side by side in a list they take their turns without tables between, which costs half.
  return sql`(select * from (select ${sql.join(lists, sql`, `)}) as lists where ${sql.identifier(as[0]!)} is not null)`;
}
