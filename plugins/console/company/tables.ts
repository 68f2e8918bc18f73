/** Tables of the sign-in of companies, as drizzle sees them. */
import { boolean, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import type { MemberRole } from '../../common/domain/organizations/rights.ts';

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

export function companyTables(schema: string) {
  const space = pgSchema(schema);
  const domains = space.table('console_company_domains', {
    accountId: text('account_id').notNull(),
    domain: text('domain').notNull(),
    token: text('token').notNull(),
    createdAt: instant('created_at').notNull(),
    verifiedAt: instant('verified_at'),
    checkedAt: instant('checked_at'),
    missingSince: instant('missing_since'),
  });
  const providers = space.table('console_company_providers', {
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    name: text('name').notNull(),
    settings: text('settings').notNull(),
    sealed: text('sealed').notNull(),
    required: boolean('required').notNull().default(false),
    updatedAt: instant('updated_at').notNull(),
  });
  const people = space.table('console_company_people', {
    accountId: text('account_id').notNull(),
    personId: text('person_id').notNull(),
    claimedRole: text('claimed_role').$type<MemberRole>(),
    project: text('project'),
  });
  return { domains, providers, people };
}

export type CompanyTables = ReturnType<typeof companyTables>;
