/** How clients without a key find out where to get one: the endpoints as resources that OAuth protects (RFC 9728). */
import type { Endpoint, Host } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Answer, ClientRequest } from '../../core/contract/message.ts';
import { consoleSite } from '../common/domain/pages/console-site.ts';
import { originOf } from '../common/kit/pages/origin.ts';
import { rpcError } from './errors.ts';

const metadataPath = '/.well-known/oauth-protected-resource';

/** One for each path of the protocol, and one for the gateway as a whole. */
export function protectedResources(host: Host): Endpoint[] {
  return ['', '/mcp', '/mcp/:bundle'].map((path) => ({
    ...{ method: 'GET', path: metadataPath + path, operation: 'tool-metadata', body: 'none', keyless: true },
    unlogged: true,
    handle: ({ request }) => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'access-control-allow-origin': '*' },
      body: JSON.stringify(metadataOf(host, request)),
    }),
  }));
}

function metadataOf(host: Host, request: ClientRequest): object {
  const site = host.find(consoleSite);
  const origin = ownOrigin(host, request);
  return {
    resource: origin + request.path.slice(metadataPath.length),
    // Without a console no one can sign in: keys are given by hand.
    ...(site === undefined ? {} : { authorization_servers: [origin] }),
    bearer_methods_supported: ['header'],
    resource_name: site?.look().name || host.gateway,
  };
}

const ownOrigin = (host: Host, { headers }: ClientRequest): string =>
  originOf(host.find(consoleSite)?.look().origin ?? '', headers['host']);

/** Errors of the endpoints; one that a key would mend says where its metadata are. */
export function errorsOf(host: Host): NonNullable<Endpoint['renderError']> {
  return (error: GatewayError, exchange: { readonly id: string; readonly request: ClientRequest }): Answer => {
    const answer = rpcError(error, exchange);
    if (error.kind !== 'unauthenticated') return answer;
    const { request } = exchange;
    const metadata = ownOrigin(host, request) + metadataPath + request.path.replace(/\/$/, '');
    answer.headers['www-authenticate'] = `Bearer resource_metadata="${metadata}"`;
    return answer;
  };
}
