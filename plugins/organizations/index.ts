/** Administration of an account by a key of its own kind, in the shapes of OpenAI's organization interface: projects, members, invitations, its own keys and the log. */
import { definePlugin, type Endpoint, type Exchange, type Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';
import { z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { type AdministratorKey, memberAdmin, memberContacts } from '../common/domain/organizations/members.ts';
import { projectAdmin } from '../common/domain/organizations/projects.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { adminKey, adminKeys } from './admin-keys.ts';
import { auditLogs } from './audit-logs.ts';
import * as of from './members.ts';
import { archived, changed, created, found, listed } from './projects.ts';

export default definePlugin({
  name: 'organizations',
  config: z.strictObject({}),
  services: { requires: [projectAdmin, accountAdmin], optional: [memberAdmin, memberContacts] },
  requires: [caller],
  setup: (host) => ({
    endpoints: [...projectEndpoints(host), ...memberEndpoints(host), ...keyEndpoints(host)],
    addresses: { pathPrefixes: ['/v1'] },
  }),
});

const root = '/v1/organization';
const projectsRoot = `${root}/projects`;
const oneProject = `${projectsRoot}/:project_id`;
const listParameters = { limit: 'At most 100; by default 20.', after: 'The id to begin behind.' };
const named = { types: ['application/json'], required: ['name'] };

function endpoint(
  [method, path]: readonly [Endpoint['method'], string],
  describes: PublicOperation,
  answer: (exchange: Exchange, key: AdministratorKey) => Promise<object>,
): Endpoint {
  return {
    ...{ method, path, operation: 'organization', describes: [describes], renderError: envelopeAnswer },
    body: method === 'POST' ? 'json' : 'none',
    handle: async (exchange) => jsonOf(await answer(exchange, administered(exchange))),
  };
}

function projectEndpoints(host: Host): Endpoint[] {
  const projects = () => host.get(projectAdmin);
  const idOf = ({ request }: Exchange) => request.params['project_id'] ?? '';
  const query = { ...listParameters, include_archived: 'true: archived ones too.' };
  return [
    endpoint(['GET', projectsRoot], { summary: 'Lists the projects.', query }, ({ request }, { accountId }) =>
      listed(projects(), accountId, request.query),
    ),
    endpoint(['POST', projectsRoot], { summary: 'Makes a project.', body: named }, ({ request }, { accountId }) =>
      created(projects(), accountId, request.body),
    ),
    endpoint(['GET', oneProject], { summary: 'Gets a project.' }, (exchange, { accountId }) =>
      found(projects(), accountId, idOf(exchange)),
    ),
    endpoint(
      ['POST', oneProject],
      { summary: 'Gives a project another name.', body: named },
      (exchange, { accountId }) => changed(projects(), accountId, idOf(exchange), exchange.request.body),
    ),
    endpoint(
      ['POST', `${oneProject}/archive`],
      { summary: 'Archives a project: its keys are refused.' },
      (exchange, { accountId }) => archived(projects(), accountId, idOf(exchange)),
    ),
  ];
}

const usersRoot = `${root}/users`;
const oneUser = `${usersRoot}/:user_id`;
const invitesRoot = `${root}/invites`;
const oneInvite = `${invitesRoot}/:invite_id`;
const withRole = { types: ['application/json'], required: ['role'] };
const withAddress = { types: ['application/json'], required: ['email', 'role'] };

function memberEndpoints(host: Host): Endpoint[] {
  const members = () => membersOf(host);
  const userOf = ({ request }: Exchange) => request.params['user_id'] ?? '';
  const inviteOf = ({ request }: Exchange) => request.params['invite_id'] ?? '';
  const query = listParameters;
  const inSpan = {
    ...query,
    'effective_at[gte]': 'From this time, in seconds.',
    'effective_at[lt]': 'Before this time.',
  };
  return [
    endpoint(['GET', usersRoot], { summary: 'Lists the members, the longest first.', query }, ({ request }, key) =>
      of.users(members(), key, request.query),
    ),
    endpoint(['GET', oneUser], { summary: 'Gets a member.' }, (exchange, key) =>
      of.user(members(), key, userOf(exchange)),
    ),
    endpoint(['POST', oneUser], { summary: 'Gives a member another role.', body: withRole }, (exchange, key) =>
      of.changedUser(members(), key, userOf(exchange), exchange.request.body),
    ),
    endpoint(['DELETE', oneUser], { summary: 'Removes a member and revokes their keys.' }, (exchange, key) =>
      of.removedUser(members(), key, userOf(exchange)),
    ),
    endpoint(['GET', invitesRoot], { summary: 'Lists the invitations, newest first.', query }, ({ request }, key) =>
      of.invites(members(), key, request.query),
    ),
    endpoint(['POST', invitesRoot], { summary: 'Invites an address.', body: withAddress }, ({ request }, key) =>
      of.createdInvite(members(), key, request.body),
    ),
    endpoint(['GET', oneInvite], { summary: 'Gets an invitation.' }, (exchange, key) =>
      of.invite(members(), key, inviteOf(exchange)),
    ),
    endpoint(['DELETE', oneInvite], { summary: 'Takes an invitation back.' }, (exchange, key) =>
      of.deletedInvite(members(), key, inviteOf(exchange)),
    ),
    endpoint(
      ['GET', `${root}/audit_logs`],
      { summary: 'Lists what was done in the account, newest first.', query: inSpan },
      ({ request }, key) => auditLogs(members(), key, request.query),
    ),
  ];
}

const keysRoot = `${root}/admin_api_keys`;

function keyEndpoints(host: Host): Endpoint[] {
  const from = () => ({
    keys: host.get(accountAdmin).keys,
    now: () => host.clock.now(),
    members: peopleOf(host),
  });
  const query = { ...listParameters, order: 'asc: the oldest first, which is the default; desc: the newest.' };
  return [
    endpoint(['GET', keysRoot], { summary: 'Lists the keys of the organization that work.', query }, (exchange, key) =>
      adminKeys(from(), key, exchange.request.query),
    ),
    endpoint(['GET', `${keysRoot}/:key_id`], { summary: 'Gets a key of the organization.' }, ({ request }, key) =>
      adminKey(from(), key, request.params['key_id'] ?? ''),
    ),
  ];
}

/** Without a console there are no people. */
function peopleOf(host: Host): of.Members | undefined {
  const [admin, contacts] = [host.find(memberAdmin), host.find(memberContacts)];
  if (admin === undefined || contacts === undefined) return undefined;
  return { admin, contacts, now: () => host.clock.now() };
}

function membersOf(host: Host): of.Members {
  const members = peopleOf(host);
  if (members !== undefined) return members;
  throw new GatewayError('not_found', 'This gateway has no members.', { shouldRetry: false });
}

/** The account, if the key is one of the organization's. */
function administered(exchange: Exchange): AdministratorKey {
  const { accountId, keyId, access } = exchange.get(caller);
  if (access === 'organization') return { accountId, keyId, address: exchange.request.remoteAddress };
  throw new GatewayError('forbidden', 'This address takes keys of an organization alone, and this key is for calls.', {
    code: 'organization_key_required',
    shouldRetry: false,
  });
}

const jsonOf = (body: object): Answer => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  body: JSON.stringify(body),
});
