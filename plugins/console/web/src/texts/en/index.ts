/** English: every text that the pages show. The other languages have the same keys, in this order. */
import account from './account.ts';
import type budgets from './budgets.ts';
import client from './client.ts';
import type company from './company.ts';
import type connect from './connect.ts';
import type creditLine from './credit-line.ts';
import entry from './entry.ts';
import type files from './files.ts';
import type insights from './insights.ts';
import type members from './members.ts';
import type operator from './operator.ts';
import type playground from './playground.ts';
import type profile from './profile.ts';
import type projects from './projects.ts';
import type rotation from './rotation.ts';
import shell from './shell.ts';
import type statements from './statements.ts';

/** What the first page needs; texts of the operator, the profile, the playground, files and batches come with their pages. */
const texts = { shell, entry, client: { ...client, ...account } };
export default texts;
export type English = typeof texts & {
  readonly client: typeof playground &
    typeof files &
    typeof insights &
    typeof profile &
    typeof connect &
    typeof statements &
    typeof creditLine &
    typeof projects &
    typeof budgets &
    typeof members &
    typeof rotation &
    typeof company;
  readonly operator: typeof operator;
};
