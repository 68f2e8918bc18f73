/** The session cookie as better-auth writes it: `token.signature`, found and checked. Pure. */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface CookieNames {
  /** Prefix of every name. Cookies ignore ports, so it distinguishes gateways of one host. */
  readonly prefix: string;
  /** Cookies that are sent over TLS alone. */
  readonly secure: boolean;
}

export function sessionCookieName({ prefix, secure }: CookieNames): string {
  return `${secure ? '__Secure-' : ''}${prefix}.session_token`;
}

/** The session's token, where the cookie is there and was signed with the secret. */
export function sessionTokenOf(
  cookieHeader: string | null | undefined,
  name: string,
  secret: string,
): string | undefined {
  const value = cookieOf(cookieHeader, name);
  const dot = value?.lastIndexOf('.') ?? -1;
  if (value === undefined || dot <= 0) return undefined;
  const token = value.slice(0, dot);
  const signature = Buffer.from(value.slice(dot + 1), 'base64');
  const right = createHmac('sha256', secret).update(token).digest();
  return signature.length === right.length && timingSafeEqual(signature, right) ? token : undefined;
}

/** A cookie's value; undefined: it is not there, or is not readable. */
export function cookieOf(header: string | null | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    try {
      return decodeURIComponent(pair.slice(equals + 1).trim());
    } catch {
      return undefined;
    }
  }
  return undefined;
}
