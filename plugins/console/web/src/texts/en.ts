/** English: every text that the pages show. The other languages have the same keys. */
import account from './en/account.ts';
import client from './en/client.ts';
import entry from './en/entry.ts';
import files from './en/files.ts';
import type operator from './en/operator.ts';
import type playground from './en/playground.ts';
import shell from './en/shell.ts';

/** What the first page needs; the operator's and the playground's texts come with their pages. */
const texts = { shell, entry, client: { ...client, ...account, ...files } };
export default texts;
export type English = typeof texts & { readonly client: typeof playground; readonly operator: typeof operator };

/** Same keys, other words. */
export type Words<T> = { readonly [K in keyof T]: T[K] extends string ? string : Words<T[K]> };
export type Texts = Words<English>;
export type Part<K extends keyof Texts> = Texts[K];
