/** Which addresses belong to the public internet: all others are private, and not fetched from. Pure. */
import { BlockList, isIP } from 'node:net';

/** What https://www.iana.org/assignments/iana-ipv4-special-registry does not call globally reachable, and multicast. */
const special4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/** Parts of global unicast (2000::/3) that lead elsewhere: tunnels, which carry an IPv4 address inside, and documentation. */
const special6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const blocked = new BlockList();
for (const [network, bits] of special4) blocked.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of special6) blocked.addSubnet(network, bits, 'ipv6');
/** IPv6 is public only in here: loopback, link-local, unique-local, multicast, IPv4-mapped and NAT64 lie outside. */
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');

/** false for names, for addresses with a zone, and for whatever is not globally reachable unicast. */
export function isPublicAddress(address: string): boolean {
  if (address.includes('%')) return false;
  const version = isIP(address);
  if (version === 4) return !blocked.check(address, 'ipv4');
  return version === 6 && global6.check(address, 'ipv6') && !blocked.check(address, 'ipv6');
}
