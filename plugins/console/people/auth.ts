/** better-auth, as the console needs it: one instance for each origin that browsers reach the gateway at. */

import { passkey } from '@better-auth/passkey';
import { type BetterAuthOptions, betterAuth } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { APIError, createAuthEndpoint, createAuthMiddleware } from 'better-auth/api';
import { setSessionCookie } from 'better-auth/cookies';
import { handleOAuthUserInfo } from 'better-auth/oauth2';
import { genericOAuth, twoFactor } from 'better-auth/plugins';
import type { Log } from '../../../core/contract/host-tools.ts';
import { table } from '../../../core/contract/table.ts';
import type { Role } from '../actor.ts';
import type { Audit } from '../people.ts';
import { admit, admitSession, mostEmailLength, refuseByPath, refuseLong } from './admission.ts';
import { addressHeader, authPath } from './auth-names.ts';
import type { AuthParts, FoundProvider } from './auth-parts.ts';
import { type Attempt, Devices, SignInAttempts } from './devices.ts';
import { withHashedSessions } from './hashed-sessions.ts';
import { resetPath } from './links.ts';
import { type Mailer, words } from './mail.ts';
import { arrival } from './providers/arrival.ts';
import { discoveryAddress } from './providers/discovery.ts';
import { personOf, type Tokens, vouchFor } from './providers/vouching.ts';
import { numbered } from './secrets.ts';
import { removeHalfMade } from './sign-up.ts';

export type Auth = { handler(request: Request): Promise<Response> };

const passwordLength = { least: 10, most: 128 } as const;

const hiddenField = { type: 'string', input: false, required: false, returned: false } as const;
const userFields = {
  role: { type: 'string', input: false, required: false, defaultValue: 'client' },
  blocked: { type: 'boolean', input: false, required: false, defaultValue: false, returned: false },
  gatewayAccountId: hiddenField,
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

/** `found`: for the requests that lead through this provider. */
export function createAuth(parts: AuthParts, origin: string, found?: FoundProvider): Auth {
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
    session: {
      expiresIn: Math.round(settings.sessionMs / 1_000),
      disableSessionRefresh: true,
      additionalFields: { providerId: hiddenField, companyAccountId: hiddenField },
    },
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
    databaseHooks: rowHooks(parts, found),
    hooks: hooksOf(parts, origin),
    plugins: [
      twoFactor({ issuer: settings.name, twoFactorTable: 'twoFactor' }),
      passkey({ rpID: new URL(origin).hostname, rpName: settings.name, origin }),
      companyEntry(parts),
      ...(found === undefined ? [] : [genericOAuth({ config: [oidcConfig(parts, found)] })]),
    ],
  });
}

function rowHooks(parts: AuthParts, found: FoundProvider | undefined): BetterAuthOptions['databaseHooks'] {
  const withoutTokens = async <T extends { idToken?: string | null | undefined }>(identity: T) => ({
    data: { ...identity, ...keptTokens(found, identity.idToken) },
  });
  return {
    session: { create: { before: (session, context) => admitSession(parts, session.userId, context) } },
    user: {
      create: { before: (user, context) => admit(parts, user, context) },
      update: { before: async (user) => refuseLong(user) },
    },
    account: { create: { before: withoutTokens }, update: { before: withoutTokens } },
  };
}

function oidcConfig(parts: AuthParts, { provider, discovered }: FoundProvider) {
  const { id, issuer, client_id, client_secret, scopes } = provider;
  return {
    providerId: id,
    discoveryUrl: discoveryAddress(issuer),
    requireIdTokenVerification: true,
    clientId: client_id,
    clientSecret: client_secret,
    scopes: [...scopes],
    pkce: true,
    getUserInfo: (tokens: Tokens) => personOf(parts, provider, discovered, tokens),
  };
}

/** An ID token longer than this does not fit into the address by which people sign out at the provider. */
const longestKeptToken = 3_000;

/** A provider's tokens are not kept, but the one by which people sign out there. */
function keptTokens(found: FoundProvider | undefined, idToken: string | null | undefined) {
  const isKept = found?.provider.sign_out === 'provider' && (idToken?.length ?? 0) <= longestKeptToken;
  return { accessToken: null, refreshToken: null, idToken: isKept ? (idToken ?? null) : null };
}

/** Addresses at which a secret could be guessed, or mails be had sent. */
const guessed = [
  '/sign-in/*',
  '/sign-up/*',
  '/two-factor/*',
  '/request-password-reset',
  '/reset-password',
  '/change-password',
  '/send-verification-email',
];

/** By address and path; the clock and the bound are ours. */
function limitsOf({ throttle, settings }: AuthParts) {
  const { perAddress, windowMs } = settings.throttle;
  const guessing = { window: windowMs / 1_000, max: perAddress };
  return {
    enabled: true,
    window: 60,
    max: 300,
    customRules: {
      // Leaving for a provider guesses nothing, and a company's people may all come from one address.
      '/sign-in/social': { window: 60, max: 300 },
      ...Object.fromEntries(guessed.map((path) => [path, guessing])),
    },
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

function hooksOf(parts: AuthParts, origin: string) {
  const { throttle, settings, orm, tables, clock, audit, secrets } = parts;
  const { perAccount, windowMs } = settings.throttle;
  const devices = new Devices({ prefix: settings.cookiePrefix, secure: origin.startsWith('https:') }, secrets);
  const attempts = new SignInAttempts(throttle, perAccount, windowMs);
  return {
    before: createAuthMiddleware(async (context) => {
      const email = emailIn(context.body);
      await refuseByPath(parts, context.path, email, context.body);
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

function logLine(log: Log, level: string, message: string): void {
  const line = `sign-in: ${message}`;
  if (level === 'error') log.error({}, line);
  else if (level === 'warn') log.warn({}, line);
  else log.debug({}, line);
}

/** The last step of a sign-in by SAML; its address has nothing for requests that lead through no provider. */
function companyEntry(parts: AuthParts) {
  const enter = createAuthEndpoint('/company/enter', { method: 'GET' }, async (context) => {
    const asserting = arrival.getStore()?.asserting;
    if (asserting === undefined) throw new APIError('NOT_FOUND', { code: 'not_available' });
    const { provider, claims, next } = asserting;
    const { sub, ...person } = await vouchFor(parts, provider, claims);
    const account = { providerId: provider.id, accountId: sub };
    const result = await handleOAuthUserInfo(context, { userInfo: { ...person, id: sub }, account, callbackURL: next });
    if (result.error !== null || result.data === null)
      throw new APIError('FORBIDDEN', { code: String(result.error).replaceAll(' ', '_') });
    await setSessionCookie(context, result.data);
    throw context.redirect(next);
  });
  return { id: 'company-entry', endpoints: { enter } };
}
