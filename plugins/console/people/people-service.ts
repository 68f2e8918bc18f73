/** People as the API knows them: found, let in, given roles, given their gateway account. */

import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import { zero } from '../../common/domain/money.ts';
import type { Actor } from '../actor.ts';
import { ownersOf } from '../members/in-charge.ts';
import { membershipsOf } from '../members/membership.ts';
import type { Handover, People, PersonView } from '../people.ts';
import { accounts, memberAdmin, plans, pool } from '../services.ts';
import { sessionTokenOf } from './cookies.ts';
import { sessionHash } from './hashed-sessions.ts';
import { invitePath, type Links, resetPath } from './links.ts';
import { type Mailer, words } from './mail.ts';
import type { ClaimedParts } from './providers/claimed.ts';
import type { MailDomains } from './providers/mail-domains.ts';
import { hashSecret, makeSecret, type Secrets } from './secrets.ts';
import type { PeopleStore, SessionPerson } from './store.ts';
import type { PeopleTables } from './tables.ts';
import type { TokenStore } from './tokens.ts';

const resetLastsMs = 24 * 3_600_000;
/** Names the account that a request is for. */
const accountHeader = 'x-account';

/** As the header of a request does, where an address names the account. What no header can have is the name of no account, and no person is in it. */
export function nameAccount(headers: Headers, named: string): void {
  headers.set(accountHeader, /^[\w-]{1,64}$/.test(named) ? named : 'none');
}

const mostNameLength = 80;

export interface PeopleParts {
  readonly host: Pick<Host, 'find' | 'random'>;
  readonly clock: Clock;
  readonly orm: Orm;
  readonly tables: PeopleTables;
  readonly store: PeopleStore;
  readonly links: Links;
  readonly tokens: TokenStore;
  readonly mailer: Mailer | undefined;
  readonly newId: () => string;
  readonly secrets: Secrets;
  readonly sessionCookie: string;
  /** Slow on purpose. */
  readonly hashPassword: (password: string) => Promise<string>;
  readonly domains: MailDomains;
  readonly settings: { readonly name: string; readonly origin: string };
}

export function openPeople(parts: PeopleParts): People & { readonly applyPlan: ClaimedParts['applyPlan'] } {
  const { store, clock, links, tokens } = parts;
  const now = () => new Date(clock.now());
  return {
    async identify(headers) {
      const authorization = headers.get('authorization');
      // A request with a token is authenticated by the token alone, never by a cookie beside it.
      if (authorization !== null) return tokens.identify(authorization);
      const token = sessionTokenOf(headers.get('cookie'), parts.sessionCookie, parts.secrets);
      if (token === undefined) return undefined;
      const person = await store.bySession(sessionHash(token), clock.now());
      if (person === undefined) return undefined;
      return actorOf(person, headers.get(accountHeader));
    },
    find: (personId) => store.find(personId),
    waysIn: async ({ id, email }) => ({
      password: await store.hasPassword(id),
      providerOnly: parts.domains.byProviderOnly(email),
    }),
    search: (filter, page) => store.search(filter, page),
    rename: (personId, name) => store.change(personId, { name }, now()),
    ...changesOf(store, now),
    async create({ email, name, role }) {
      const id = parts.newId();
      const made = await store.insert(parts.orm, { id, email: email.toLowerCase(), name, role, at: now() });
      if (made === undefined)
        throw new GatewayError('conflict', 'Somebody has this address already.', { field: 'email' });
      const person = (await store.find(id))!;
      const handover = parts.domains.byProviderOnly(person.email)
        ? handOver(parts, person.email, signInPath, words.join)
        : await resetLink(parts, person);
      return { person, handover };
    },
    async reset(personId) {
      const person = await store.find(personId);
      if (person === undefined) throw new GatewayError('not_found', 'There is no such person.', { field: 'id' });
      refuseByProvider(parts, person.email, 'id');
      return resetLink(parts, person);
    },
    async invite(email) {
      const address = email.toLowerCase();
      const secret = await links.make('invitation', address);
      // Who vouches for the address finds the invitation by it.
      if (parts.domains.byProviderOnly(address)) return handOver(parts, address, signInPath, words.join);
      return handOver(parts, address, invitePath(secret, address), words.invite);
    },
    ...findingsOf(parts),
    ...membershipsOf(parts, (personId) => accountOf(parts, personId)),
    applyPlan: (personId, plan, before) => applyPlan(parts, personId, plan, before),
    firstOperatorMissing: async () => (await store.operators()) === 0,
    makeFirstOperator: (wanted) => makeFirstOperator(parts, wanted),
  };
}

/** Who comes by the provider of an account has its rights there, and none of the operator's. */
function actorOf({ id, email: label, role, chosen, company }: SessionPerson, named: string | null): Actor {
  if (company !== null) return { kind: 'person', id, label, role: 'client', chosen: company, company };
  const account = { ...(chosen === null ? {} : { chosen }), ...(named === null || named === '' ? {} : { named }) };
  return { kind: 'person', id, label, role, ...account };
}

const findingsOf = (parts: PeopleParts): Pick<People, 'ownersOf' | 'seenOf'> => ({
  ownersOf: (accountIds) => ownersOf(parts, accountIds),
  seenOf: (people) => parts.store.seenOf(people),
});

function changesOf(
  store: PeopleStore,
  now: () => Date,
): Pick<People, 'setRole' | 'setBlocked' | 'confirm' | 'release'> {
  return {
    async setRole(personId, role) {
      await store.change(personId, { role }, now());
      // What a session was made for it does not go on with.
      await store.endSessions(personId);
    },
    async setBlocked(personId, blocked) {
      await store.change(personId, { blocked }, now());
      if (blocked) await store.endSessions(personId);
    },
    confirm: (personId) => store.change(personId, { emailVerified: true }, now()),
    async release(personId) {
      await store.forgetProviders(personId);
      await store.endSessions(personId);
    },
  };
}

const signInPath = '/console/sign-in';

function refuseByProvider({ domains }: PeopleParts, email: string, field: string): void {
  if (!domains.byProviderOnly(email)) return;
  throw new GatewayError('conflict', domains.askProvider(email), { field, code: 'use_provider' });
}

/** As better-auth would make it, so that its own page takes it. */
async function resetLink(parts: PeopleParts, person: PersonView): Promise<Handover> {
  const { orm, tables, clock, newId, host } = parts;
  const token = makeSecret(host.random, '');
  const at = new Date(clock.now());
  await orm.insert(tables.verification).values({
    id: newId(),
    identifier: hashSecret(`reset-password:${token}`),
    value: person.id,
    expiresAt: new Date(clock.now() + resetLastsMs),
    createdAt: at,
    updatedAt: at,
  });
  return handOver(parts, person.email, resetPath(token), words.reset);
}

/** By mail where there is one, else by the operator's own hand: the link is then a path of this console. */
function handOver({ mailer, settings }: PeopleParts, to: string, path: string, wording: typeof words.reset): Handover {
  if (mailer === undefined) return { mailed: false, link: path };
  mailer.send({ to, ...wording(settings.name, settings.origin + path) });
  return { mailed: true, link: undefined };
}

/**
 * Creates the account on first use. Its name contains the person's id, which no person chooses: an existing account of that
 * name was created for this person and not recorded because of a crash, or by a concurrent request.
 */
async function accountOf({ host, store }: PeopleParts, personId: string): Promise<string> {
  const person = await store.accountOf(personId);
  if (person === undefined) throw new GatewayError('not_found', 'There is no such person.', { field: 'id' });
  if (person.accountId !== null) return person.accountId;
  const book = host.find(accounts);
  if (book === undefined)
    throw new GatewayError('not_found', 'This gateway has no accounts.', { code: 'not_available' });
  const name = `${person.email.slice(0, mostNameLength)} ${personId.slice(0, 13)}`;
  const account = await book.create(name, host.find(plans)?.default ?? 'default').catch(async (error: unknown) => {
    const known = await book.find(name);
    if (known === undefined) throw error;
    return known;
  });
  return (await store.settleAccount(personId, account.id)) ?? account.id;
}

/** What somebody has bought, and what an operator has put them on, stays. */
async function applyPlan(parts: PeopleParts, personId: string, plan: string | undefined, before: string | undefined) {
  const { host, orm } = parts;
  const [book, offers, money] = [host.find(accounts), host.find(plans), host.find(pool)];
  if (book === undefined || offers === undefined) return;
  const wanted = plan ?? offers.default;
  if (!offers.has(wanted)) return;
  const accountId = await accountOf(parts, personId);
  // What is claimed for somebody who owns it no more changes nothing for those who do.
  const members = host.find(memberAdmin);
  if (members !== undefined && (await members.roleAtHome(accountId, personId)) !== 'owner') return;
  const account = await book.find(accountId);
  if (account === undefined || account.plan === wanted || account.plan !== (before ?? offers.default)) return;
  if (money === undefined) return book.setPlan(orm, accountId, wanted, undefined);
  await money.transact(accountId, zero, async (posting) => {
    if ((await posting.term()) === undefined) await book.setPlan(posting.orm, accountId, wanted, undefined);
  });
}

/** The link is used up in one transaction with what it makes; the hashing is done before. */
async function makeFirstOperator(
  parts: PeopleParts,
  { token, email, password, name }: Parameters<People['makeFirstOperator']>[0],
): Promise<void> {
  const { orm, store, links, clock, newId, hashPassword } = parts;
  // Hashing is slow on purpose, so it is not done for a guessed link.
  if (!(await links.isUsable(token, 'first_operator'))) throw linkIsOver();
  refuseByProvider(parts, email, 'email');
  const hashed = await hashPassword(password);
  const at = new Date(clock.now());
  await orm.transaction(async (inner) => {
    const transaction = inner as unknown as Orm;
    if (!(await links.use(transaction, token, 'first_operator'))) throw linkIsOver();
    const row = { id: newId(), email: email.toLowerCase(), name, role: 'operator' as const, at, password: hashed };
    if ((await store.insert(transaction, row)) === undefined)
      throw new GatewayError('conflict', 'Somebody has this address already.', { field: 'email' });
    await links.close(transaction, 'first_operator');
  });
}

const linkIsOver = () =>
  new GatewayError('forbidden', 'This link is used or too old. Make another one: console operator-link.', {
    field: 'token',
    code: 'link_is_over',
  });
