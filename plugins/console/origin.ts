/** Origins that a configuration may name, and those that requests of a browser may come from. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';

/** The origin that a configuration may name: scheme and host, nothing behind. */
export function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}

interface Sent {
  readonly method: string;
  header(name: string): string | undefined;
}

const safe = new Set(['GET', 'HEAD']);

/**
 * A form or picture of another site can make a browser send a request with its cookies, but neither with a header of its
 * own nor without telling where it comes from. Throws forbidden.
 */
export function refuseForeign({ method, header }: Sent, origin: string): void {
  if (safe.has(method)) return;
  if (header('x-console') !== '1')
    throw new GatewayError('forbidden', 'Changes need the header "x-console: 1".', { code: 'csrf' });
  refuseForeignOrigin(header('origin'), origin);
  const site = header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new GatewayError('forbidden', 'This request comes from another site.', { code: 'csrf' });
}

export function refuseForeignOrigin(sent: string | undefined, origin: string): void {
  if (sent === undefined || sent === origin) return;
  const sameHost = sent.replace(/^https?:/, '') === origin.replace(/^https?:/, '');
  throw new GatewayError(
    'forbidden',
    sameHost
      ? `This page came from ${sent}, and the gateway takes itself for ${origin}: the operator sets console.origin.`
      : 'This request comes from another site.',
    { code: 'csrf' },
  );
}

/** An address as people write it: without the IPv6 form that an IPv4 one comes in. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
