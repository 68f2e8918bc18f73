/** Members of the chosen account: their roles, removing them, leaving; and which account a person acts in. */

import { z } from '@hono/zod-openapi';
import { money } from '../../../common/domain/money.ts';
import type { MemberView } from '../../../common/domain/organizations/members.ts';
import { memberRoles } from '../../../common/domain/organizations/rights.ts';
import type { Owner } from '../../people.ts';
import { ledgerQueries, memberAdmin } from '../../services.ts';
import { changesBetween } from '../routing/audit-changes.ts';
import { actorOf, type ConsoleServices, need, nothingHere, ownAccount, refuseCompany } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, done, id, instant, takes, usd, writerOf } from '../schemas.ts';

export const roleInput = z.enum(memberRoles);
export const memberRow = z
  .object({
    id: z.string().describe('Of the person.'),
    name: z.string(),
    email: z.string(),
    role: roleInput,
    since: instant,
    keys: z.number().describe('Their keys in the account that are not revoked.'),
    keysUsedAt: instant.nullable().describe('When one of them was used last.'),
    spent30d: usd
      .nullable()
      .describe('Charges of calls by their keys, less what was given back of them; null: this gateway has no ledger.'),
  })
  .openapi('Member');
const memberJson = writerOf(memberRow);

const one = z.object({ id });
const list = route(
  'get',
  '/members',
  'Members of the account, the longest first',
  answers(z.object({ rows: z.array(memberRow) })),
);
const change = route('patch', '/members/{id}', "Change a member's role, in force at once", answers(done), {
  params: one,
  body: takes(z.strictObject({ role: roleInput })),
});
const keys = z
  .enum(['revoke', 'take'])
  .describe('What becomes of their keys in the account: revoked at once, or yours from now on.');
const remove = route('post', '/members/{id}/remove', 'Remove a member at once', answers(done), {
  params: one,
  body: takes(z.strictObject({ keys })),
});
const leave = route('post', '/members/leave', 'Leave the account; own keys in it are revoked', answers(done));
const choose = route('post', '/members/choose', 'Act in another account from now on', answers(done), {
  body: takes(z.strictObject({ accountId: id })),
});

export function memberRoutes(services: ConsoleServices) {
  const admin = () => need(services, memberAdmin);
  return new Routes(services)
    .read(list, async ({ c }) => {
      const rows = await membersOf(services, await ownAccount(services, c));
      return { rows: rows.map((row) => memberJson(row)) };
    })
    .action(change, async ({ c, param, json }) => {
      const accountId = await ownAccount(services, c);
      const { view, subject } = await knownMember(services, accountId, param.id);
      const changes = changesBetween({ role: view.role }, json);
      const by = { person: actorOf(c).id };
      return {
        action: 'member.change',
        subject,
        changes,
        run: () => admin().setRole(accountId, param.id, json.role, by),
      };
    })
    .action(remove, async ({ c, param, json }) => {
      const accountId = await ownAccount(services, c);
      const { subject } = await knownMember(services, accountId, param.id);
      const by = { person: actorOf(c).id };
      const left = json.keys === 'revoke' ? 'revoke' : { handTo: by.person };
      return {
        action: 'member.remove',
        subject,
        changes: [{ field: 'keys', before: null, after: json.keys }],
        run: () => admin().remove(accountId, param.id, left, by),
      };
    })
    .action(leave, async ({ c }) => {
      const accountId = await ownAccount(services, c);
      const { id: person, label: subject } = actorOf(c);
      return { action: 'member.leave', subject, run: () => admin().remove(accountId, person, 'revoke', { person }) };
    })
    .read(choose, async ({ c, json }) => {
      refuseCompany(c);
      if ((await admin().roleOf(json.accountId, actorOf(c).id)) === undefined)
        throw nothingHere('account', 'accountId');
      await services.people.choose(c.req.raw.headers, json.accountId);
      return { ok: true } as const;
    });
}

/** A member, and what rows of the log call them. */
export async function knownMember(services: ConsoleServices, accountId: string, personId: string) {
  const view = (await need(services, memberAdmin).list(accountId)).find(({ person }) => person === personId);
  if (view === undefined) throw nothingHere('member');
  const people = await services.invitations.named([personId]);
  return { view, subject: people.get(personId)?.email ?? personId };
}

/** The longest first, with who they are and what their keys have spent. */
export async function membersOf(services: ConsoleServices, accountId: string) {
  const rows = await need(services, memberAdmin).list(accountId);
  const [people, spent] = await Promise.all([
    services.invitations.named(rows.map(({ person }) => person)),
    spentByPerson(services, accountId),
  ]);
  return rows.map((row) => shown(row, people, spent));
}

/** As many groups as sums have. */
const mostPeople = 1_500;

type Spent = ReadonlyMap<string, bigint> | undefined;

async function spentByPerson(services: ConsoleServices, accountId: string): Promise<Spent> {
  const now = services.clock.now();
  const span = { from: now - 30 * dayMs, until: now + 1 };
  const groups = await services.find(ledgerQueries)?.spend({ accountId, ...span }, 'person', mostPeople);
  return groups && new Map(groups.map(({ group, cost, refunded = 0n }) => [group, cost - refunded]));
}

function shown({ person, ...view }: MemberView, people: ReadonlyMap<string, Owner>, spent: Spent) {
  const { name = '', email = '' } = people.get(person) ?? {};
  const cost = spent && money(spent.get(person) ?? 0n);
  return { ...view, id: person, name, email, spent30d: cost };
}
