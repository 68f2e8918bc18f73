/** What this gateway says of itself as an authorization server (RFC 8414): programs find by it how people sign in to them. */
import type { Endpoint, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import { originOf } from '../../common/kit/pages/origin.ts';

/** `origin`: as configured. */
export const authorizationEndpoint = (host: Host, origin: string): Endpoint => ({
  method: 'GET',
  path: '/.well-known/oauth-authorization-server',
  operation: 'console',
  body: 'none',
  keyless: true,
  unlogged: true,
  handle({ request }) {
    if (host.find(accountAdmin) === undefined)
      throw new GatewayError('not_found', 'There is nothing here.', { code: 'unknown_url' });
    const body = JSON.stringify(metadataOf(originOf(origin, request.headers['host'])));
    return { status: 200, headers: { 'content-type': 'application/json' }, body };
  },
});

function metadataOf(origin: string): object {
  const at = (path: string) => `${origin}/console/api/connect/${path}`;
  return {
    issuer: origin,
    authorization_endpoint: at('authorize'),
    token_endpoint: at('token'),
    registration_endpoint: at('register'),
    device_authorization_endpoint: at('code'),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
  };
}
