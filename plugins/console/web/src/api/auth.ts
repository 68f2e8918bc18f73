/** Signing in and what belongs to it: the calls of the sign-in library's own endpoints, under /console/api/auth. */
import { get, send } from './client.ts';

export interface SessionRow {
  readonly id: string;
  readonly token: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
  readonly ipAddress?: string | null;
  readonly userAgent?: string | null;
}
export interface PasskeyRow {
  readonly id: string;
  readonly name?: string | null;
  readonly createdAt: string;
}

const post = <T>(path: string, body: object = {}) => send<T>('POST', `/auth${path}`, body);

/** `second`: a code of the second factor is asked for before the session begins. */
export async function signIn(email: string, password: string, remember: boolean): Promise<'in' | 'second'> {
  const answer = await post<{ twoFactorRedirect?: boolean }>('/sign-in/email', {
    email,
    password,
    rememberMe: remember,
  });
  return answer.twoFactorRedirect === true ? 'second' : 'in';
}

/** The code of an authenticator, or one of the backup codes. */
export function proveSecond(code: string, trustDevice: boolean): Promise<unknown> {
  const digits = code.replace(/\s/g, '');
  if (/^\d{6}$/.test(digits)) return post('/two-factor/verify-totp', { code: digits, trustDevice });
  return post('/two-factor/verify-backup-code', { code: code.trim(), trustDevice });
}

/** Leaves for the provider's page; it comes back to `next`. */
export async function signInBy(providerId: string, next: string): Promise<void> {
  const { url } = await post<{ url: string }>('/sign-in/social', {
    provider: providerId,
    callbackURL: `/console${next}`,
    errorCallbackURL: '/console/sign-in',
  });
  location.assign(url);
}

/** `token` of an invitation, where signing up needs one. Resolves with whether a session began. */
export async function signUp(wanted: {
  readonly name: string;
  readonly email: string;
  readonly password: string;
  readonly invite: string | undefined;
}): Promise<boolean> {
  const { token } = await post<{ token: string | null }>('/sign-up/email', {
    ...wanted,
    callbackURL: '/console/verify',
  });
  return token !== null && token !== undefined;
}

export const askForReset = (email: string) =>
  post('/request-password-reset', { email, redirectTo: '/console/reset-password' });
export const resetPassword = (token: string, newPassword: string) => post('/reset-password', { token, newPassword });
export const verifyMail = (token: string) => get('/auth/verify-email', { token });
export const sendVerification = (email: string) =>
  post('/send-verification-email', { email, callbackURL: '/console/verify' });

export const changePassword = (currentPassword: string, newPassword: string) =>
  post('/change-password', { currentPassword, newPassword, revokeOtherSessions: true });

// ---------------------------------------------------------------------------------------------------------- second factor

/** The address that an authenticator reads as a picture, and codes for the day that it is lost. */
export const beginSecond = (password: string) =>
  post<{ readonly totpURI: string; readonly backupCodes: readonly string[] }>('/two-factor/enable', { password });
export const confirmSecond = (code: string) => post('/two-factor/verify-totp', { code });
export const endSecond = (password: string) => post('/two-factor/disable', { password });

// --------------------------------------------------------------------------------------------------------------- sessions

export const listSessions = () => get<readonly SessionRow[]>('/auth/list-sessions');
export const currentSession = () => get<{ readonly session: SessionRow } | null>('/auth/get-session');
export const revokeSession = (token: string) => post('/revoke-session', { token });
export const revokeOtherSessions = () => post('/revoke-other-sessions');

// --------------------------------------------------------------------------------------------------------------- passkeys

export const canUsePasskeys = (): boolean => typeof PublicKeyCredential === 'function';
const webauthn = () => import('@simplewebauthn/browser');

export async function signInByPasskey(): Promise<void> {
  const { startAuthentication } = await webauthn();
  const optionsJSON = await get<Parameters<typeof startAuthentication>[0]['optionsJSON']>(
    '/auth/passkey/generate-authenticate-options',
  );
  await post('/passkey/verify-authentication', { response: await startAuthentication({ optionsJSON }) });
}

export async function addPasskey(name: string): Promise<void> {
  const { startRegistration } = await webauthn();
  const optionsJSON = await get<Parameters<typeof startRegistration>[0]['optionsJSON']>(
    '/auth/passkey/generate-register-options',
    { name },
  );
  await post('/passkey/verify-registration', { response: await startRegistration({ optionsJSON }), name });
}
export const listPasskeys = () => get<readonly PasskeyRow[]>('/auth/passkey/list-user-passkeys');
export const deletePasskey = (id: string) => post('/passkey/delete-passkey', { id });
