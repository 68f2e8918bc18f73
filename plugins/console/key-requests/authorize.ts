/** A program gets a key by the person's browser: an authorization server (OAuth 2.1: authorization code with PKCE) that gives keys of the gateway as its tokens. */
import { hash, timingSafeEqual } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type ConsoleServices, need } from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import type { AnsweredRequest, Visit } from '../people.ts';
import { accountAdmin } from '../services.ts';
import { type Refusal, refusal, takeTurn } from './codes.ts';
import { isRegistered, longestClientId, programOf, programSchema } from './programs.ts';

/** An address may make so many requests of each kind in ten minutes. */
const [mostVisits, mostRegistered] = [60, 60];

const authorize = route(
  'get',
  '/connect/authorize',
  'A program asks for a key by the person’s browser (RFC 6749, 4.1; RFC 7636)',
  { 302: { description: 'To the page where the person answers, or back to the program with `error`.' } },
  {
    query: z.object({
      client_id: z.string().min(1).max(longestClientId),
      redirect_uri: z.string().min(1).max(1_024),
      response_type: z.string().max(100).optional(),
      code_challenge: z.string().max(200).optional(),
      code_challenge_method: z.string().max(20).optional(),
      state: z.string().max(2_048).optional(),
      resource: z.string().max(1_024).optional(),
    }),
  },
);

const register = route(
  'post',
  '/connect/register',
  'A program says its name and where browsers may go back to (RFC 7591); nothing of it is kept',
  { 201: { description: 'Its `client_id`.' }, 400: { description: '`error` as in RFC 7591.' } },
  { body: { content: { 'application/json': { schema: z.object({}).loose() } }, required: true } },
);

export function authorizationRoutes(services: ConsoleServices) {
  const { keyRequests, programs } = services;
  return new Routes(services)
    .file(authorize, async ({ c, query }) => {
      need(services, accountAdmin);
      const { client_id: clientId, redirect_uri: redirectUri, state } = query;
      takeTurn(services, `connect-visit:${c.env.address}`, mostVisits);
      const program = await programs.find(clientId);
      // Until both are known, the browser is led nowhere.
      if (program === undefined) throw unfit('client_id', 'This program is not registered here.');
      if (!isRegistered(program, redirectUri))
        throw unfit('redirect_uri', 'The program has not registered this address.');
      const visit: Visit = { clientId, redirectUri, challenge: query.code_challenge ?? '', state };
      const fault = faultOf(query, c.env.origin);
      if (fault !== undefined)
        return c.redirect(backTo(visit, { error: fault[0], error_description: fault[1] }, c.env.origin));
      const asked = { program: program.name, machine: '', address: c.env.address };
      const { userCode } = await keyRequests.make(asked, visit);
      return c.redirect(`${c.env.origin}/console/connect?code=${userCode}`);
    })
    .file(register, async ({ c, json }) => {
      need(services, accountAdmin);
      takeTurn(services, `connect-register:${c.env.address}`, mostRegistered);
      const read = programSchema.safeParse(json);
      if (!read.success) {
        const [issue] = read.error.issues;
        const isAddress = issue?.path[0] === 'redirect_uris';
        const error = isAddress ? 'invalid_redirect_uri' : 'invalid_client_metadata';
        return refusal([error, `${issue?.path.join('.')}: ${issue?.message}`]);
      }
      const program = programOf(read.data);
      const client_id = programs.register(program);
      if (client_id.length > longestClientId)
        return refusal(['invalid_client_metadata', 'The addresses are too long together.']);
      return Response.json(
        {
          ...{ client_id, client_name: program.name, redirect_uris: program.redirects },
          ...{ token_endpoint_auth_method: 'none', grant_types: ['authorization_code'], response_types: ['code'] },
        },
        { status: 201, headers: { 'cache-control': 'no-store' } },
      );
    });
}

const unfit = (field: string, message: string) => new GatewayError('invalid_request', message, { field });

function faultOf(
  query: {
    readonly response_type?: string | undefined;
    readonly code_challenge?: string | undefined;
    readonly code_challenge_method?: string | undefined;
    readonly resource?: string | undefined;
  },
  origin: string,
): Refusal | undefined {
  const { response_type: type, code_challenge: challenge = '', code_challenge_method: method, resource } = query;
  if (type !== 'code') return ['unsupported_response_type', 'response_type must be code.'];
  if (method !== 'S256' || !/^[\w-]{43}$/.test(challenge))
    return ['invalid_request', 'code_challenge must be a SHA-256, with code_challenge_method S256.'];
  // A key for another service would be given to a program that was misled (RFC 8707).
  if (resource !== undefined && !isOurs(resource, origin))
    return ['invalid_target', 'resource must be an address of this gateway.'];
  return undefined;
}

export const isOurs = (resource: string, origin: string): boolean =>
  URL.canParse(resource) && new URL(resource).origin === origin;

/** Where the browser goes back to, with the answer and who gives it (RFC 9207). */
function backTo({ redirectUri, state }: Visit, answer: Readonly<Record<string, string>>, issuer: string): string {
  const url = new URL(redirectUri);
  const added = { ...answer, ...(state === undefined ? {} : { state }), iss: issuer };
  for (const [name, value] of Object.entries(added)) url.searchParams.append(name, value);
  return url.href;
}

/** Where the person's browser goes when they have answered; undefined: nowhere. */
export function wayBack({ visit, code }: AnsweredRequest, issuer: string): string | undefined {
  if (visit === undefined) return undefined;
  const denied = { error: 'access_denied', error_description: 'The person did not grant a key.' };
  return backTo(visit, code === undefined ? denied : { code }, issuer);
}

/** Where a visit's answer goes, as people read it. */
export function placeOf({ redirectUri }: Visit): string {
  const { origin, protocol, host } = new URL(redirectUri);
  return origin === 'null' ? `${protocol}//${host}` : origin;
}

/** Whether the program that brings a code is the one that has led the browser here. */
export function isSameProgram(
  visit: Visit,
  given: {
    readonly client_id?: string | undefined;
    readonly redirect_uri?: string | undefined;
    readonly code_verifier?: string | undefined;
  },
): boolean {
  const { client_id: clientId, redirect_uri: redirectUri, code_verifier: verifier = '' } = given;
  if (clientId !== visit.clientId || redirectUri !== visit.redirectUri) return false;
  if (!/^[\w.~-]{43,128}$/.test(verifier)) return false;
  return timingSafeEqual(Buffer.from(hash('sha256', verifier, 'base64url')), Buffer.from(visit.challenge));
}
