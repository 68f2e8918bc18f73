/** Which account a signed-in person acts in, and with which role. */
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { sessionTokenOf } from '../people/cookies.ts';
import { sessionHash } from '../people/hashed-sessions.ts';
import type { Secrets } from '../people/secrets.ts';
import type { PeopleStore } from '../people/store.ts';
import type { Membership, People } from '../people.ts';
import { memberAdmin } from '../services.ts';

interface Parts {
  readonly host: Pick<Host, 'find'>;
  readonly store: PeopleStore;
  readonly sessionCookie: string;
  readonly secrets: Secrets;
}

export function membershipsOf(
  parts: Parts,
  accountOf: People['accountOf'],
): Pick<People, 'accountOf' | 'membershipOf' | 'choose'> {
  const { host, store } = parts;
  const members = () => host.find(memberAdmin);
  const atHome = async (personId: string): Promise<Membership> => {
    const accountId = await accountOf(personId);
    const admin = members();
    const role = admin === undefined ? 'owner' : await admin.roleAtHome(accountId, personId);
    if (role !== undefined) return { accountId, role };
    // They have left the account that was made for them.
    const [other] = (await admin?.accountsOf(personId)) ?? [];
    if (other !== undefined) return { accountId: other.accountId, role: other.role };
    throw inNone();
  };
  const inNamed = async (personId: string, accountId: string): Promise<Membership> => {
    const admin = members();
    const role = await admin?.roleOf(accountId, personId);
    if (role !== undefined) return { accountId, role };
    const home = await atHome(personId);
    if (home.accountId === accountId) return home;
    throw new GatewayError('forbidden', 'You are not in this account any more. Load the page again.', {
      code: 'not_in_account',
    });
  };
  return {
    accountOf,
    async membershipOf({ id, named, chosen, company }) {
      if (company !== undefined) {
        const role = await members()?.roleOf(company, id);
        if (role === undefined) throw inNone();
        return { accountId: company, role };
      }
      if (named !== undefined) return inNamed(id, named);
      const role = chosen === undefined ? undefined : await members()?.roleOf(chosen, id);
      return role === undefined ? atHome(id) : { accountId: chosen!, role };
    },
    async choose(headers, accountId) {
      const token = sessionTokenOf(headers.get('cookie'), parts.sessionCookie, parts.secrets);
      if (token !== undefined) await store.choose(sessionHash(token), accountId);
    },
  };
}

const inNone = () =>
  new GatewayError('forbidden', 'You are in no account any more. Ask somebody who is in one to invite you.', {
    code: 'no_account',
  });
