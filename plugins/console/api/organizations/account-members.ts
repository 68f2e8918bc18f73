/** Members of any account and invitations to it, for operators: what its owners may, each change with a reason. */

import { z } from '@hono/zod-openapi';
import { settleOwner } from '../../members/in-charge.ts';
import type { Inviter } from '../../members/types.ts';
import { memberAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, reasonInput, takes, writerOf } from '../schemas.ts';
import { handover, handoverJson, invitationList, invitationsOf, inviteInput, waitingOne } from './invitations.ts';
import { knownMember, memberRow, membersOf, roleInput } from './members.ts';

const row = memberRow.extend({
  signedInAt: instant.nullable().describe('When they signed in last; null: no session of theirs is kept.'),
});
const rowJson = writerOf(row);
const reason = reasonInput;
const keys = z
  .union([z.literal('revoke'), z.strictObject({ handTo: id })])
  .describe(
    'What becomes of their keys in the account: revoked at once, or from now on those of another member who may have keys.',
  );

const one = z.object({ id });
const ofMember = one.extend({ memberId: id });
const ofInvitation = one.extend({ invitationId: id });
const withReason = takes(z.strictObject({ reason }));

const list = route(
  'get',
  '/admin/accounts/{id}/members',
  "An account's members, the longest first",
  answers(z.object({ rows: z.array(row) })),
  { params: one },
);
const change = route(
  'patch',
  '/admin/accounts/{id}/members/{memberId}',
  'Change the role of a member of an account, in force at once',
  answers(done),
  { params: ofMember, body: takes(z.strictObject({ role: roleInput, reason })) },
);
const remove = route(
  'delete',
  '/admin/accounts/{id}/members/{memberId}',
  'Remove a member of an account at once',
  answers(done),
  { params: ofMember, body: takes(z.strictObject({ keys, reason })) },
);
const invitations = route(
  'get',
  '/admin/accounts/{id}/members/invitations',
  'Invitations to an account that wait, or have ended in the last 30 days; newest first',
  answers(invitationList),
  { params: one },
);
const invite = route(
  'post',
  '/admin/accounts/{id}/members/invitations',
  'Invite somebody to an account by their address',
  answers(handover),
  { params: one, body: takes(inviteInput.extend({ reason })) },
);
const resend = route(
  'post',
  '/admin/accounts/{id}/members/invitations/{invitationId}/resend',
  'Send another link of an invitation to an account',
  answers(handover),
  { params: ofInvitation, body: withReason },
);
const revoke = route(
  'delete',
  '/admin/accounts/{id}/members/invitations/{invitationId}',
  'Take an invitation to an account back',
  answers(done),
  { params: ofInvitation, body: withReason },
);

/** Operators do what owners may. */
const owner = { role: 'owner' } as const;

export function accountMemberRoutes(services: ConsoleServices) {
  const { invitations: invited, settings } = services;
  const admin = () => need(services, memberAdmin);
  // Mails and accounts name the gateway, not its operators.
  const inviter: Inviter = { by: owner, label: settings.name };
  return new Routes(services)
    .read(list, async ({ param }) => {
      const rows = await membersOf(services, await settled(services, param.id));
      const seen = await services.people.seenOf(rows.map((member) => member.id));
      return { rows: rows.map((member) => rowJson({ ...member, signedInAt: seen.get(member.id) })) };
    })
    .action(change, async ({ param: { id: accountId, memberId }, json: { role, ...why } }) => {
      const { view, subject } = await knownMember(services, await settled(services, accountId), memberId);
      const changes = [...changesOf({ accountId }), ...changesBetween({ role: view.role }, { role })];
      const run = () => admin().setRole(accountId, memberId, role, owner);
      return { ...why, action: 'member.change', subject, changes, run };
    })
    .action(remove, async ({ param: { id: accountId, memberId }, json: { keys: left, ...why } }) => {
      const { subject } = await knownMember(services, await settled(services, accountId), memberId);
      const gone = left === 'revoke' ? left : await addressOf(services, left.handTo);
      const run = () => admin().remove(accountId, memberId, left, owner);
      return { ...why, action: 'member.remove', subject, changes: changesOf({ accountId, keys: gone }), run };
    })
    .read(invitations, async ({ param }) => invitationsOf(services, (await knownAccount(services, param.id)).id))
    .action(invite, async ({ c, param: { id: accountId }, json: { reason: why, ...wanted } }) => {
      await settled(services, accountId);
      const run = async () => handoverJson(c, (await invited.invite(accountId, wanted, inviter)).handover);
      const changes = changesOf({ accountId, role: wanted.role });
      return { action: 'member.invite', subject: wanted.email, reason: why, changes, run };
    })
    .action(resend, async ({ c, param: { id: accountId, invitationId }, json }) => {
      const { email: subject } = await waitingOne(services, accountId, invitationId);
      const run = async () => handoverJson(c, await invited.resend(accountId, invitationId, inviter));
      return { ...json, action: 'member.invite_again', subject, changes: changesOf({ accountId }), run };
    })
    .action(revoke, async ({ param: { id: accountId, invitationId }, json }) => {
      const { email: subject } = await waitingOne(services, accountId, invitationId);
      const run = () => invited.revoke(accountId, invitationId, owner);
      return { ...json, action: 'member.uninvite', subject, changes: changesOf({ accountId }), run };
    });
}

/** A known account with its first owner. */
async function settled(services: ConsoleServices, accountId: string): Promise<string> {
  await knownAccount(services, accountId);
  await settleOwner(need(services, memberAdmin), await services.people.ownersOf([accountId]), accountId);
  return accountId;
}

async function addressOf({ invitations }: ConsoleServices, personId: string): Promise<string> {
  return (await invitations.named([personId])).get(personId)?.email ?? personId;
}
