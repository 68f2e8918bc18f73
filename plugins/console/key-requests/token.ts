/** A program takes the key that a person has granted it: by the code that it waits with, or by the one that the browser has brought it. */
import { z } from '@hono/zod-openapi';
import { type AccountRight, includes } from '../../common/domain/organizations/rights.ts';
import { inTheirProject, keyTerms, termsOf } from '../api/keys.ts';
import { type ConsoleServices, need, type RequestContext } from '../api/routing/router.ts';
import { Routes, route } from '../api/routing/routes.ts';
import { answers } from '../api/schemas.ts';
import { accountAdmin } from '../services.ts';
import { isOurs, isSameProgram } from './authorize.ts';
import { formOf, type Refusal, reasonOf, refusal } from './codes.ts';
import { longestClientId } from './programs.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
const visitType = 'authorization_code';
const tokenForm = {
  grant_type: z.string().max(100).optional(),
  device_code: z.string().max(100).optional(),
  client_id: z.string().max(longestClientId).optional(),
  code: z.string().max(100).optional(),
  redirect_uri: z.string().max(1_024).optional(),
  code_verifier: z.string().max(200).optional(),
  resource: z.string().max(1_024).optional(),
};
type TokenForm = z.output<z.ZodObject<typeof tokenForm>>;
const take = route(
  'post',
  '/connect/token',
  'The program asks whether it has the key (RFC 8628, 3.4), or brings the code that the browser has given it (RFC 6749, 4.1.3); errors are 400 with `error` as there',
  answers(
    z
      .object({
        access_token: z.string().describe('The key.'),
        token_type: z.literal('Bearer'),
        expires_in: z.int().optional().describe('Seconds, for a key that ends.'),
      })
      .openapi('DeviceKey'),
  ),
  {
    body: formOf(tokenForm),
  },
);

export function keyTokenRoutes(services: ConsoleServices) {
  return new Routes(services).file(take, async ({ c, form }) => {
    const taken = await takenBy(services, form, c.env.origin);
    if (!('terms' in taken)) return refusal(taken);
    const made = await makeKey(services, c, taken);
    if (made === undefined) return refusal(refusals.denied);
    const { key, expiresAt } = made;
    const seconds = expiresAt === undefined ? undefined : Math.floor((expiresAt - services.clock.now()) / 1_000);
    const token = {
      access_token: key,
      token_type: 'Bearer',
      ...(seconds === undefined ? {} : { expires_in: seconds }),
    };
    return Response.json(token, { headers: { 'cache-control': 'no-store' } });
  });
}

/** What was granted to the program that asks, or why it gets nothing. */
async function takenBy({ keyRequests }: ConsoleServices, form: TokenForm, origin: string): Promise<Granted | Refusal> {
  const { grant_type: type, device_code, code, resource } = form;
  const isVisit = type === visitType;
  if (!isVisit && type !== grantType)
    return ['unsupported_grant_type', `grant_type must be ${visitType} or ${grantType}.`];
  const given = isVisit ? code : device_code;
  if (given === undefined) return ['invalid_request', `${isVisit ? 'code' : 'device_code'} is missing.`];
  if (resource !== undefined && !isOurs(resource, origin))
    return ['invalid_target', 'resource must be an address of this gateway.'];
  const taken = await keyRequests.take(given, isVisit ? 'visit' : 'device');
  if (taken.state !== 'granted') return isVisit ? refusals.unknown : refusals[taken.state];
  // It is used up by the question: a code without the proof was not brought by its program.
  if (taken.visit !== undefined && !isSameProgram(taken.visit, form)) return refusals.unknown;
  return taken;
}

const refusals = {
  waiting: ['authorization_pending', 'No one has answered yet.'],
  early: ['slow_down', 'Wait five seconds longer between two questions.'],
  denied: ['access_denied', 'The person did not grant a key.'],
  expired: ['expired_token', 'The code has expired: ask for another one.'],
  unknown: ['invalid_grant', 'The code is of no program that waits, or was used already.'],
} as const satisfies Record<string, Refusal>;

interface Granted {
  readonly program: string;
  readonly machine: string;
  readonly personId: string;
  readonly accountId: string | undefined;
  readonly terms: string;
}

/** In the account that the person had chosen when they granted it, and in their name in the audit log; undefined: they may make none any more. */
async function makeKey(
  services: ConsoleServices,
  c: RequestContext,
  granted: Granted,
): Promise<{ readonly key: string; readonly expiresAt: number | undefined } | undefined> {
  const { people, audit } = services;
  const person = await people.find(granted.personId);
  if (person === undefined || person.blocked || person.role === 'auditor') return undefined;
  const wanted = termsOf(keyTerms.parse(JSON.parse(granted.terms)));
  const member = await stillMayMake(services, granted, wanted.access === undefined ? 'keys' : 'allKeys');
  if (member === undefined) return undefined;
  const terms = await inTheirProject(services, member, person.id, wanted);
  const end = await audit.begin({
    actor: { kind: 'person', id: person.id, label: person.email, role: person.role },
    action: 'key.create',
    subject: terms.name,
    reason: reasonOf(granted.program, granted.machine),
    address: c.env.address,
    accountId: member.accountId,
  });
  try {
    const { key } = await need(services, accountAdmin).createKey(member.accountId, terms, person.id);
    await end('done');
    return { key, expiresAt: terms.expiresAt };
  } catch (error) {
    await end('failed');
    throw error;
  }
}

/** The person in the account, while they have the role for it there. */
async function stillMayMake(services: ConsoleServices, { personId, accountId }: Granted, right: AccountRight) {
  const member = await services.people.membershipOf({ id: personId, chosen: accountId });
  if (accountId !== undefined && member.accountId !== accountId) return undefined;
  return includes(member.role, right) ? member : undefined;
}
