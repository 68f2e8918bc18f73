/** Chinese, with the keys of en.ts. */
import type { Texts } from '../en.ts';
import account from './account.ts';
import client from './client.ts';
import entry from './entry.ts';
import files from './files.ts';
import playground from './playground.ts';
import shell from './shell.ts';

const texts: Omit<Texts, 'operator'> = { shell, entry, client: { ...client, ...account, ...files, ...playground } };
export default texts;
