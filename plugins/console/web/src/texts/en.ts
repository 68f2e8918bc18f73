/** English: every text that the pages show. The other languages have the same keys. */
import account from './en/account.ts';
import client from './en/client.ts';
import entry from './en/entry.ts';
import type files from './en/files.ts';
import type operator from './en/operator.ts';
import type playground from './en/playground.ts';
import shell from './en/shell.ts';

/** What the first page needs; texts of the operator, the playground, files and batches come with their pages. */
const texts = { shell, entry, client: { ...client, ...account } };
export default texts;
export type English = typeof texts & {
  readonly client: typeof playground & typeof files;
  readonly operator: typeof operator;
};

/** Same keys, other words. */
export type Words<T> = { readonly [K in keyof T]: T[K] extends string ? string : Words<T[K]> };
export type Texts = Words<English>;
export type Part<K extends keyof Texts> = Texts[K];
