/** The tables of people, as drizzle and better-auth see them; the SQL is in `migrations/`. */
import { boolean, integer, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import type { Actor, Role, TokenRole } from '../actor.ts';

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

/** Members are named as better-auth names its models and fields. */
export function peopleTables(schema: string) {
  const space = pgSchema(schema);
  const user = space.table('console_people', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    email: text('email').notNull(),
    emailVerified: boolean('email_verified').notNull().default(false),
    image: text('image'),
    twoFactorEnabled: boolean('two_factor_enabled').notNull().default(false),
    role: text('role').$type<Role>().notNull().default('client'),
    blocked: boolean('blocked').notNull().default(false),
    gatewayAccountId: text('account_id'),
    claimedRole: text('claimed_role').$type<Role>(),
    claimedPlan: text('claimed_plan'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  });
  const session = space.table('console_sessions', {
    id: text('id').primaryKey(),
    token: text('token').notNull(),
    userId: text('user_id').notNull(),
    expiresAt: instant('expires_at').notNull(),
    ipAddress: text('ip_address'),
    userAgent: text('user_agent'),
    providerId: text('provider_id'),
    chosenAccountId: text('account_id'),
    companyAccountId: text('company_account_id'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  });
  const account = space.table('console_identities', {
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    providerId: text('provider_id').notNull(),
    userId: text('user_id').notNull(),
    accessToken: text('access_token'),
    refreshToken: text('refresh_token'),
    idToken: text('id_token'),
    accessTokenExpiresAt: instant('access_token_expires_at'),
    refreshTokenExpiresAt: instant('refresh_token_expires_at'),
    scope: text('scope'),
    password: text('password'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  });
  const verification = space.table('console_verifications', {
    id: text('id').primaryKey(),
    identifier: text('identifier').notNull(),
    value: text('value').notNull(),
    expiresAt: instant('expires_at').notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  });
  return { user, session, account, verification, ...factorTables(space) };
}

function factorTables(space: ReturnType<typeof pgSchema>) {
  const twoFactor = space.table('console_two_factors', {
    id: text('id').primaryKey(),
    secret: text('secret').notNull(),
    backupCodes: text('backup_codes').notNull(),
    userId: text('user_id').notNull(),
    verified: boolean('verified').notNull().default(true),
    failedVerificationCount: integer('failed_verification_count').notNull().default(0),
    lockedUntil: instant('locked_until'),
  });
  const passkey = space.table('console_passkeys', {
    id: text('id').primaryKey(),
    name: text('name'),
    publicKey: text('public_key').notNull(),
    userId: text('user_id').notNull(),
    credentialID: text('credential_id').notNull(),
    counter: integer('counter').notNull(),
    deviceType: text('device_type').notNull(),
    backedUp: boolean('backed_up').notNull(),
    transports: text('transports'),
    createdAt: instant('created_at'),
    aaguid: text('aaguid'),
  });
  return { twoFactor, passkey };
}

export type PeopleTables = ReturnType<typeof peopleTables>;

/** Tables that better-auth does not know. */
export function consoleTables(schema: string) {
  const space = pgSchema(schema);
  const links = space.table('console_links', {
    hash: text('hash').primaryKey(),
    kind: text('kind').$type<'first_operator' | 'invitation'>().notNull(),
    email: text('email'),
    expiresAt: instant('expires_at').notNull(),
    usedAt: instant('used_at'),
    createdAt: instant('created_at').notNull(),
  });
  const tokens = space.table('console_tokens', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    prefix: text('prefix').notNull(),
    hash: text('hash').notNull(),
    role: text('role').$type<TokenRole>().notNull(),
    createdBy: text('created_by').notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
  });
  const audit = space.table('console_audit', {
    id: text('id').primaryKey(),
    at: instant('at').notNull(),
    actor: text('actor').notNull(),
    role: text('role').$type<Role>().notNull(),
    action: text('action').notNull(),
    subject: text('subject').notNull(),
    reason: text('reason'),
    address: text('address').notNull(),
    result: text('result').notNull(),
    actorKind: text('actor_kind').$type<Actor['kind']>(),
    actorId: text('actor_id'),
    changes: text('changes'),
    accountId: text('account_id'),
  });
  const settings = space.table('console_settings', {
    name: text('name').primaryKey(),
    value: text('value').notNull(),
  });
  const views = space.table('console_views', {
    personId: text('person_id').notNull(),
    page: text('page').notNull(),
    name: text('name').notNull(),
    query: text('query').notNull(),
    savedAt: instant('saved_at').notNull(),
  });
  return { links, tokens, audit, settings, views, keyRequests: keyRequestTable(space), ...historyTables(space) };
}

function keyRequestTable(space: ReturnType<typeof pgSchema>) {
  return space.table('console_key_requests', {
    deviceHash: text('device_hash').primaryKey(),
    codeHash: text('code_hash').notNull(),
    program: text('program').notNull(),
    machine: text('machine').notNull(),
    address: text('address').notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    intervalMs: integer('interval_ms').notNull(),
    askedAt: instant('asked_at'),
    state: text('state').$type<'waiting' | 'granted' | 'denied' | 'used'>().notNull(),
    personId: text('person_id'),
    accountId: text('account_id'),
    terms: text('terms'),
    clientId: text('client_id'),
    redirectUri: text('redirect_uri'),
    challenge: text('challenge'),
    clientState: text('client_state'),
  });
}

function historyTables(space: ReturnType<typeof pgSchema>) {
  const configTexts = space.table('console_config_texts', {
    digest: text('digest').primaryKey(),
    sealed: text('sealed').notNull(),
    bytes: integer('bytes').notNull(),
  });
  const configVersions = space.table('console_config_versions', {
    version: integer('version').primaryKey(),
    at: instant('at').notNull(),
    digest: text('digest').notNull(),
    source: text('source').notNull(),
    actor: text('actor'),
    reason: text('reason'),
    auditId: text('audit_id'),
    node: text('node').notNull(),
    files: text('files').notNull(),
  });
  const configNodes = space.table('console_config_nodes', {
    node: text('node').primaryKey(),
    version: integer('version').notNull(),
    at: instant('at').notNull(),
  });
  return { configTexts, configVersions, configNodes };
}

export type ConsoleTables = ReturnType<typeof consoleTables>;
