/** A program asks for a key by a code (RFC 8628), and a person who is signed in grants or denies it. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type AccountRight, includes } from '../../common/domain/organizations/rights.ts';
import { keyTerms, termsOf } from '../api/keys.ts';
import {
  actorOf,
  type ConsoleServices,
  need,
  ownAccount,
  type RequestContext,
  requireRight,
} from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import { answers, done, instant, iso, takes } from '../api/schemas.ts';
import { accountAdmin } from '../services.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
/** Codes that one address may ask for, and wrong ones that an address or a person may try, in a time. */
const mostAsked = 20;
const mostWrong = 10;
const windowMs = 10 * 60_000;

/** What a stranger says of itself is shown to people: nothing that hides or turns letters. */
const shown = z
  .string()
  .max(100)
  .transform((text) => text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim());
const formOf = <Shape extends z.ZodRawShape>(shape: Shape) => ({
  content: { 'application/x-www-form-urlencoded': { schema: z.object(shape) } },
  required: true,
});

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
const take = route(
  'post',
  '/connect/token',
  'The program asks whether it has the key (RFC 8628, 3.4); errors are 400 with `error` as there',
  answers(
    z.object({ access_token: z.string().describe('The key.'), token_type: z.literal('Bearer') }).openapi('DeviceKey'),
  ),
  {
    body: formOf({
      grant_type: z.string().max(100).optional(),
      device_code: z.string().max(100).optional(),
      client_id: z.string().max(100).optional(),
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
        createdAt: instant,
        expiresAt: instant,
      })
      .openapi('KeyRequest'),
  ),
  codePath,
);
const grant = route(
  'post',
  '/connect/requests/{code}/grant',
  'Let the program have a key of these terms',
  answers(done),
  {
    ...codePath,
    body: takes(keyTerms),
  },
);
const deny = route('post', '/connect/requests/{code}/deny', 'Let the program have no key', answers(done), codePath);

export function keyRequestRoutes(services: ConsoleServices) {
  const { keyRequests, clock } = services;
  return new Routes(services)
    .read(ask, async ({ c, form: { client_id: program, machine = '' } }) => {
      need(services, accountAdmin);
      takeTurn(services, `connect-ask:${c.env.address}`, mostAsked);
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
    .file(take, async ({ c, form: { grant_type, device_code } }) => {
      if (grant_type !== grantType) return refusal(['unsupported_grant_type', `grant_type must be ${grantType}.`]);
      if (device_code === undefined) return refusal(['invalid_request', 'device_code is missing.']);
      const taken = await keyRequests.take(device_code);
      if (taken.state !== 'granted') return refusal(refusals[taken.state]);
      const key = await makeKey(services, c, taken);
      if (key === undefined) return refusal(refusals.denied);
      return Response.json({ access_token: key, token_type: 'Bearer' });
    })
    .read(look, async ({ c, param }) => {
      const found = await tried(services, c, () => keyRequests.find(param.code));
      return { ...found, createdAt: iso(found.createdAt), expiresAt: iso(found.expiresAt) };
    })
    .action(grant, async ({ c, param, json }) => {
      const { program, machine } = await tried(services, c, () => keyRequests.find(param.code));
      const { expiresAt } = json;
      // It is made when the program takes it: by then it must not have expired.
      if (expiresAt !== undefined && expiresAt !== null && expiresAt <= clock.now())
        throw new GatewayError('invalid_request', 'expiresAt: must be in the future', { field: 'expiresAt' });
      const terms = JSON.stringify(await c.req.json());
      if (json.access !== undefined && json.access !== null) await requireRight(services, c, 'allKeys');
      return {
        action: 'key.grant',
        subject: json.name,
        reason: reasonOf(program, machine),
        run: async () => {
          const by = { personId: actorOf(c).id, accountId: await ownAccount(services, c) };
          if (!(await keyRequests.grant(param.code, by, terms))) throw isOver();
          return { ok: true } as const;
        },
      };
    })
    .action(deny, async ({ c, param }) => {
      const { program, machine } = await tried(services, c, () => keyRequests.find(param.code));
      return {
        action: 'key.deny',
        subject: program,
        reason: reasonOf(program, machine),
        run: async () => {
          if (!(await keyRequests.deny(param.code, actorOf(c).id))) throw isOver();
          return { ok: true } as const;
        },
      };
    });
}

const reasonOf = (program: string, machine: string) => (machine === '' ? program : `${program} on ${machine}`);
const isOver = () => new GatewayError('not_found', 'No program waits with this code.', { field: 'code' });

function takeTurn({ throttle }: ConsoleServices, key: string, most: number): void {
  const retryAfterMs = throttle.take(key, most, windowMs);
  if (retryAfterMs > 0) throw tooMany(retryAfterMs);
}
const tooMany = (retryAfterMs: number) =>
  new GatewayError('rate_limited', 'Too many codes. Try again later.', { retryAfterMs });

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

const refusals = {
  waiting: ['authorization_pending', 'No one has answered yet.'],
  early: ['slow_down', 'Wait five seconds longer between two questions.'],
  denied: ['access_denied', 'The person did not grant a key.'],
  expired: ['expired_token', 'The code has expired: ask for another one.'],
  unknown: ['invalid_grant', 'The code is of no program that waits, or was used already.'],
} as const satisfies Record<string, readonly [string, string]>;

const refusal = ([error, error_description]: readonly [string, string]) =>
  Response.json({ error, error_description }, { status: 400, headers: { 'cache-control': 'no-store' } });

interface Granted {
  readonly program: string;
  readonly machine: string;
  readonly personId: string;
  readonly accountId: string | undefined;
  readonly terms: string;
}

/** In the account that the person had chosen when they granted it, and in their name in the audit log; undefined: they may make none any more. */
async function makeKey(services: ConsoleServices, c: RequestContext, granted: Granted): Promise<string | undefined> {
  const { people, audit } = services;
  const person = await people.find(granted.personId);
  if (person === undefined || person.blocked || person.role === 'auditor') return undefined;
  const terms = termsOf(keyTerms.parse(JSON.parse(granted.terms)));
  const account = await stillMayMake(services, granted, terms.access === undefined ? 'keys' : 'allKeys');
  if (account === undefined) return undefined;
  const end = await audit.begin({
    actor: { kind: 'person', id: person.id, label: person.email, role: person.role },
    action: 'key.create',
    subject: terms.name,
    reason: reasonOf(granted.program, granted.machine),
    address: c.env.address,
    accountId: account,
  });
  try {
    const { key } = await need(services, accountAdmin).createKey(account, terms, person.id);
    await end('done');
    return key;
  } catch (error) {
    await end('failed');
    throw error;
  }
}

/** The account, while the person has the role for it there. */
async function stillMayMake(services: ConsoleServices, { personId, accountId }: Granted, right: AccountRight) {
  const member = await services.people.membershipOf({ id: personId, chosen: accountId });
  if (accountId !== undefined && member.accountId !== accountId) return undefined;
  return includes(member.role, right) ? member.accountId : undefined;
}
