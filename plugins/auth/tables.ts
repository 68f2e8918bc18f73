/** Drizzle definitions of the tables of accounts, keys and settings; the SQL is in `migrations/`. */
import { bigint, boolean, jsonb, pgSchema, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import type { MemberRole } from '../common/domain/organizations/rights.ts';
import type { Limits } from '../common/domain/plans.ts';

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

/** The tables in one gateway's schema. */
export function authTables(schema: string) {
  const space = pgSchema(schema);
  const accounts = space.table('accounts', {
    id: uuid('id').primaryKey().defaultRandom(),
    name: text('name').notNull(),
    plan: text('plan').notNull(),
    disabled: boolean('disabled').notNull().default(false),
    multiplier: text('multiplier'),
    createdAt: instant('created_at').notNull(),
    planEndsAt: instant('plan_ends_at'),
    retention: text('retention').$type<'none'>(),
  });
  const keys = space.table('keys', {
    id: uuid('id').primaryKey().defaultRandom(),
    accountId: uuid('account_id').notNull(),
    name: text('name').notNull(),
    prefix: text('prefix').notNull(),
    hash: text('hash').notNull(),
    models: text('models').array(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    createdAt: instant('created_at').notNull(),
    lastUsedAt: instant('last_used_at'),
    addresses: text('addresses').array(),
    limits: jsonb('limits').$type<Limits>(),
    capAmount: bigint('cap_amount', { mode: 'bigint' }),
    capEvery: text('cap_every'),
    project: text('project'),
    images: text('images'),
    tags: text('tags').array(),
    regions: text('regions').array(),
    person: text('person'),
    access: text('access'),
    rotatedAt: instant('rotated_at'),
  });
  const projects = space.table('projects', {
    accountId: uuid('account_id').notNull(),
    id: uuid('id').notNull().defaultRandom(),
    name: text('name').notNull(),
    owner: text('owner'),
    models: text('models').array(),
    regions: text('regions').array(),
    createdAt: instant('created_at').notNull().defaultNow(),
    archivedAt: instant('archived_at'),
  });
  const settings = space.table('auth_settings', {
    name: text('name').primaryKey(),
    value: text('value').notNull(),
  });
  return { accounts, keys, projects, ...memberTables(space), settings, ...secretTables(space) };
}

function secretTables(space: ReturnType<typeof pgSchema>) {
  const digests = space.table('key_digests', {
    digest: text('digest').primaryKey(),
    keyId: uuid('key_id').notNull(),
    secret: text('secret').notNull(),
  });
  const replaced = space.table('replaced_secrets', {
    digest: text('digest').primaryKey(),
    keyId: uuid('key_id').notNull(),
    prefix: text('prefix').notNull(),
    endsAt: instant('ends_at').notNull(),
  });
  return { digests, replaced };
}

function memberTables(space: ReturnType<typeof pgSchema>) {
  const members = space.table('members', {
    id: uuid('id').notNull().defaultRandom(),
    accountId: uuid('account_id').notNull(),
    person: text('person').notNull(),
    role: text('role').$type<MemberRole>().notNull(),
    home: boolean('home').notNull().default(false),
    leftAt: instant('left_at'),
    createdAt: instant('created_at').notNull(),
  });
  const invitations = space.table('member_invitations', {
    id: uuid('id').notNull().defaultRandom(),
    accountId: uuid('account_id').notNull(),
    email: text('email').notNull(),
    role: text('role').$type<MemberRole>().notNull(),
    hash: text('hash').notNull(),
    invitedBy: text('invited_by'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    acceptedAt: instant('accepted_at'),
    acceptedBy: text('accepted_by'),
  });
  return { members, invitations };
}

export type AuthTables = ReturnType<typeof authTables>;
