/** Members of accounts: roles, who may give and take which, the last owner, keys of those who go, and invitations by which people join. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { authTables } from '../../../plugins/auth/tables.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { memberAdmin } from '../../../plugins/common/domain/organizations/members.ts';
import { projectAdmin } from '../../../plugins/common/domain/organizations/projects.ts';
import { type MemberRole, mayManage, memberRoles } from '../../../plugins/common/domain/organizations/rights.ts';
import { closeEmbedded } from './embedded.ts';
import { openGate } from './setup.ts';

after(closeEmbedded);

const refused = (code: string) => (error: { kind: string; code?: string }) => {
  assert.equal(error.code ?? error.kind, code);
  return true;
};

let count = 0;

/** An account that ada owns. */
async function openMembers() {
  const gate = await openGate();
  const members = gate.host.get(memberAdmin);
  const admin = gate.host.get(accountAdmin);
  const { accountId } = gate;
  await members.roleAtHome(accountId, 'ada');
  const invited = async (email: string, role: MemberRole, by = 'ada') => {
    const hash = `hash-${count++}`;
    return { hash, row: await members.invitations.create(accountId, { email, role, hash }, { person: by }) };
  };
  const join = async (person: string, role: MemberRole) => {
    const email = `${person}@example.test`;
    const { hash } = await invited(email, role);
    await members.invitations.accept(hash, { person, email });
  };
  return { ...gate, members, admin, invited, join, ada: { person: 'ada' } };
}

test('the person whom an account was made for owns it from the first question on, and a stranger is no member', async () => {
  const { members, accountId } = await openMembers();
  assert.equal(await members.roleOf(accountId, 'ada'), 'owner');
  assert.equal(await members.roleOf(accountId, 'ben'), undefined);
  assert.deepEqual(await members.accountsOf('ada'), [{ accountId, name: 'acme', role: 'owner' }]);
  for (const missing of ['nothing', '00000000-0000-4000-8000-000000000000'])
    assert.deepEqual([await members.roleOf(missing, 'ada'), await members.list(missing)], [undefined, []]);
});

test('members give and take the roles that the table says, for each pair of roles, and no others', async () => {
  const { members, accountId, db } = await openMembers();
  const rows = authTables(db.schema).members;
  const put = (person: string, role: MemberRole) =>
    db.orm
      .insert(rows)
      .values({ accountId, person, role, createdAt: new Date(0) })
      .onConflictDoUpdate({ target: [rows.accountId, rows.person], set: { role } });
  for (const by of memberRoles) {
    await put('by', by);
    for (const before of memberRoles)
      for (const role of memberRoles) {
        await put('other', before);
        const change = members.setRole(accountId, 'other', role, { person: 'by' });
        const isAllowed = mayManage(by, before) && mayManage(by, role);
        if (isAllowed) await change;
        else await assert.rejects(change, refused('role_not_included'), `${by}: ${before} to ${role}`);
        assert.equal(await members.roleOf(accountId, 'other'), isAllowed ? role : before);
      }
    for (const before of memberRoles) {
      await put('other', before);
      const removal = members.remove(accountId, 'other', 'revoke', { person: 'by' });
      if (mayManage(by, before)) await removal;
      else await assert.rejects(removal, refused('role_not_included'), `${by} removes ${before}`);
    }
  }
});

test('the last owner neither leaves nor steps down, and once another is one, they do and do not own it again', async () => {
  const { members, accountId, join, ada } = await openMembers();
  await assert.rejects(members.remove(accountId, 'ada', 'revoke', ada), refused('last_owner'));
  await assert.rejects(members.setRole(accountId, 'ada', 'admin', ada), refused('last_owner'));
  await join('ben', 'owner');
  await members.remove(accountId, 'ada', 'revoke', ada);
  assert.equal(await members.roleAtHome(accountId, 'ada'), undefined, 'the account that was made for them');
  await assert.rejects(members.remove(accountId, 'ben', 'revoke', { person: 'ben' }), refused('last_owner'));
  await join2(members, accountId, 'ada', 'viewer', 'ben');
  assert.equal(await members.roleAtHome(accountId, 'ada'), 'viewer');
});

async function join2(
  members: Awaited<ReturnType<typeof openMembers>>['members'],
  accountId: string,
  person: string,
  role: MemberRole,
  by: string,
) {
  const [email, hash] = [`${person}@example.test`, `hash-${count++}`];
  await members.invitations.create(accountId, { email, role, hash }, { person: by });
  return members.invitations.accept(hash, { person, email });
}

test("a removed member's keys are revoked at once or go on in another's name, and other keys stay", async () => {
  const { members, admin, host, accountId, join, ada, send, refusal } = await openMembers();
  const projects = host.get(projectAdmin);
  await join('ben', 'developer');
  await join('eve', 'developer');
  const make = (person?: string) => admin.createKey(accountId, { name: 'k' }, person);
  const [ben, eve, service] = [await make('ben'), await make('eve'), await make()];
  const { id: project } = await projects.create(accountId, { name: 'eval', owner: 'ben' });
  for (const { key } of [ben, eve, service]) await send(key);
  await members.remove(accountId, 'ben', 'revoke', ada);
  assert.equal((await refusal(ben.key)).kind, 'unauthenticated');
  assert.equal((await send(eve.key)).attribution?.person, 'eve');
  assert.equal((await projects.find(accountId, project))?.owner, undefined);
  await assert.rejects(members.remove(accountId, 'eve', { handTo: 'a stranger' }, ada), refused('not_found'));
  const own = members.remove(accountId, 'eve', { handTo: 'eve' }, { person: 'eve' });
  await assert.rejects(own, refused('not_found'), 'keys go to somebody who stays');
  await members.remove(accountId, 'eve', { handTo: 'ada' }, ada);
  assert.equal((await send(eve.key)).attribution?.person, 'ada');
  assert.equal((await send(service.key)).attribution?.person, undefined);
  await assert.rejects(members.remove(accountId, 'eve', 'revoke', ada), refused('not_found'));
});

test('a member who is removed in one process is refused in another at once, by a key that it had in memory', async () => {
  const here = await openMembers();
  const there = await openGate({}, here.db);
  await here.join('ben', 'developer');
  const { key } = await here.admin.createKey(here.accountId, { name: 'k' }, 'ben');
  assert.equal((await there.send(key)).attribution?.person, 'ben');
  assert.equal(await there.host.get(memberAdmin).roleOf(here.accountId, 'ben'), 'developer');
  await here.members.remove(here.accountId, 'ben', 'revoke', here.ada);
  assert.equal((await there.refusal(key)).kind, 'unauthenticated');
  assert.equal(await there.host.get(memberAdmin).roleOf(here.accountId, 'ben'), undefined);
});

test('an invitation is accepted once, by its address alone, of two at once by one', async () => {
  const { members, accountId, invited } = await openMembers();
  const { invitations } = members;
  const { hash } = await invited('ben@example.test', 'developer');
  assert.equal((await invitations.byHash(hash))?.account, 'acme');
  assert.equal(await invitations.accept(hash, { person: 'eve', email: 'eve@example.test' }), undefined);
  const who = { person: 'ben', email: 'Ben@Example.test' };
  const both = await Promise.all([invitations.accept(hash, who), invitations.accept(hash, who)]);
  assert.deepEqual(
    both.filter((one) => one !== undefined),
    [{ accountId, name: 'acme', role: 'developer' }],
  );
  assert.equal(await invitations.accept(hash, who), undefined, 'once');
  assert.equal(await invitations.byHash(hash), undefined);
  assert.equal((await invitations.list(accountId))[0]!.acceptedAt !== undefined, true);
  assert.equal(await invitations.accept('unknown', who), undefined);
});

test('an invitation that was revoked, renewed, outlived, or made by somebody who is gone opens nothing', async () => {
  const { members, accountId, invited, join, host, ada } = await openMembers();
  const { invitations } = members;
  const opens = async (hash: string, email: string) =>
    (await invitations.accept(hash, { person: email, email })) !== undefined;
  const revoked = await invited('a@example.test', 'viewer');
  assert.deepEqual(await invitations.revoke(accountId, revoked.row.id, ada), { hash: revoked.hash });
  assert.equal(await opens(revoked.hash, 'a@example.test'), false);
  const renewed = await invited('b@example.test', 'viewer');
  const again = await invitations.renew(accountId, renewed.row.id, 'another', ada);
  assert.equal(again.before, renewed.hash);
  assert.deepEqual(
    [await opens(renewed.hash, 'b@example.test'), await opens('another', 'b@example.test')],
    [false, true],
  );
  await join('zoe', 'admin');
  const backdoor = await invited('c@example.test', 'admin', 'zoe');
  await members.remove(accountId, 'zoe', 'revoke', ada);
  assert.equal(await opens(backdoor.hash, 'c@example.test'), false);
  const late = await invited('d@example.test', 'viewer');
  host.advance(7 * 86_400_000);
  assert.equal(await opens(late.hash, 'd@example.test'), false);
  await assert.rejects(invitations.revoke(accountId, late.row.id, ada), refused('not_found'));
});

test('an admin invites no owner and takes no invitation of one back, and others invite none at all', async () => {
  const { members, accountId, invited, join } = await openMembers();
  const owner = await invited('o@example.test', 'owner');
  for (const role of ['admin', 'billing', 'developer', 'viewer'] as const) {
    await join(role, role);
    await assert.rejects(invited('x@example.test', 'owner', role), refused('role_not_included'));
    await assert.rejects(
      members.invitations.revoke(accountId, owner.row.id, { person: role }),
      refused('role_not_included'),
    );
    if (role !== 'admin') await assert.rejects(invited('x@example.test', 'viewer', role), refused('role_not_included'));
  }
  await assert.rejects(invited('x@example.test', 'viewer', 'a stranger'), refused('role_not_included'));
  await invited('x@example.test', 'viewer', 'admin');
  await assert.rejects(invited('x@example.test', 'viewer'), refused('conflict'));
  const organization = await members.invitations.create(
    accountId,
    { email: 'y@example.test', role: 'admin', hash: 'of-a-key' },
    { role: 'admin' },
  );
  assert.equal(organization.invitedBy, undefined);
});

test('a member who accepts another invitation keeps their role, unless it makes them an owner', async () => {
  const { members, accountId, join } = await openMembers();
  await join('ben', 'admin');
  await join('ben', 'viewer');
  assert.equal(await members.roleOf(accountId, 'ben'), 'admin');
  await join('ben', 'owner');
  assert.equal(await members.roleOf(accountId, 'ben'), 'owner');
  assert.deepEqual(
    [...(await members.peopleOf([accountId], ['owner'])).values()].map((people) => people.toSorted()),
    [['ada', 'ben']],
  );
});

test('at most a hundred invitations of an account wait', async () => {
  const { invited, members, accountId } = await openMembers();
  for (let index = 0; index < 100; index++) await invited(`${index}@example.test`, 'viewer');
  await assert.rejects(invited('more@example.test', 'viewer'), refused('conflict'));
  const [first] = await members.invitations.list(accountId);
  await members.invitations.revoke(accountId, first!.id, { person: 'ada' });
  await invited('more@example.test', 'viewer');
});

test('a member of any role leaves by themselves, and invitations by somebody who is demoted are over', async () => {
  const { members, accountId, join, invited, ada } = await openMembers();
  for (const role of memberRoles.filter((one) => one !== 'owner')) {
    await join(role, role);
    await members.remove(accountId, role, 'revoke', { person: role });
    assert.equal(await members.roleOf(accountId, role), undefined);
  }
  await join('ben', 'admin');
  const { hash } = await invited('cleo@example.test', 'viewer', 'ben');
  await members.setRole(accountId, 'ben', 'developer', ada);
  assert.equal(await members.invitations.accept(hash, { person: 'cleo', email: 'cleo@example.test' }), undefined);
});
