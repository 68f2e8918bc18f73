/** English: every text that the pages show. The other languages have the same keys. */
import account from './en/account.ts';
import client from './en/client.ts';
import entry from './en/entry.ts';
import operator from './en/operator.ts';
import shell from './en/shell.ts';

export const en = { shell, entry, client: { ...client, ...account }, operator };

/** Same keys, other words. */
export type Words<T> = { readonly [K in keyof T]: T[K] extends string ? string : Words<T[K]> };
export type Texts = Words<typeof en>;
export type Part<K extends keyof Texts> = Texts[K];
