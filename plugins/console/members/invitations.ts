/** Invitations to an account: a link by mail, for one address, which lets its person sign up here too. */
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { InvitationView, MemberAdmin } from '../../common/domain/organizations/members.ts';
import { joinPath, type Links } from '../people/links.ts';
import { type Mailer, words } from '../people/mail.ts';
import { hashSecret } from '../people/secrets.ts';
import type { PeopleStore } from '../people/store.ts';
import type { Throttle } from '../people/throttle.ts';
import type { Handover } from '../people.ts';
import { accountAdmin, memberAdmin } from '../services.ts';
import { type Invitations, type Inviter, isOver } from './types.ts';

const dayMs = 86_400_000;
/** Mails that an account may have sent in a day, and the time between two of one invitation. */
const mostSent = 100;
const resendMs = 60_000;

interface Parts {
  readonly host: Pick<Host, 'find'>;
  readonly links: Links;
  readonly mailer: Mailer | undefined;
  readonly store: PeopleStore;
  readonly throttle: Throttle;
  readonly settings: { readonly name: string; readonly origin: string };
}

export function openInvitations(parts: Parts): Invitations {
  const { host, links, store, throttle } = parts;
  const members = () => membersOf(host);
  return {
    list: async (accountId) => (await host.find(memberAdmin)?.invitations.list(accountId)) ?? [],
    find: (accountId, id) => members().invitations.find(accountId, id),
    async invite(accountId, { email, role }, by) {
      const address = email.toLowerCase();
      await refuseMember(parts, accountId, { address, role });
      takeTurn(throttle, `member-mail:${accountId}`, mostSent, dayMs);
      const secret = await links.make('invitation', address);
      const wanted = { email: address, role, hash: hashSecret(secret) };
      const made = await members()
        .invitations.create(accountId, wanted, by.by)
        .catch(async (error: unknown) => {
          await links.withdraw(wanted.hash);
          throw error;
        });
      return { id: made.id, handover: await handOver(parts, made, secret, by.label) };
    },
    resend: (accountId, id, by) => resend(parts, { accountId, id }, by),
    async revoke(accountId, id, by) {
      const { hash } = await members().invitations.revoke(accountId, id, by);
      await links.withdraw(hash);
    },
    async look(token) {
      const found = await host.find(memberAdmin)?.invitations.byHash(hashSecret(token));
      if (found === undefined) return undefined;
      const { accountId, account, email, role } = found;
      return { accountId, account, email, role };
    },
    async accept(token, { id: person, label: email }) {
      const hash = hashSecret(token);
      const found = await members().invitations.byHash(hash);
      if (found === undefined) throw isOver();
      if (found.email !== email.toLowerCase())
        throw new GatewayError('forbidden', 'This invitation is for another address. Sign in with that one.', {
          field: 'token',
          code: 'other_address',
        });
      const joined = await members().invitations.accept(hash, { person, email });
      if (joined === undefined) throw isOver();
      await links.withdraw(hash);
      return { accountId: joined.accountId, role: joined.role };
    },
    named: (people) => store.named(people),
  };
}

async function resend(
  parts: Parts,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  by: Inviter,
): Promise<Handover> {
  const { host, links, throttle } = parts;
  const { invitations } = membersOf(host);
  const found = await invitations.find(accountId, id);
  if (found === undefined) throw new GatewayError('not_found', 'There is no such invitation.', { field: 'id' });
  takeTurn(throttle, `member-mail-of:${id}`, 1, resendMs);
  takeTurn(throttle, `member-mail:${accountId}`, mostSent, dayMs);
  const secret = await links.make('invitation', found.email);
  const hash = hashSecret(secret);
  const renewed = await invitations.renew(accountId, id, hash, by.by).catch(async (error: unknown) => {
    await links.withdraw(hash);
    throw error;
  });
  await links.withdraw(renewed.before);
  return handOver(parts, renewed, secret, by.label);
}

function membersOf(host: Pick<Host, 'find'>): MemberAdmin {
  const found = host.find(memberAdmin);
  if (found !== undefined) return found;
  throw new GatewayError('not_found', 'This gateway has no member admin.', { code: 'not_available' });
}

function takeTurn(throttle: Throttle, key: string, most: number, windowMs: number): void {
  const retryAfterMs = throttle.take(key, most, windowMs);
  if (retryAfterMs > 0)
    throw new GatewayError('rate_limited', 'Too many invitations. Try again later.', { retryAfterMs });
}

/** A member is made an owner by an invitation, which they accept; any other role is set. */
async function refuseMember(
  { host, store }: Parts,
  accountId: string,
  { address, role }: { readonly address: string; readonly role: string },
): Promise<void> {
  const known = await store.byEmail(address);
  if (known === undefined || role === 'owner') return;
  if ((await membersOf(host).roleOf(accountId, known.id)) === undefined) return;
  throw new GatewayError('conflict', 'Somebody with this address is a member already.', { field: 'email' });
}

/** By mail where there is one, else by the hand of the one who invites. */
async function handOver(
  { host, mailer, settings }: Parts,
  { accountId, email }: Pick<InvitationView, 'accountId' | 'email'>,
  secret: string,
  by: string,
): Promise<Handover> {
  const path = joinPath(secret, email);
  if (mailer === undefined) return { mailed: false, link: path };
  const account = (await host.find(accountAdmin)?.find(accountId))?.name ?? '';
  mailer.send({ to: email, ...words.member(settings.name, { by, account, link: settings.origin + path }) });
  return { mailed: true, link: undefined };
}
