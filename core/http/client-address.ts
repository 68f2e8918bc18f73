/** The client's address behind trusted proxies. */
import { BlockList, isIP } from 'node:net';

/** Most hops that are read of X-Forwarded-For. */
const longestChain = 32;

/** Parses trusted proxies from addresses and CIDR ranges; undefined if there are none. Throws for any other text. */
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
 * The client's address: the socket's peer or, behind trusted proxies, the first address of `X-Forwarded-For` from the right
 * that is no trusted proxy. Addresses left of it come from the client and are ignored.
 */
export function clientAddress(peer: string, forwarded: string | undefined, trusted: BlockList | undefined): string {
  let address = isIP(peer) === 4 ? peer : plain(peer);
  if (trusted === undefined || forwarded === undefined || !isTrusted(address, trusted)) return address;
  for (const hop of forwarded.split(',').slice(-longestChain).reverse()) {
    const hopAddress = plain(hop.trim());
    // Not an address: the previous hop is the last known one.
    if (isIP(hopAddress) === 0) return address;
    address = hopAddress;
    if (!isTrusted(address, trusted)) return address;
  }
  return address;
}

function isTrusted(address: string, trusted: BlockList): boolean {
  return trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** Strips brackets and ports, and unwraps IPv4-mapped IPv6 addresses. */
function plain(text: string): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? text;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1] ?? bare;
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(mapped)?.[1] ?? mapped;
}
