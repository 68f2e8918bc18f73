/** Where browsers reach this gateway: as configured, or as the request says. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';

const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** `https://gateway.example`. Without a configured origin the Host header counts, and no TLS is supposed. */
export function originOf(configured: string, host: string | undefined): string {
  if (configured !== '') return configured;
  const origin = `http://${host ?? ''}`;
  if (host === undefined || !hostPattern.test(host) || !URL.canParse(origin))
    throw new GatewayError('invalid_request', 'The Host header is not an address.', { field: 'host' });
  return origin.toLowerCase();
}
