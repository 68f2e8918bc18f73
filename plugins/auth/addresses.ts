/** Address restrictions of keys: addresses and CIDR ranges, parsed and matched. Pure. */
import { BlockList, isIP, isIPv4 } from 'node:net';

const maxAddresses = 100;
const mappedPattern = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

export class AddressList {
  readonly #list = new BlockList();

  /** The caller has validated `texts` with `addressProblem`. */
  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const { address, family, prefix } = parse(text)!;
      this.#list.addSubnet(address, prefix, family);
    }
  }

  /** Whether a socket's remote address matches; IPv4 addresses match in their IPv6 form too. */
  has(remoteAddress: string): boolean {
    const address = plain(remoteAddress);
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}

/** Why these are no valid addresses of a key, as the end of a sentence; undefined: they are valid. */
export function addressProblem(texts: readonly string[]): string | undefined {
  if (texts.length === 0 || texts.length > maxAddresses) return `names 1 to ${maxAddresses} of them`;
  const wrong = texts.find((text) => parse(text) === undefined);
  if (wrong === undefined) return undefined;
  return `takes addresses and ranges such as 192.0.2.7, 198.51.100.0/24 or 2001:db8::/32, not "${wrong.slice(0, 60)}"`;
}

interface Range {
  readonly address: string;
  readonly family: 'ipv4' | 'ipv6';
  readonly prefix: number;
}

function parse(text: string): Range | undefined {
  const [written = '', length, ...more] = text.split('/');
  const address = plain(written);
  const version = isIP(address);
  // A range with an IPv4 address in IPv6 form would count its prefix bits differently.
  if (version === 0 || more.length > 0 || written.includes('%') || (length !== undefined && address !== written))
    return undefined;
  const longest = version === 4 ? 32 : 128;
  if (length !== undefined && (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > longest)) return undefined;
  return {
    address,
    family: version === 4 ? 'ipv4' : 'ipv6',
    prefix: length === undefined ? longest : Number(length),
  };
}

/** `::ffff:192.0.2.7` is 192.0.2.7; the zone of a link-local address is irrelevant. */
function plain(address: string): string {
  const mapped = mappedPattern.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  const zone = address.indexOf('%');
  return zone === -1 ? address : address.slice(0, zone);
}
