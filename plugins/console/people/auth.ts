/** better-auth, as the console needs it: one instance for each origin that browsers reach the gateway at. */

import { createHmac } from 'node:crypto';
import { passkey } from '@better-auth/passkey';
import { type BetterAuthOptions, betterAuth } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { APIError, createAuthMiddleware } from 'better-auth/api';
import { genericOAuth, twoFactor } from 'better-auth/plugins';
import { eq, lte, sql } from 'drizzle-orm';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { table } from '../../../core/contract/table.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Role } from '../actor.ts';
import type { Audit } from '../people.ts';
import { addressHeader, authPath } from './auth-names.ts';
import { type Attempt, Devices, SignInAttempts } from './devices.ts';
import { withHashedSessions } from './hashed-sessions.ts';
import { type Links, resetPath } from './links.ts';
import { type Mailer, words } from './mail.ts';
import { numbered, type Secrets } from './secrets.ts';
import { admitSignUp, removeHalfMade, type SignUpPolicy } from './sign-up.ts';
import type { PeopleTables } from './tables.ts';
import type { Throttle } from './throttle.ts';

interface OidcProvider {
  readonly id: string;
  readonly name: string;
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly scopes: readonly string[];
}

export interface AuthParts {
  readonly orm: Orm;
  readonly tables: PeopleTables;
  readonly secrets: Secrets;
  readonly links: Links;
  readonly throttle: Throttle;
  readonly mailer: Mailer | undefined;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly audit: Audit;
  readonly log: Log;
  readonly settings: {
    readonly name: string;
    readonly cookiePrefix: string;
    readonly signUp: SignUpPolicy;
    readonly sessionMs: number;
    readonly oidc: readonly OidcProvider[];
    readonly throttle: { readonly perAddress: number; readonly perAccount: number; readonly windowMs: number };
  };
}

export type Auth = { handler(request: Request): Promise<Response> };

const mostNameLength = 100;
const mostEmailLength = 200;
const passwordLength = { least: 10, most: 128 } as const;

const userFields = {
  role: { type: 'string', input: false, required: false, defaultValue: 'client' },
  blocked: { type: 'boolean', input: false, required: false, defaultValue: false, returned: false },
  gatewayAccountId: { type: 'string', input: false, required: false, returned: false },
} as const;

function emailVerification(mailer: Mailer, name: string, origin: string): BetterAuthOptions['emailVerification'] {
  return {
    sendOnSignUp: true,
    autoSignInAfterVerification: true,
    sendVerificationEmail: async ({ user, token }) => {
      const link = `${origin}/console/verify?token=${encodeURIComponent(token)}`;
      mailer.send({ to: user.email, ...words.verify(name, link) });
    },
  };
}

export function createAuth(parts: AuthParts, origin: string): Auth {
  const { orm, tables, secrets, mailer, settings } = parts;
  const adapter = drizzleAdapter(orm as never, { provider: 'pg', schema: tables });
  return betterAuth({
    appName: settings.name,
    baseURL: origin,
    basePath: authPath,
    ...numbered(secrets),
    database: (options: BetterAuthOptions) => withHashedSessions(adapter(options)),
    telemetry: { enabled: false },
    logger: { log: (level, message) => logLine(parts.log, level, message) },
    // The caller renders errors: rendered by better-auth they would show a statement's parameters.
    onAPIError: { errorURL: '/console/sign-in', throw: true },
    // Signing in by a provider that is not configured must not be a matter of guessing.
    socialProviders: {},
    emailAndPassword: {
      enabled: true,
      minPasswordLength: passwordLength.least,
      maxPasswordLength: passwordLength.most,
      requireEmailVerification: mailer !== undefined,
      revokeSessionsOnPasswordReset: true,
      resetPasswordTokenExpiresIn: 24 * 3_600,
      ...(mailer && {
        sendResetPassword: async ({ user, token }) => {
          mailer.send({ to: user.email, ...words.reset(settings.name, origin + resetPath(token)) });
        },
      }),
    },
    ...(mailer === undefined ? {} : { emailVerification: emailVerification(mailer, settings.name, origin) }),
    // Counted from signing in, whatever is looked at meanwhile: the cookie and the row end together.
    session: { expiresIn: Math.round(settings.sessionMs / 1_000), disableSessionRefresh: true },
    user: { additionalFields: userFields },
    verification: { storeIdentifier: 'hashed' },
    rateLimit: limitsOf(parts),
    advanced: {
      cookiePrefix: settings.cookiePrefix,
      useSecureCookies: origin.startsWith('https:'),
      cookies: { session_token: { attributes: { sameSite: 'strict' } } },
      ipAddress: { ipAddressHeaders: [addressHeader] },
      database: { generateId: () => parts.newId() },
      disableOriginCheck: false,
      disableCSRFCheck: false,
    },
    databaseHooks: {
      session: { create: { before: (session, context) => admitSession(parts, session.userId, context) } },
      user: {
        create: { before: (user, context) => admit(parts, user, context) },
        update: { before: async (user) => refuseLong(user) },
      },
    },
    hooks: hooksOf(parts, origin),
    plugins: [
      twoFactor({ issuer: settings.name, twoFactorTable: 'twoFactor' }),
      passkey({ rpID: new URL(origin).hostname, rpName: settings.name, origin }),
      ...(settings.oidc.length === 0 ? [] : [genericOAuth({ config: settings.oidc.map(oidcConfig) })]),
    ],
  });
}

function oidcConfig({ id, issuer, client_id, client_secret, scopes }: OidcProvider) {
  return {
    providerId: id,
    discoveryUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    requireIdTokenVerification: true,
    clientId: client_id,
    clientSecret: client_secret,
    scopes: [...scopes],
    pkce: true,
  };
}

/** By address and path; the clock and the bound are ours. */
function limitsOf({ throttle, settings }: AuthParts) {
  const { perAddress, windowMs } = settings.throttle;
  const guessing = { window: windowMs / 1_000, max: perAddress };
  return {
    enabled: true,
    window: 60,
    max: 300,
    customRules: Object.fromEntries(
      [
        '/sign-in/*',
        '/sign-up/*',
        '/two-factor/*',
        '/request-password-reset',
        '/reset-password',
        '/change-password',
        '/send-verification-email',
      ].map((path) => [path, guessing]),
    ),
    customStorage: {
      get: async () => null,
      set: async () => undefined,
      async consume(key: string, rule: { window: number; max: number }) {
        const waitMs = throttle.take(`address:${key}`, rule.max, rule.window * 1_000);
        return { allowed: waitMs === 0, retryAfter: waitMs === 0 ? null : Math.ceil(waitMs / 1_000) };
      },
    },
  };
}

function hooksOf({ throttle, settings, orm, tables, clock, audit, secrets }: AuthParts, origin: string) {
  const { perAccount, windowMs } = settings.throttle;
  const devices = new Devices({ prefix: settings.cookiePrefix, secure: origin.startsWith('https:') }, secrets);
  const attempts = new SignInAttempts(throttle, perAccount, windowMs);
  return {
    before: createAuthMiddleware(async (context) => {
      const email = emailIn(context.body);
      if (context.path === '/sign-in/email') {
        const waitMs = attempts.take(attemptOf(email, context.headers, devices));
        if (waitMs > 0)
          throw new APIError(
            'TOO_MANY_REQUESTS',
            { code: 'TOO_MANY_ATTEMPTS', message: 'Too many attempts. Try again later.' },
            { 'retry-after': String(Math.ceil(waitMs / 1_000)) },
          );
      }
      if (context.path === '/sign-up/email' && email !== '') await removeHalfMade(orm, tables, email, clock);
      // A new password ends the sessions that were opened with the old one.
      if (context.path === '/change-password')
        return { context: { body: { ...(context.body as object), revokeOtherSessions: true } } };
      return undefined;
    }),
    after: createAuthMiddleware(async (context) => {
      const entered = context.context.newSession;
      if (context.path === '/sign-in/email' && entered)
        attempts.forget(attemptOf(emailIn(context.body), context.headers, devices));
      if (context.context.returned instanceof APIError) return;
      // Where a second factor follows, the password alone makes no device known.
      const isHalfway = context.path === '/sign-in/email' && entered?.user['twoFactorEnabled'] === true;
      if (entered && !isHalfway) {
        const { name, value, options } = devices.cookieFor(entered.user.email);
        context.setCookie(name, value, options);
      }
      const session = entered ?? context.context.session;
      if (session !== null) await noteEntry(audit, context.path, session.user as Entering, context.headers);
    }),
  };
}

function emailIn(body: unknown): string {
  const email = (body as { email?: unknown } | undefined)?.email;
  return typeof email === 'string' ? email.toLowerCase().slice(0, mostEmailLength) : '';
}

function attemptOf(email: string, headers: Headers | undefined, devices: Devices): Attempt {
  const isKnown = devices.knows(email, headers?.get('cookie'));
  return { email, address: headers?.get(addressHeader) ?? '', isKnown };
}

interface Entering {
  readonly id: string;
  readonly email: string;
  readonly role?: Role;
}

/** What people change about how they sign in, by address; and how those come in who see more than their own. */
const noted: Readonly<Record<string, string>> = table({
  '/change-password': 'self.password',
  '/two-factor/enable': 'self.second-factor',
  '/two-factor/disable': 'self.second-factor-off',
  '/passkey/verify-registration': 'self.passkey',
  '/passkey/delete-passkey': 'self.passkey-off',
});

async function noteEntry(audit: Audit, path: string, person: Entering, headers: Headers | undefined): Promise<void> {
  const { id, email, role = 'client' } = person;
  const entered =
    /^\/(sign-in|callback|two-factor\/verify|passkey\/verify-authentication)/.test(path) && role !== 'client';
  const action = entered ? 'self.sign-in' : noted[path];
  if (action === undefined) return;
  const actor = { kind: 'person', id, label: email, role } as const;
  const address = headers?.get(addressHeader) ?? '';
  const end = await audit.begin({ actor, action, subject: email, reason: undefined, address });
  await end('done');
}

async function refuseBlocked({ orm, tables: { user } }: AuthParts, personId: string): Promise<void> {
  const [found] = await orm.select({ blocked: user.blocked }).from(user).where(eq(user.id, personId));
  if (found?.blocked === false) return;
  throw new APIError('FORBIDDEN', { code: 'BLOCKED', message: 'This account is blocked. Ask the operator.' });
}

async function admitSession(parts: AuthParts, personId: string, context: HookContext): Promise<void> {
  await refuseBlocked(parts, personId);
  if (context?.path === '/two-factor/verify-totp') await useCode(parts, personId, context.body);
}

type HookContext = { path?: string; body?: unknown } | null;

/** A provider may vouch for an address; a form does not. No sign-up sets a role. */
async function admit(
  { settings, links, orm }: AuthParts,
  { name, email, emailVerified }: { name: string; email: string; emailVerified: boolean },
  context: HookContext,
) {
  refuseLong({ name, email });
  const { invite } = (context?.body ?? {}) as { invite?: unknown };
  const invitation = typeof invite === 'string' ? invite : undefined;
  const vouched = emailVerified && context?.path !== '/sign-up/email';
  await admitSignUp(settings.signUp, links, orm, { email: email.toLowerCase(), invitation, vouched });
  return { data: { role: 'client', blocked: false } };
}

function refuseLong({ name = '', email = '' }: { name?: string | undefined; email?: string | undefined }): void {
  if (name.length > mostNameLength || email.length > mostEmailLength || /\p{Cc}/u.test(name))
    throw new APIError('BAD_REQUEST', {
      code: 'TOO_LONG',
      message: 'A name has at most 100 characters, an address 200.',
    });
}

function logLine(log: Log, level: string, message: string): void {
  const line = `sign-in: ${message}`;
  if (level === 'error') log.error({}, line);
  else if (level === 'warn') log.warn({}, line);
  else log.debug({}, line);
}

/** A code is accepted one period of 30 s before and after its own, and once more where the clock comes back to that after a jump. */
const rememberedMs = 2 * 24 * 3_600_000;

/** Codes of second factors are good once, in all processes (RFC 6238, section 5.2). */
export async function useCode(
  { orm, tables, clock, secrets }: AuthParts,
  userId: string,
  body: unknown,
): Promise<void> {
  const code = String((body as { code?: unknown }).code).replace(/\D/g, '');
  // By each secret, as another process may have one of them alone.
  const ids = secrets.map((secret) => `code:${createHmac('sha256', secret).update(`${userId} ${code}`).digest('hex')}`);
  const { verification } = tables;
  const now = new Date(clock.now());
  const expiresAt = new Date(clock.now() + rememberedMs);
  const rows = ids.map((id) => ({ id, identifier: id, value: '', expiresAt, createdAt: now, updatedAt: now }));
  const taken = await orm
    .insert(verification)
    .values(rows)
    .onConflictDoUpdate({
      target: verification.id,
      set: { expiresAt, updatedAt: now },
      setWhere: lte(verification.expiresAt, now),
    })
    .returning({ id: sql`1` });
  if (taken.length < ids.length)
    throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE', message: 'This code was used.' });
}
