/** Programs that lead people's browsers here: known by what they have registered, which their id itself says, or by a document at the address that is their id. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import type { Host } from '../../../core/contract/contract.ts';
import { isObject, tryParse } from '../../../core/json/json.ts';
import type { Secrets } from '../people/secrets.ts';

/** A program, and the addresses that browsers may go back to. */
export interface Program {
  readonly name: string;
  readonly redirects: readonly string[];
}

export interface Programs {
  /** Its id, which no row keeps: it is signed, and holds what was registered. */
  register(program: Program): string;
  /** undefined: there is none of this id, or what stands at its address does not describe it. */
  find(clientId: string): Promise<Program | undefined>;
}

const prefix = 'program-';
const largestDocument = 16 * 1024;
const documentMs = 5_000;
export const longestClientId = 4_096;

/** What a stranger says of itself is shown to people: nothing that hides or turns letters. */
export const shown = z
  .string()
  .max(100)
  .transform((text) => text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim());

/** Schemes that browsers run or read themselves. */
const ownSchemes = /^(?:javascript|data|vbscript|blob|file|filesystem|about|view-source|wss?|ftp|intent|chrome|edge):/;
const loopback = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?(?=\/|\?|$)/;

/** With TLS, on the person's own machine, or by a scheme that the program has there; never with a fragment or a name and password. */
function mayReturnTo(address: string): boolean {
  if (address.length > 1_024 || !/^[\x21-\x7e]+$/.test(address) || !URL.canParse(address)) return false;
  const url = new URL(address);
  if (address.includes('#') || url.username !== '' || url.password !== '') return false;
  if (url.protocol === 'https:') return url.hostname !== '';
  if (url.protocol === 'http:') return loopback.test(address);
  return /^[a-z][a-z0-9+.-]*:\/[^\\]*$/.test(address) && !ownSchemes.test(address);
}

/** As it was registered; a program on the person's machine has another port each time (RFC 8252, 7.3). */
export function isRegistered({ redirects }: Program, address: string): boolean {
  if (!mayReturnTo(address)) return false;
  const portless = (one: string) => one.replace(loopback, (host) => host.replace(/(?<=[^:[]):\d+$/, ''));
  return redirects.some((one) => one === address || (loopback.test(one) && portless(one) === portless(address)));
}

/** What a program registers (RFC 7591) or says in its document; members beside these are ignored. */
export const programSchema = z.object({
  client_name: shown.optional(),
  redirect_uris: z
    .array(z.string().refine(mayReturnTo, 'must be https, on this machine, or of an own scheme'))
    .min(1)
    .max(10),
  token_endpoint_auth_method: z.string().max(100).optional(),
});

const named = (name: string | undefined) => (name === undefined || name === '' ? 'A program' : name);

export function openPrograms(fetch: Host['fetch'], secrets: () => Secrets): Programs {
  return {
    register({ name, redirects }) {
      const text = Buffer.from(JSON.stringify([name, ...redirects])).toString('base64url');
      return `${prefix}${text}.${signed(text, secrets()[0])}`;
    },
    async find(clientId) {
      if (clientId.length > longestClientId) return undefined;
      return clientId.startsWith(prefix) ? opened(clientId, secrets()) : described(clientId, fetch);
    },
  };
}

export const programOf = ({ client_name, redirect_uris }: z.output<typeof programSchema>): Program => ({
  name: named(client_name),
  redirects: redirect_uris,
});

function opened(clientId: string, secrets: Secrets): Program | undefined {
  const [text = '', signature = ''] = clientId.slice(prefix.length).split('.');
  const given = Buffer.from(signature);
  const isOurs = secrets.some((secret) => {
    const right = Buffer.from(signed(text, secret));
    return right.length === given.length && timingSafeEqual(right, given);
  });
  if (!isOurs) return undefined;
  const [name = '', ...redirects] = JSON.parse(Buffer.from(text, 'base64url').toString()) as string[];
  return { name, redirects };
}

const signed = (text: string, secret: string) =>
  createHmac('sha256', secret).update(`registered program ${text}`).digest('base64url');

/** https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/ */
async function described(clientId: string, fetch: Host['fetch']): Promise<Program | undefined> {
  if (!isDocumentAddress(clientId)) return undefined;
  try {
    const headers = { accept: 'application/json' };
    const answer = await fetch(clientId, { headers, timeoutMs: documentMs, maxBytes: largestDocument });
    const json = tryParse(await answer.text());
    // What another address says is not the program's own word.
    const isOwn = answer.status === 200 && !answer.redirected && isObject(json) && json['client_id'] === clientId;
    const read = isOwn ? programSchema.safeParse(json) : undefined;
    if (read?.success !== true || (read.data.token_endpoint_auth_method ?? 'none') !== 'none') return undefined;
    // The name is claimed, the address is proved.
    const host = new URL(clientId).hostname;
    return programOf({ ...read.data, client_name: `${read.data.client_name ?? ''} (${host})`.trim() });
  } catch {
    return undefined;
  }
}

function isDocumentAddress(clientId: string): boolean {
  if (!clientId.startsWith('https://') || !URL.canParse(clientId)) return false;
  const { href, pathname, hash, username, password } = new URL(clientId);
  return href === clientId && pathname !== '/' && hash === '' && username === '' && password === '';
}
