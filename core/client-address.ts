/** The address that a request comes from, where proxies stand in front of the gateway. */
import { BlockList, isIP } from 'node:net';

/** Most hops that are looked at; a longer chain is somebody's invention. */
const longestChain = 32;

/** Proxies whose word is taken, from addresses and CIDR ranges; undefined where there are none. Throws on what is neither. */
export function trustedProxies(ranges: readonly string[]): BlockList | undefined {
  if (ranges.length === 0) return undefined;
  const list = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split('/', 2) as [string, string | undefined];
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

/** Whether a text is an address or a range of them, as `10.0.0.0/8` or `fd00::/8`. */
export function isAddressRange(text: string): boolean {
  const [address, prefix, ...more] = text.split('/') as [string, string | undefined];
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32));
}

/**
 * Who calls: the peer of the socket, or what the trusted proxies say, from the nearest one outwards (`X-Forwarded-For`): the
 * first address that is no trusted proxy. What stands before it was written by whoever called, and means nothing.
 */
export function clientAddress(peer: string, forwarded: string | undefined, trusted: BlockList | undefined): string {
  let address = plain(peer);
  if (trusted === undefined || forwarded === undefined || !isTrusted(address, trusted)) return address;
  for (const hop of forwarded.split(',').slice(-longestChain).reverse()) {
    const told = plain(hop.trim());
    // Not an address: the proxy before it is the last that is known.
    if (isIP(told) === 0) return address;
    address = told;
    if (!isTrusted(address, trusted)) return address;
  }
  return address;
}

function isTrusted(address: string, trusted: BlockList): boolean {
  return trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** An IPv4 address that came through an IPv6 socket is written as what it is; brackets and ports are no part of it. */
function plain(text: string): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? text;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1] ?? bare;
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(mapped)?.[1] ?? mapped;
}
