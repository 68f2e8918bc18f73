/** Calls by browser pages of other origins: answers preflights, and lets allowed pages read answers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../contract/message.ts';
import { z } from '../contract/schema.ts';

/** Pages of these origins may call the gateway; undefined: no page of another origin may. */
export type AllowedOrigins = '*' | ReadonlySet<string> | undefined;

/** Browsers keep a preflight's answer for two hours at most. */
const keptSeconds = '7200';
const listOfNames = /^[\w!#$%&'*+.^`|~,\t -]*$/;

/** An origin as browsers send it: a scheme, a host and perhaps a port; `null` for pages in files and sandboxed frames. */
const origin = z
  .string()
  .transform((value) => value.toLowerCase().replace(/\/$/, ''))
  .refine(
    (value) => value === 'null' || /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+$/.test(value),
    'must be an origin such as https://app.example.com or http://localhost:3000',
  );

export const crossOriginSchema = z
  .strictObject({
    origins: z
      // YAML of version 1.1 reads `off` as false.
      .union([z.enum(['*', 'off']), z.literal(false), z.array(origin).min(1)], {
        error: 'must be "*", off, or a list of origins such as https://app.example.com',
      })
      .default('*')
      .transform((value): AllowedOrigins => {
        if (value === '*') return value;
        return value === 'off' || value === false ? undefined : new Set(value);
      })
      .describe(
        'Origins of pages that may call this gateway with a key: all of them (*), those of a list, or none (off). Restrict it when only your own pages should call from browsers.',
      ),
  })
  .prefault({})
  .describe('Calls by browser pages of other origins (CORS). Cookies are never accepted from them.');

/**
 * Sets the headers by which the browser lets a page of this origin read the answer, whatever the answer will be. Returns the answer
 * itself if the request is a preflight.
 */
export function admitPage(
  { method, headers }: IncomingMessage,
  outgoing: ServerResponse,
  allowed: '*' | ReadonlySet<string>,
): Answer | undefined {
  const sent = headers.origin!;
  const isAllowed = allowed === '*' || allowed.has(sent.toLowerCase());
  if (allowed !== '*') outgoing.setHeader('vary', 'origin');
  if (isAllowed) {
    outgoing.setHeader('access-control-allow-origin', allowed === '*' ? '*' : sent);
    outgoing.setHeader('access-control-expose-headers', '*');
  }
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return undefined;
  if (!isAllowed) return { status: 403, headers: {}, body: '' };
  // `*` would not stand for `authorization`: requested headers are allowed by name.
  const names = headers['access-control-request-headers'];
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      ...(names !== undefined && listOfNames.test(names) ? { 'access-control-allow-headers': names } : {}),
      'access-control-max-age': keptSeconds,
    },
    body: '',
  };
}
