/** Becoming a member without an invitation: for those whom the account itself has named. */
import { eq } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Database, isUuid } from '../../common/domain/database.ts';
import type { MemberAdmin } from '../../common/domain/organizations/members.ts';
import { authTables } from '../tables.ts';
import { refuseFull, rolesThen } from './invitations.ts';

export function openJoining(database: Database, now: () => Date): Pick<MemberAdmin, 'join'> {
  const tables = authTables(database.schema);
  const { accounts, members } = tables;
  return {
    async join(accountId, person, role) {
      if (!isUuid(accountId)) throw noAccount();
      await database.change('member', accountId, async (transaction) => {
        const which = eq(accounts.id, accountId);
        const [account] = await transaction.select({ id: accounts.id }).from(accounts).where(which).for('update');
        if (account === undefined) throw noAccount();
        await refuseFull(transaction, members, accountId);
        await rolesThen(transaction, tables, { accountId, role, person, at: now() });
      });
    },
  };
}

const noAccount = () => new GatewayError('not_found', 'There is no such account.', { field: 'account' });
