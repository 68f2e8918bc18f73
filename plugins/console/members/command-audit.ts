/** What a command changes in an account, as a row of the audit log, of the account too. */
import { hostname, userInfo } from 'node:os';
import type { Host } from '../../../core/contract/contract.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Database } from '../../common/domain/database.ts';
import { openAudit } from '../people/audit.ts';
import { consoleTables } from '../people/tables.ts';
import type { AuditChange } from '../people.ts';

interface CommandChange {
  readonly accountId: string;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | undefined;
  readonly changes: readonly AuditChange[];
}

export async function auditedCommand(
  { host, store }: { readonly host: Pick<Host, 'clock' | 'random'>; readonly store: Database },
  { reason, ...change }: CommandChange,
  work: () => Promise<void>,
): Promise<void> {
  if (reason === undefined) throw invalid('Say why: --reason TEXT.', 'reason');
  const { clock, random } = host;
  const newId = () => random.bytes(16).toString('hex');
  const end = await openAudit(store.orm, consoleTables(store.schema), { clock, newId }).begin({
    ...change,
    actor: { kind: 'token', id: 'command', label: 'operator', role: 'operator' },
    // The account's owners read all of the row but this.
    reason: `${reason} (command line, ${userInfo().username}@${hostname()})`,
    address: 'local',
  });
  try {
    await work();
    await end('done');
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    await end(code ?? kind);
    throw error;
  }
}
