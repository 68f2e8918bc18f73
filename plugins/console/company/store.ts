/** SQL of companies' sign-in: domains, providers, and what claims have given. */
import { and, asc, count, eq, isNotNull, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import type { MemberRole } from '../../common/domain/organizations/rights.ts';
import type { PeopleTables } from '../people/tables.ts';
import { requiredStatements } from './required.ts';
import { refreshStatements } from './saml/refresh.ts';
import type { CompanyTables } from './tables.ts';
import type { DomainView } from './types.ts';
import { watchStatements } from './watch.ts';

export type CompanyStore = ReturnType<typeof openCompanyStore>;

export interface SealedProvider {
  readonly id: string;
  readonly name: string;
  readonly settings: string;
  readonly sealed: string;
}

export function openCompanyStore(orm: Orm, tables: CompanyTables, people: PeopleTables) {
  return {
    ...domainStatements(orm, tables),
    ...providerStatements(orm, tables, people),
    ...peopleStatements(orm, tables),
    ...watchStatements(orm, tables),
    ...refreshStatements(orm, tables),
    ...requiredStatements(orm, tables, people),
  };
}

function domainStatements(orm: Orm, { domains }: CompanyTables) {
  const one = (accountId: string, domain: string) => and(eq(domains.accountId, accountId), eq(domains.domain, domain));
  const { domain, token, verifiedAt, missingSince, accountId: account } = domains;
  return {
    async domainsOf(accountId: string): Promise<readonly DomainView[]> {
      const rows = await orm
        .select({ domain, token, verifiedAt, missingSince })
        .from(domains)
        .where(eq(account, accountId))
        .orderBy(asc(domain));
      return rows.map((row) => ({
        ...row,
        verifiedAt: row.verifiedAt?.getTime(),
        missingSince: row.missingSince?.getTime(),
      }));
    },

    async addDomain(accountId: string, name: string, secret: string, at: Date): Promise<void> {
      await orm.insert(domains).values({ accountId, domain: name, token: secret, createdAt: at }).onConflictDoNothing();
    },

    async removeDomain(accountId: string, name: string): Promise<void> {
      await orm.delete(domains).where(one(accountId, name));
    },

    /** The account that a domain is verified for. */
    async holderOf(name: string): Promise<{ readonly accountId: string; readonly token: string } | undefined> {
      const [row] = await orm
        .select({ accountId: account, token })
        .from(domains)
        .where(and(eq(domain, name), isNotNull(verifiedAt)));
      return row;
    },

    /** The second of two accounts at once gets false: the index lets one in. `from`: the one that it is taken from. */
    verify: (accountId: string, name: string, at: Date, from: string | undefined): Promise<boolean> =>
      orm.transaction(async (inner) => {
        if (from !== undefined)
          await inner.update(domains).set({ verifiedAt: null, missingSince: null }).where(one(from, name));
        const changed = await inner
          .update(domains)
          .set({ verifiedAt: at, checkedAt: at, missingSince: null })
          .where(
            and(
              one(accountId, name),
              sql`not exists (select 1 from ${domains} as held where held.domain = ${name} and held.verified_at is not null and held.account_id <> ${accountId})`,
            ),
          )
          .returning({ domain });
        return changed.length === 1;
      }),
  };
}

function providerStatements(orm: Orm, { providers, domains }: CompanyTables, { session, account }: PeopleTables) {
  const { id, name, settings, sealed } = providers;
  const columns = { id, name, settings, sealed, accountId: providers.accountId };
  return {
    async providerOf(accountId: string): Promise<SealedProvider | undefined> {
      const [row] = await orm.select(columns).from(providers).where(eq(providers.accountId, accountId));
      return row;
    },

    async provider(providerId: string): Promise<(SealedProvider & { readonly accountId: string }) | undefined> {
      const [row] = await orm.select(columns).from(providers).where(eq(id, providerId));
      return row;
    },

    /** That of the account for which this domain is verified. */
    async providerFor(domain: string): Promise<{ readonly id: string; readonly name: string } | undefined> {
      const [row] = await orm
        .select({ id, name })
        .from(providers)
        .innerJoin(domains, eq(domains.accountId, providers.accountId))
        .where(and(eq(domains.domain, domain), isNotNull(domains.verifiedAt)));
      return row;
    },

    async countProviders(): Promise<number> {
      const [row] = await orm.select({ providers: count() }).from(providers);
      return row!.providers;
    },

    async sealedProviders(): Promise<readonly SealedProvider[]> {
      return orm.select(columns).from(providers);
    },

    async saveProvider(accountId: string, row: SealedProvider, at: Date): Promise<void> {
      const values = { ...row, accountId, updatedAt: at };
      const { name: newName, settings: newSettings, sealed: newSealed } = row;
      await orm
        .insert(providers)
        .values(values)
        .onConflictDoUpdate({
          target: providers.accountId,
          set: { name: newName, settings: newSettings, sealed: newSealed, updatedAt: at },
        });
    },

    async sealAgain(providerId: string, before: string, after: string): Promise<void> {
      await orm
        .update(providers)
        .set({ sealed: after })
        .where(and(eq(id, providerId), eq(sealed, before)));
    },

    /** With the identities that it vouched for, and the sessions that began by it. */
    async removeProvider(providerId: string): Promise<void> {
      await orm.transaction(async (inner) => {
        await inner.delete(providers).where(eq(id, providerId));
        await inner.delete(account).where(eq(account.providerId, providerId));
        await inner.delete(session).where(eq(session.providerId, providerId));
      });
    },
  };
}

function peopleStatements(orm: Orm, { people }: CompanyTables) {
  const one = (accountId: string, personId: string) =>
    and(eq(people.accountId, accountId), eq(people.personId, personId));
  return {
    async claimed(accountId: string, personId: string) {
      const [row] = await orm
        .select({ role: people.claimedRole, project: people.project })
        .from(people)
        .where(one(accountId, personId));
      return row;
    },

    async noteClaimed(
      accountId: string,
      personId: string,
      claimed: { readonly role: MemberRole; readonly project: string | null },
    ): Promise<void> {
      const { role: claimedRole, project } = claimed;
      await orm
        .insert(people)
        .values({ accountId, personId, claimedRole, project })
        .onConflictDoUpdate({ target: [people.accountId, people.personId], set: { claimedRole, project } });
    },
  };
}
