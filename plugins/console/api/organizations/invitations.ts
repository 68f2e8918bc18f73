/** Invitations to the chosen account, and accepting one. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { type Inviter, isOver } from '../../members/types.ts';
import type { Handover } from '../../people.ts';
import { changesOf } from '../routing/audit-changes.ts';
import {
  actorOf,
  type ConsoleServices,
  nothingHere,
  ownAccount,
  type RequestContext,
  refuseCompany,
} from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, takes, writerOf } from '../schemas.ts';
import { roleInput } from './members.ts';

const invitationRow = z
  .object({
    id: z.string(),
    email: z.string(),
    role: roleInput,
    invitedBy: z
      .string()
      .nullable()
      .describe('Address of the person; null: a key of the organization, an operator, or somebody who is gone.'),
    createdAt: instant,
    expiresAt: instant,
    acceptedAt: instant.nullable(),
  })
  .openapi('MemberInvitation');
const invitationJson = writerOf(invitationRow);
export const invitationList = z.object({ rows: z.array(invitationRow) });
export const handover = z.object({
  mailed: z.boolean(),
  link: z.string().nullable().describe('To hand over yourself; null: it went out by mail.'),
});
export const inviteInput = z.strictObject({ email: z.email().max(200), role: roleInput });
const invited = z.object({ account: z.string(), email: z.string(), role: roleInput }).openapi('Invited');
const token = z.string().min(1).max(200);
const one = { params: z.object({ id }) };

const list = route(
  'get',
  '/members/invitations',
  'Invitations that wait, or have ended in the last 30 days; newest first',
  answers(invitationList),
);
const create = route('post', '/members/invitations', 'Invite somebody by their address', answers(handover), {
  body: takes(inviteInput),
});
const resend = route('post', '/members/invitations/{id}/resend', 'Send another link', answers(handover), one);
const revoke = route('delete', '/members/invitations/{id}', 'Take an invitation back', answers(done), one);
const look = route('get', '/members/join', 'What a link invites to', answers(invited), {
  query: z.object({ token }),
});
const join = route('post', '/members/join', 'Accept an invitation, and act in its account', answers(done), {
  body: takes(z.strictObject({ token })),
});

/** Links that one address may try which are none, in a time. */
const mostWrong = 20;
const windowMs = 10 * 60_000;

export function invitationRoutes(services: ConsoleServices) {
  const { invitations, people } = services;
  return new Routes(services)
    .read(list, async ({ c }) => invitationsOf(services, await ownAccount(services, c)))
    .action(create, async ({ c, json }) => {
      const accountId = await ownAccount(services, c);
      const run = async () => handoverJson(c, (await invitations.invite(accountId, json, inviterOf(c))).handover);
      return { action: 'member.invite', subject: json.email, changes: changesOf({ role: json.role }), run };
    })
    .action(resend, async ({ c, param }) => {
      const { accountId, email: subject } = await own(services, c, param.id);
      const run = async () => handoverJson(c, await invitations.resend(accountId, param.id, inviterOf(c)));
      return { action: 'member.invite_again', subject, run };
    })
    .action(revoke, async ({ c, param }) => {
      const { accountId, email: subject } = await own(services, c, param.id);
      return {
        action: 'member.uninvite',
        subject,
        run: () => invitations.revoke(accountId, param.id, inviterOf(c).by),
      };
    })
    .read(look, async ({ c, query }) => {
      const { account, email, role: wanted } = await tried(services, c, query.token);
      return { account, email, role: wanted };
    })
    .action(join, async ({ c, json }) => {
      refuseCompany(c);
      const { accountId, role: wanted } = await tried(services, c, json.token);
      const run = async () => {
        const joined = await invitations.accept(json.token, actorOf(c));
        await people.choose(c.req.raw.headers, joined.accountId);
      };
      return { action: 'member.join', subject: actorOf(c).label, accountId, changes: changesOf({ role: wanted }), run };
    });
}

export async function invitationsOf({ invitations }: ConsoleServices, accountId: string) {
  const rows = await invitations.list(accountId);
  const named = await invitations.named(rows.flatMap(({ invitedBy }) => invitedBy ?? []));
  return {
    rows: rows.map((row) => invitationJson({ ...row, invitedBy: named.get(row.invitedBy ?? '')?.email })),
  };
}

async function own(services: ConsoleServices, c: RequestContext, invitationId: string) {
  return waitingOne(services, await ownAccount(services, c), invitationId);
}

export async function waitingOne({ invitations }: ConsoleServices, accountId: string, invitationId: string) {
  const found = await invitations.find(accountId, invitationId);
  if (found === undefined) throw nothingHere('invitation');
  return found;
}

/** Links that are none are counted by the address that tries them; after some, right ones are no longer looked at either. */
async function tried({ invitations, throttle }: ConsoleServices, c: RequestContext, secret: string) {
  const key = `member-join:${c.env.address}`;
  const retryAfterMs = throttle.waiting(key);
  if (retryAfterMs > 0) throw new GatewayError('rate_limited', 'Too many links. Try again later.', { retryAfterMs });
  const found = await invitations.look(secret);
  if (found !== undefined) return found;
  throttle.take(key, mostWrong, windowMs);
  throw isOver();
}

function inviterOf(c: RequestContext): Inviter {
  const { id: person, label } = actorOf(c);
  return { by: { person }, label };
}

export const handoverJson = (c: RequestContext, { mailed, link }: Handover) => ({
  mailed,
  link: link === undefined ? null : c.env.origin + link,
});
