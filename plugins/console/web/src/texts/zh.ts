/** Chinese, with the keys of en.ts. */
import type { Texts } from './en.ts';
import account from './zh/account.ts';
import client from './zh/client.ts';
import entry from './zh/entry.ts';
import operator from './zh/operator.ts';
import shell from './zh/shell.ts';

export const zh: Texts = { shell, entry, client: { ...client, ...account }, operator };
