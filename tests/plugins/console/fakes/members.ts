/** Members and invitations in memory: an account of four people, and one more that waits. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type {
  InvitationView,
  MemberAdmin,
  MemberView,
} from '../../../../plugins/common/domain/organizations/members.ts';
import type { MemberRole } from '../../../../plugins/common/domain/organizations/rights.ts';
import { type Invitations, isOver } from '../../../../plugins/console/members/types.ts';
import type { Owner, People } from '../../../../plugins/console/people.ts';
import { clientAccount, dayMs, type World } from './world.ts';

const colleagues: readonly (Owner & { readonly role: MemberRole; readonly keys: number })[] = [
  { id: 'person-admin', name: 'Ben Admin', email: 'ben@example.test', role: 'admin', keys: 2 },
  { id: 'person-billing', name: 'Cleo Billing', email: 'cleo@example.test', role: 'billing', keys: 0 },
  { id: 'person-developer', name: 'Dan Developer', email: 'dan@example.test', role: 'developer', keys: 3 },
];

const noMember = () => new GatewayError('not_found', 'There is no such member.', { field: 'id' });

type Fake = Pick<MemberAdmin, 'roleOf' | 'accountsOf' | 'list' | 'setRole' | 'remove'>;

export function fakeMembers(world: World): MemberAdmin {
  const rows: MemberView[] = colleagues.map(({ id: person, role, keys }, index) => ({
    ...{ person, role, keys, since: world.now() - (20 - index) * dayMs },
    keysUsedAt: keys === 0 ? undefined : world.now() - index * 3_600_000,
  }));
  const own = (): MemberView => ({
    ...{ person: 'person-client', role: world.memberRole, since: world.now() - 30 * dayMs, keys: 2 },
    keysUsedAt: world.now() - 60_000,
  });
  const at = (person: string) => {
    const index = rows.findIndex((row) => row.person === person);
    if (index < 0) throw noMember();
    return index;
  };
  const nameOf = (accountId: string) => world.accounts.find(({ id }) => id === accountId)?.name ?? '';
  const fake: Fake = {
    roleOf: async (_accountId, person) =>
      person === 'person-client' ? world.memberRole : rows.find((row) => row.person === person)?.role,
    accountsOf: async () =>
      [clientAccount, world.accounts[1]!.id].map((accountId, index) => ({
        ...{ accountId, name: nameOf(accountId), role: index === 0 ? world.memberRole : 'developer' },
      })),
    list: async () => [own(), ...rows],
    async setRole(_accountId, person, role) {
      const index = at(person);
      rows[index] = { ...rows[index]!, role };
    },
    async remove(_accountId, person) {
      rows.splice(at(person), 1);
    },
  };
  return {
    ...fake,
    roleAtHome: async () => world.memberRole,
    join: async () => undefined,
    peopleOf: async () => new Map(),
    invitations: undefined as never,
  };
}

export function fakeInvitations(world: World, people: Pick<People, 'find'>): Invitations {
  const rows: InvitationView[] = [];
  const make = (email: string, role: MemberRole): InvitationView => {
    const row = { id: world.nextId('invitation'), accountId: clientAccount, email, role, invitedBy: 'person-client' };
    const made = { ...row, createdAt: world.now(), expiresAt: world.now() + 7 * dayMs, acceptedAt: undefined };
    rows.unshift(made);
    return made;
  };
  make('eve@example.test', 'developer');
  const handover = (email: string) => ({
    mailed: false,
    link: `/console/sign-up?join=fake&email=${encodeURIComponent(email)}`,
  });
  return {
    list: async () => rows,
    find: async (_accountId, id) => rows.find((row) => row.id === id),
    async invite(_accountId, { email, role }) {
      return { id: make(email, role).id, handover: handover(email) };
    },
    resend: async (_accountId, id) => handover(rows.find((row) => row.id === id)?.email ?? ''),
    async revoke(_accountId, id) {
      rows.splice(
        rows.findIndex((row) => row.id === id),
        1,
      );
    },
    look: async (token) =>
      token === 'fake'
        ? { accountId: clientAccount, account: 'Acme', email: 'client@example.test', role: 'developer' }
        : undefined,
    async accept(token) {
      if (token !== 'fake') throw isOver();
      return { accountId: clientAccount, role: 'developer' };
    },
    async named(ids) {
      const known = await Promise.all(
        ids.map(async (id) => colleagues.find((one) => one.id === id) ?? (await people.find(id))),
      );
      return new Map(known.flatMap((one) => (one === undefined ? [] : [[one.id, one]])));
    },
  };
}
