/** The API's view of invitations to an account, and what a link is that opens nothing. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { InvitationView, MembersChanger } from '../../common/domain/organizations/members.ts';
import type { MemberRole } from '../../common/domain/organizations/rights.ts';
import type { Actor } from '../actor.ts';
import type { Handover, Membership, Owner } from '../people.ts';

interface Invited {
  readonly accountId: string;
  readonly account: string;
  readonly email: string;
  readonly role: MemberRole;
}

/** Whom an invitation is by, and how its mail names them. */
export interface Inviter {
  readonly by: MembersChanger;
  readonly label: string;
}

export interface Invitations {
  list(accountId: string): Promise<readonly InvitationView[]>;
  find(accountId: string, id: string): Promise<InvitationView | undefined>;
  /** Mails the link, or returns it where this gateway sends no mails. `rate_limited`: the account has sent as many as it may in a day. */
  invite(
    accountId: string,
    wanted: { readonly email: string; readonly role: MemberRole },
    by: Inviter,
  ): Promise<{ readonly id: string; readonly handover: Handover }>;
  /** Another link, which takes the place of the one before. */
  resend(accountId: string, id: string, by: Inviter): Promise<Handover>;
  revoke(accountId: string, id: string, by: MembersChanger): Promise<void>;
  /** What the link invites to; undefined: it is over. */
  look(token: string): Promise<Invited | undefined>;
  /** Once, for somebody who is signed in with its address. Throws where it is over, or for another address. */
  accept(token: string, person: Actor): Promise<Membership>;
  /** Who these people are, by their ids. */
  named(people: readonly string[]): Promise<ReadonlyMap<string, Owner>>;
}

export const isOver = () =>
  new GatewayError('forbidden', 'This invitation is used, taken back or too old. Ask for another one.', {
    field: 'token',
    code: 'link_is_over',
  });
