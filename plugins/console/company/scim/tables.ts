/** Tables of what a company's directory says, as drizzle sees them. */
import { boolean, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

export function scimTables(schema: string) {
  const space = pgSchema(schema);
  const tokens = space.table('console_scim_tokens', {
    accountId: text('account_id').primaryKey(),
    hash: text('hash').notNull(),
    createdAt: instant('created_at').notNull(),
    lastUsedAt: instant('last_used_at'),
  });
  const users = space.table('console_scim_users', {
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    personId: text('person_id').notNull(),
    userName: text('user_name').notNull(),
    externalId: text('external_id'),
    active: boolean('active').notNull(),
    attributes: text('attributes').notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  });
  const groups = space.table('console_scim_groups', {
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    displayName: text('display_name').notNull(),
    externalId: text('external_id'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  });
  const groupMembers = space.table('console_scim_group_members', {
    groupId: text('group_id').notNull(),
    userId: text('user_id').notNull(),
  });
  return { tokens, users, groups, groupMembers };
}

export type ScimTables = ReturnType<typeof scimTables>;
export type UserRow = ScimTables['users']['$inferSelect'];
export type GroupRow = ScimTables['groups']['$inferSelect'];
