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

/** The session's token, where the cookie is there and was signed with one of the secrets. */
export function sessionTokenOf(
  cookieHeader: string | null | undefined,
  name: string,
  secrets: string | readonly string[],
): string | undefined {
  const value = cookieOf(cookieHeader, name);
  const parts = value === undefined ? undefined : signedParts(value);
  if (parts === undefined) return undefined;
  return [secrets].flat().some((secret) => isSignedBy(secret, parts)) ? parts.text : undefined;
}

interface SignedText {
  readonly text: string;
  readonly signature: Buffer;
}

function signedParts(value: string): SignedText | undefined {
  const dot = value.lastIndexOf('.');
  return dot <= 0 ? undefined : { text: value.slice(0, dot), signature: Buffer.from(value.slice(dot + 1), 'base64') };
}

function isSignedBy(secret: string, { text, signature }: SignedText): boolean {
  const right = createHmac('sha256', secret).update(text).digest();
  return signature.length === right.length && timingSafeEqual(signature, right);
}

/** The header with what an older secret has signed signed by the first, as better-auth takes that one alone. */
export function signedByFirst(header: string, [first, ...older]: readonly [string, ...string[]]): string {
  if (older.length === 0) return header;
  return header
    .split(';')
    .map((pair) => {
      const name = pair.slice(0, pair.indexOf('=')).trim();
      const value = cookieOf(pair, name);
      const parts = value === undefined ? undefined : signedParts(value);
      if (parts === undefined || !older.some((secret) => isSignedBy(secret, parts))) return pair;
      const signature = createHmac('sha256', first).update(parts.text).digest('base64');
      return ` ${name}=${encodeURIComponent(`${parts.text}.${signature}`)}`;
    })
    .join(';');
}

/** The same for a token of a link (JWT, HS256). */
export function tokenByFirst(token: string, [first, ...older]: readonly [string, ...string[]]): string {
  const dot = token.lastIndexOf('.');
  const text = token.slice(0, dot);
  const sign = (secret: string) => createHmac('sha256', secret).update(text).digest('base64url');
  const given = Buffer.from(token.slice(dot + 1));
  const isOlder = older
    .map(sign)
    .some((right) => right.length === given.length && timingSafeEqual(Buffer.from(right), given));
  return isOlder ? `${text}.${sign(first)}` : token;
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
