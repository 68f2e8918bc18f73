/** A program asks for a key by a code (RFC 8628) or has led the person's browser here, and a person who is signed in grants or denies it. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import { inTheirProject, keyTerms, termsOf } from '../api/keys.ts';
import {
  actorOf,
  type ConsoleServices,
  membershipOf,
  need,
  ownAccount,
  type RequestContext,
  requireRight,
} from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import { answers, instant, iso, takes } from '../api/schemas.ts';
import type { AnsweredRequest } from '../people.ts';
import { accountAdmin } from '../services.ts';
import { placeOf, wayBack } from './authorize.ts';
import { formOf, reasonOf, takeTurn, tooMany, windowMs } from './codes.ts';
import { shown } from './programs.ts';

/** Wrong codes that an address or a person may try in a time. */
const mostWrong = 10;

const code = z.string().max(40).describe('What the program shows, such as `WDJB-MJHT`.');
const codePath = { params: z.object({ code }) };

const ask = route(
  'post',
  '/connect/code',
  'A program asks for a key (RFC 8628, 3.1)',
  answers(
    z
      .object({
        device_code: z.string(),
        user_code: z.string(),
        verification_uri: z.string(),
        verification_uri_complete: z.string(),
        expires_in: z.int().describe('Seconds.'),
        interval: z.int().describe('Seconds between two questions for the key.'),
      })
      .openapi('DeviceCode'),
  ),
  {
    body: formOf({
      client_id: shown.describe('The program that the key is for, as `connect` names it.'),
      machine: shown.optional().describe('What the machine is called.'),
    }),
  },
);
const look = route(
  'get',
  '/connect/requests/{code}',
  'The program that waits with this code',
  answers(
    z
      .object({
        program: z.string(),
        machine: z.string(),
        address: z.string().describe('Where it asks from.'),
        returnsTo: z.string().nullable().describe('Where the browser goes with the answer; null: nowhere.'),
        createdAt: instant,
        expiresAt: instant,
      })
      .openapi('KeyRequest'),
  ),
  codePath,
);
const answered = z
  .object({ ok: z.literal(true), location: z.string().optional().describe('Where the browser goes now.') })
  .openapi('AnsweredKeyRequest');
const grant = route(
  'post',
  '/connect/requests/{code}/grant',
  'Let the program have a key of these terms',
  answers(answered),
  {
    ...codePath,
    body: takes(keyTerms),
  },
);
const deny = route('post', '/connect/requests/{code}/deny', 'Let the program have no key', answers(answered), codePath);

export function keyRequestRoutes(services: ConsoleServices) {
  const { keyRequests, clock } = services;
  return new Routes(services)
    .read(ask, async ({ c, form: { client_id: program, machine = '' } }) => {
      need(services, accountAdmin);
      takeTurn(services, `connect-ask:${c.env.address}`);
      const made = await keyRequests.make({ program, machine, address: c.env.address });
      const page = `${c.env.origin}/console/connect`;
      return {
        device_code: made.deviceCode,
        user_code: made.userCode,
        verification_uri: page,
        verification_uri_complete: `${page}?code=${made.userCode}`,
        expires_in: made.lastsMs / 1_000,
        interval: made.intervalMs / 1_000,
      };
    })
    .read(look, async ({ c, param }) => {
      const { visit, ...found } = await tried(services, c, () => keyRequests.find(param.code));
      const returnsTo = visit === undefined ? null : placeOf(visit);
      return { ...found, returnsTo, createdAt: iso(found.createdAt), expiresAt: iso(found.expiresAt) };
    })
    .action(grant, async ({ c, param, json }) => {
      const { program, machine } = await tried(services, c, () => keyRequests.find(param.code));
      const { expiresAt } = json;
      // It is made when the program takes it: by then it must not have expired.
      if (expiresAt !== undefined && expiresAt !== null && expiresAt <= clock.now())
        throw new GatewayError('invalid_request', 'expiresAt: must be in the future', { field: 'expiresAt' });
      const terms = JSON.stringify(await c.req.json());
      if (json.access !== undefined && json.access !== null) await requireRight(services, c, 'allKeys');
      await inTheirProject(services, await membershipOf(services, c), actorOf(c).id, termsOf(json));
      return {
        action: 'key.grant',
        subject: json.name,
        reason: reasonOf(program, machine),
        run: async () => {
          const by = { personId: actorOf(c).id, accountId: await ownAccount(services, c) };
          return said(await keyRequests.grant(param.code, by, terms), c);
        },
      };
    })
    .action(deny, async ({ c, param }) => {
      const { program, machine } = await tried(services, c, () => keyRequests.find(param.code));
      return {
        action: 'key.deny',
        subject: program,
        reason: reasonOf(program, machine),
        run: async () => said(await keyRequests.deny(param.code, actorOf(c).id), c),
      };
    });
}

const isOver = () => new GatewayError('not_found', 'No program waits with this code.', { field: 'code' });

function said(answer: AnsweredRequest | undefined, c: RequestContext): z.output<typeof answered> {
  if (answer === undefined) throw isOver();
  const location = wayBack(answer, c.env.origin);
  return { ok: true, ...(location === undefined ? {} : { location }) };
}

/** Wrong codes are counted by the person and by the address; after some, right ones are no longer looked at either. */
async function tried<T>(services: ConsoleServices, c: RequestContext, find: () => Promise<T | undefined>): Promise<T> {
  const counted = [`connect-code:${actorOf(c).id}`, `connect-code:${c.env.address}`];
  const waitMs = Math.max(...counted.map((key) => services.throttle.waiting(key)));
  if (waitMs > 0) throw tooMany(waitMs);
  const found = await find();
  if (found !== undefined) return found;
  for (const key of counted) services.throttle.take(key, mostWrong, windowMs);
  throw isOver();
}
