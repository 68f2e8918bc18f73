/** The process's limit of open descriptors, compared with what its settings need. */
import { readFileSync } from 'node:fs';

/** undefined: not known on this system. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** Files, databases, listening sockets. */
const ownDescriptors = 500;

/** Default maximum of sockets per origin and credential: half of the limit; the other half is for clients. */
export function defaultUpstreamSockets(limit: number | undefined): number {
  return limit === undefined ? 4_096 : Math.max(64, Math.floor((limit - ownDescriptors) / 2));
}

/** Bounds of the settings on open connections. */
export interface Promised {
  readonly sockets: number;
  /**
   * Bound on connections to all addresses with all keys; 0 where `upstream_connections` is not set. Each has its client's connection
   * beside it.
   */
  readonly upstreamConnections: number;
}

/** A sentence if the limit is below what the settings promise. */
export function shortage(limit: number | undefined, { sockets, upstreamConnections }: Promised): string | undefined {
  const promised = sockets + 2 * upstreamConnections + ownDescriptors;
  if (limit === undefined || limit >= promised) return undefined;
  return (
    `this process may open ${limit} descriptors, and its settings promise ${promised} (${upstreamConnections} connections to upstreams, ` +
    `as many of their clients, ${sockets} WebSockets, ${ownDescriptors} of its own): raise the limit (ulimit -n, LimitNOFILE) ` +
    'or lower server.upstream_connections and server.sockets.'
  );
}
