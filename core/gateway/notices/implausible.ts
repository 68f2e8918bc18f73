/** Settings of the gateway that are valid each by itself and are probably not meant: limits that refuse everything or never hold. Pure. */
import { listenRemarks } from '../../contract/schema.ts';
import type { GatewayFile, GatewaySettings } from '../config.ts';

/** One sentence for each; it begins with the setting, or its place is beside it. */
export function implausible({ settings, yaml }: GatewayFile): { readonly text: string; readonly where?: string }[] {
  const { server, listen } = settings;
  const named = [
    ...listenRemarks('listen', listen),
    ...nothingPasses(server),
    ...withoutUnit(server),
    ...neverReached(server),
    ...trustsAll(server),
  ];
  return [...yaml.remarks, ...named.map((text) => ({ text }))];
}

type Server = GatewaySettings['server'];

const sizes = ['body_limit', 'bodies_in_flight', 'answer_limit', 'header_limit'] as const;
const times = ['request_timeout', 'timeout', 'stall_timeout'] as const;
/** No request is as small. */
const smallestSize = 1_024;
const shortestMs = 1_000;

function nothingPasses(server: Server): string[] {
  const zero = [...sizes, ...times, 'headers' as const].filter((name) => server[name] === 0);
  return zero.map((name) => `server.${name} is 0: no request can be served`);
}

/** `body_limit: 32` is 32 bytes. */
function withoutUnit(server: Server): string[] {
  return [
    ...sizes.flatMap((name) =>
      server[name] > 0 && server[name] < smallestSize
        ? [`server.${name} is ${server[name]} bytes: write the unit, as in ${server[name]}MB`]
        : [],
    ),
    ...times.flatMap((name) =>
      server[name] > 0 && server[name] < shortestMs
        ? [`server.${name} is ${server[name]} milliseconds, in which hardly a request ends`]
        : [],
    ),
  ];
}

function neverReached(server: Server): string[] {
  const { body_limit: body, bodies_in_flight: all, bodies_per_account: account } = server;
  const found: string[] = [];
  const compare = (name: string, value: number, other: string, limit: number, effect: string) => {
    if (value > limit)
      found.push(`server.${name} (${sizeText(value)}) is above server.${other} (${sizeText(limit)}): ${effect}`);
  };
  compare('body_limit', body, 'bodies_in_flight', all, 'a body between the two is always refused');
  if (account !== undefined) {
    compare('body_limit', body, 'bodies_per_account', account, 'a body between the two is always refused');
    compare('bodies_per_account', account, 'bodies_in_flight', all, 'it never holds');
  }
  if (server.request_timeout > server.timeout)
    found.push(
      'server.request_timeout is above server.timeout, in which the whole exchange must have ended: it never holds',
    );
  if (server.idle_frame >= server.timeout)
    found.push('server.idle_frame is not below server.timeout: clients are never sent anything in a silence');
  return found;
}

function trustsAll({ trusted_proxies: proxies }: Server): string[] {
  const all = proxies.filter((range) => /\/0+$/.test(range));
  return all.map(
    (range) => `server.trusted_proxies has ${range}, which is every address: each client can claim any address`,
  );
}

function sizeText(bytes: number): string {
  const [unit, size] = bytes < 2 ** 20 ? ['KB', 2 ** 10] : ['MB', 2 ** 20];
  return `${Number((bytes / Number(size)).toFixed(1))} ${unit}`;
}
