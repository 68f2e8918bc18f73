/** Members by a key of the organization: who people are, invitations by mail, and the log. */
import type { Host } from '../../../core/contract/contract.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { consolePages } from '../../common/domain/admin/alerts.ts';
import type { AdministratorKey, MemberContacts } from '../../common/domain/organizations/members.ts';
import type { Actor } from '../actor.ts';
import type { ConsoleServices } from '../api/routing/router.ts';
import { accountLog } from './account-log.ts';

type Parts = Pick<ConsoleServices, 'invitations' | 'audit' | 'settings' | 'find'>;

const admin = { role: 'admin' } as const;

/** `parts`: asked for with each use, since a reload makes others. */
export function openContacts(host: Pick<Host, 'find'>, parts: () => Parts): MemberContacts {
  const logged: MemberContacts['logged'] = async ({ accountId, keyId, address }, change, work) => {
    const end = await parts().audit.begin({ actor: actorOf(keyId), reason: undefined, ...change, address, accountId });
    try {
      const value = await work();
      await end('done');
      return value;
    } catch (error) {
      const { code, kind } = toGatewayError(error);
      await end(code ?? kind);
      throw error;
    }
  };
  return {
    logged,
    named: (people) => parts().invitations.named(people),
    invite(key, { email, role }) {
      const { invitations, settings } = parts();
      const changes = [{ field: 'role', before: null, after: role }];
      return logged(key, { action: 'member.invite', subject: email, changes }, async () => {
        const by = { by: admin, label: settings.name };
        const { id, handover } = await invitations.invite(key.accountId, { email, role }, by);
        const { link } = handover;
        return { id, link: link && (host.find(consolePages)?.address(link.slice('/console'.length)) ?? link) };
      });
    },
    async withdraw(key: AdministratorKey, invitationId) {
      const { invitations } = parts();
      const found = await invitations.find(key.accountId, invitationId);
      const subject = found?.email ?? invitationId;
      await logged(key, { action: 'member.uninvite', subject }, () =>
        invitations.revoke(key.accountId, invitationId, admin),
      );
    },
    log: (accountId, span, page) => accountLog(parts(), accountId, span, page),
  };
}

const actorOf = (id: string): Actor => ({ kind: 'token', id, label: `key ${id}`, role: 'client' });
