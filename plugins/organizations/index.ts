/** Administration of an account by a key of its own kind, in the shapes of OpenAI's organization interface: projects. */
import { definePlugin, type Endpoint, type Exchange, type Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';
import { z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { projectAdmin } from '../common/domain/organizations/projects.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { archived, changed, created, found, listed } from './projects.ts';

export default definePlugin({
  name: 'organizations',
  config: z.strictObject({}),
  services: { requires: [projectAdmin] },
  requires: [caller],
  setup: (host) => ({ endpoints: projectEndpoints(host), addresses: { pathPrefixes: ['/v1'] } }),
});

const root = '/v1/organization/projects';
const one = `${root}/:project_id`;
const listParameters = {
  limit: 'At most 100; by default 20.',
  after: 'The project to begin behind.',
  include_archived: 'true: archived ones too.',
};
const named = { types: ['application/json'], required: ['name'] };

function projectEndpoints(host: Host): Endpoint[] {
  const projects = () => host.get(projectAdmin);
  const endpoint = (
    method: 'GET' | 'POST',
    path: string,
    describes: PublicOperation,
    answer: (exchange: Exchange, accountId: string) => Promise<object>,
  ): Endpoint => ({
    ...{ method, path, operation: 'organization', describes: [describes], renderError: envelopeAnswer },
    body: method === 'GET' ? 'none' : 'json',
    handle: async (exchange) => jsonOf(await answer(exchange, administered(exchange))),
  });
  const idOf = ({ request }: Exchange) => request.params['project_id'] ?? '';
  return [
    endpoint('GET', root, { summary: 'Lists the projects.', query: listParameters }, ({ request }, accountId) =>
      listed(projects(), accountId, request.query),
    ),
    endpoint('POST', root, { summary: 'Makes a project.', body: named }, ({ request }, accountId) =>
      created(projects(), accountId, request.body),
    ),
    endpoint('GET', one, { summary: 'Gets a project.' }, (exchange, accountId) =>
      found(projects(), accountId, idOf(exchange)),
    ),
    endpoint('POST', one, { summary: 'Gives a project another name.', body: named }, (exchange, accountId) =>
      changed(projects(), accountId, idOf(exchange), exchange.request.body),
    ),
    endpoint(
      'POST',
      `${one}/archive`,
      { summary: 'Archives a project: its keys are refused.' },
      (exchange, accountId) => archived(projects(), accountId, idOf(exchange)),
    ),
  ];
}

/** The account, if the key is one of the organization's. */
function administered(exchange: Exchange): string {
  const { accountId, access } = exchange.get(caller);
  if (access === 'organization') return accountId;
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
