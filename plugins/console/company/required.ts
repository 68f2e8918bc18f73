/** Sign-in by the company alone: whom it holds for, what it ends, and who turns it on and off. */
import { and, eq, isNotNull, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Orm } from '../../common/domain/database.ts';
import { domainOf } from '../people/providers/mail-domains.ts';
import type { PeopleTables } from '../people/tables.ts';
import type { CompanyTables } from './tables.ts';
import type { RequiredProvider } from './types.ts';

export type RequiredStore = ReturnType<typeof requiredStatements>;

export function requiredStatements(orm: Orm, { providers, domains }: CompanyTables, people: PeopleTables) {
  const { user, session, account } = people;
  const { id, name, accountId, required } = providers;
  return {
    /** People with rights on this gateway are the operator's, whatever their address. */
    async requiredFor(email: string): Promise<RequiredProvider | undefined> {
      const [row] = await orm
        .select({ id, name })
        .from(providers)
        .innerJoin(domains, eq(domains.accountId, accountId))
        .where(
          and(
            eq(domains.domain, domainOf(email)),
            isNotNull(domains.verifiedAt),
            eq(required, true),
            sql`not exists (select 1 from ${user} as person where person.email = ${email.toLowerCase()} and person.role <> 'client')`,
          ),
        );
      return row;
    },

    async isRequired(of: string): Promise<boolean> {
      const [row] = await orm.select({ required }).from(providers).where(eq(accountId, of));
      return row?.required === true;
    },

    /** Whether somebody has signed in by it. */
    async isTried(providerId: string): Promise<boolean> {
      return (await orm.$count(account, eq(account.providerId, providerId))) > 0;
    },

    async setRequired(of: string, value: boolean): Promise<string | undefined> {
      const [row] = await orm.update(providers).set({ required: value }).where(eq(accountId, of)).returning({ id });
      return row?.id;
    },

    /** Sessions of people of the account's domains that began another way. */
    async endOtherSessions(of: string, providerId: string): Promise<void> {
      const held = sql`select domain from ${domains} as own where own.account_id = ${of} and own.verified_at is not null`;
      const bound = sql`select person.id from ${user} as person where person.role = 'client' and substring(lower(person.email) from '[^@]*$') in (${held})`;
      await orm
        .delete(session)
        .where(and(sql`${session.userId} in (${bound})`, sql`${session.providerId} is distinct from ${providerId}`));
    },
  };
}

/** One that lets no one in would lock all out. */
export async function requireProvider(store: RequiredStore, accountId: string, providerId: string): Promise<void> {
  if (!(await store.isTried(providerId)))
    throw new GatewayError('conflict', 'No one has signed in by your provider yet: try it first.', {
      code: 'provider_not_tried',
    });
  await store.setRequired(accountId, true);
  await store.endOtherSessions(accountId, providerId);
}

/** What people read who try another way. */
export const askCompany = (email: string, { name }: RequiredProvider) =>
  `People with an address of ${domainOf(email)} sign in by their company (${name}): choose "Sign in by your company" and give your address.`;
