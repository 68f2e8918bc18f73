/** The TXT record by which DNS says that a domain is an account's. */
import { Resolver } from 'node:dns/promises';
import { GatewayError } from '../../../core/contract/errors.ts';

const longestMs = 5_000;

/** Where the record stands, and what it says. */
export const recordOf = ({ domain, token }: { readonly domain: string; readonly token: string }) => ({
  name: `_gateway-verification.${domain}`,
  value: `gateway-verification=${token}`,
});

/** Parts of one record belong together. */
export async function recordsOf(servers: readonly string[], domain: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: longestMs, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  try {
    return (await resolver.resolveTxt(recordOf({ domain, token: '' }).name)).map((parts) => parts.join(''));
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
    throw new GatewayError('overloaded', 'DNS gives no answer for this domain. Try again later.', {
      field: 'domain',
      code: 'dns_unreachable',
    });
  }
}
