/** Headers by which browsers keep others off the pages. Pure. */
import type { Headers } from '../../../../core/contract/message.ts';

/** Headers of every answer. */
export function commonHeaders(secure: boolean): Headers {
  return {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'x-frame-options': 'DENY',
    ...(secure ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}

/** For answers that are no pages. */
export const dataPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Policy of pages: our own scripts alone, and style elements that carry this answer's nonce. */
export function pagePolicy(nonce: string | undefined, mediaOrigins: readonly string[]): string {
  const media = ["'self'", 'data:', 'blob:', ...mediaOrigins].join(' ');
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' ${nonce === undefined ? "'unsafe-inline'" : `'nonce-${nonce}'`}`,
    `img-src ${media}`,
    `media-src ${media}`,
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}
