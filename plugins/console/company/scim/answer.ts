/** Answers of SCIM 2.0 below `/console/scim/v2`: a company's directory says who is in its account, by the account's token. */

import { toGatewayError } from '../../../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, tryParse } from '../../../../core/json/json.ts';
import type { ConsoleServices } from '../../api/routing/router.ts';
import { memberAdmin } from '../../services.ts';
import { noted } from '../apply.ts';
import { type Directory, targetOf } from './directory.ts';
import * as groups from './groups.ts';
import { errorBody, missing, resourceTypes, ScimError, schemas, serviceProvider, wrong } from './shapes.ts';
import * as users from './users.ts';

const scimPath = '/console/scim/v2';
const mostPerMinute = 1_200;
const mostWrong = 60;

interface Asked {
  readonly origin: string;
  readonly address: string;
}

export async function answerScim(services: ConsoleServices, request: Request, asked: Asked): Promise<Response> {
  try {
    const directory = await directoryOf(services, request, asked);
    const url = new URL(request.url);
    const [kind = '', id, more] = url.pathname.slice(scimPath.length + 1).split('/');
    if (more !== undefined) throw missing();
    const given = { method: request.method, id, query: url.searchParams, body: () => bodyOf(request) };
    const { status, body } = await answerOf(directory, kind, given);
    return answer(status, body);
  } catch (error) {
    return refusalOf(services, error);
  }
}

interface Given {
  readonly method: string;
  readonly id: string | undefined;
  readonly query: URLSearchParams;
  readonly body: () => Promise<JsonObject>;
}
interface Said {
  readonly status: number;
  readonly body?: object | undefined;
}

function answerOf(directory: Directory, kind: string, given: Given): Promise<Said> | Said {
  if (kind === 'Users') return usersAnswer(directory, given);
  if (kind === 'Groups') return groupsAnswer(directory, given);
  if (given.method !== 'GET' || given.id !== undefined) throw missing();
  if (kind === 'ServiceProviderConfig') return { status: 200, body: serviceProvider };
  if (kind === 'ResourceTypes') return { status: 200, body: whole(resourceTypes) };
  if (kind === 'Schemas') return { status: 200, body: whole(schemas) };
  throw missing();
}

const whole = (rows: readonly object[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
  ...{ totalResults: rows.length, startIndex: 1, itemsPerPage: rows.length, Resources: rows },
});

async function usersAnswer(directory: Directory, { method, id, query, body }: Given): Promise<Said> {
  const shown = (row: Parameters<typeof users.userBody>[0]) => users.userBody(row, directory.base);
  if (id === undefined) {
    if (method === 'GET') return { status: 200, body: await users.listUsers(directory, query) };
    if (method === 'POST') return { status: 201, body: shown(await users.makeUser(directory, await body())) };
    throw notThere();
  }
  if (method === 'GET') return { status: 200, body: shown(await users.userOf(directory, id)) };
  if (method === 'PUT') return { status: 200, body: shown(await users.replaceUser(directory, id, await body())) };
  if (method === 'PATCH') return { status: 200, body: shown(await users.patchUser(directory, id, await body())) };
  if (method !== 'DELETE') throw notThere();
  await users.removeUser(directory, id);
  return { status: 204 };
}

async function groupsAnswer(directory: Directory, { method, id, query, body }: Given): Promise<Said> {
  const shown = (row: Parameters<typeof groups.groupBody>[1]) => groups.groupBody(directory, row);
  if (id === undefined) {
    if (method === 'GET') return { status: 200, body: await groups.listGroups(directory, query) };
    if (method === 'POST') return { status: 201, body: await shown(await groups.makeGroup(directory, await body())) };
    throw notThere();
  }
  if (method === 'GET') return { status: 200, body: await shown(await groups.groupOf(directory, id)) };
  if (method === 'PUT')
    return { status: 200, body: await shown(await groups.replaceGroup(directory, id, await body())) };
  if (method === 'PATCH')
    return { status: 200, body: await shown(await groups.patchGroup(directory, id, await body())) };
  if (method !== 'DELETE') throw notThere();
  await groups.removeGroup(directory, id);
  return { status: 204 };
}

const notThere = () => new ScimError(405, 'This address does not take this method.');

async function bodyOf(request: Request): Promise<JsonObject> {
  const body = tryParse(await request.text());
  if (!isObject(body)) throw wrong('The body must be a JSON object.', 'invalidSyntax');
  if (JSON.stringify(body).includes('\\u0000')) throw wrong('A text has the character U+0000.');
  return body;
}

/** Wrong tokens are counted by the address; after some, right ones are no longer looked at either. */
async function directoryOf(
  services: ConsoleServices,
  request: Request,
  { origin, address }: Asked,
): Promise<Directory> {
  const { companies, throttle, clock, audit } = services;
  const wrongKey = `scim-wrong:${address}`;
  if (throttle.waiting(wrongKey) > 0) throw new ScimError(429, 'Too many attempts. Try again later.');
  const token = /^bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  const accountId = token === undefined ? undefined : await companies.scim.accountOf(token);
  if (accountId === undefined) {
    throttle.take(wrongKey, mostWrong, 60_000);
    throw new ScimError(401, 'The token is missing, or of no account.');
  }
  if (throttle.take(`scim:${accountId}`, mostPerMinute, 60_000) > 0)
    throw new ScimError(429, 'Too many requests. Try again later.');
  const members = services.find(memberAdmin);
  if (members === undefined) throw missing();
  const { store, claimed, newId, domains, rules } = companies.scim;
  const directory: Directory = {
    ...{ accountId, base: origin + scimPath, address, store, claimed, members, clock, audit, newId },
    now: () => new Date(clock.now()),
    domains: () => domains(accountId),
    rules: () => rules(accountId),
    async makePerson(email, name) {
      let id = '';
      await noted({ audit }, targetOf(directory, '', email), 'scim.create', [], async () => {
        id = await companies.scim.makePerson(email, name);
      });
      return id;
    },
  };
  return directory;
}

function refusalOf({ log }: Pick<ConsoleServices, 'log'>, error: unknown): Response {
  if (error instanceof ScimError) return answer(error.status, errorBody(error));
  const { status, message, kind } = toGatewayError(error);
  if (kind === 'internal') log.error({ error }, 'a request of a company directory failed inside the gateway');
  return answer(status, errorBody(new ScimError(status, message)));
}

const answer = (status: number, body: object | undefined) =>
  new Response(body === undefined ? null : JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/scim+json', 'cache-control': 'no-store' },
  });
