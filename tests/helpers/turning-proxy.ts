/** A proxy that hands each request to the next of several servers, also on one connection. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

export interface TurningProxy {
  readonly origin: string;
  /** How many requests each server was handed so far. */
  readonly handed: readonly number[];
  /** How many of them were upgrades to a WebSocket. */
  upgrades(): number;
  close(): void;
}

/** Longer than any test: a client's request must not cross with the end of its connection. */
const keepAliveTimeoutMs = 600_000;
/** What a server says of its own connection, which is not that of the client. */
const ofConnection = new Set(['connection', 'keep-alive']);

/** Listens on a free port of this machine. Bodies are passed on as they come, in both directions. */
export async function startTurningProxy(origins: readonly string[]): Promise<TurningProxy> {
  const handed = origins.map(() => 0);
  let turn = 0;
  let upgrades = 0;
  const next = (): { host: string; port: number } => {
    const index = turn++ % origins.length;
    handed[index]! += 1;
    const { hostname, port } = new URL(origins[index]!);
    return { host: hostname, port: Number(port) };
  };
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, (incoming, outgoing) =>
    pass(incoming, outgoing, next()),
  );
  server.on('upgrade', (incoming, socket, rest) => {
    upgrades += 1;
    tunnel(incoming, socket, rest, next());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    handed,
    upgrades: () => upgrades,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface Place {
  readonly host: string;
  readonly port: number;
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, place: Place): void {
  const { method = 'GET', url = '/', headers } = incoming;
  const onward = request({ ...place, method, path: url, headers }, (answer) => {
    const { rawHeaders } = answer;
    const isPassed = (index: number) => !ofConnection.has(rawHeaders[index - (index % 2)]!.toLowerCase());
    outgoing.writeHead(
      answer.statusCode!,
      rawHeaders.filter((_, index) => isPassed(index)),
    );
    answer.on('error', () => outgoing.destroy());
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

/** What would not be HTTP any more, or is refused in a word. */
function tunnel({ method, url, rawHeaders }: IncomingMessage, near: Duplex, rest: Buffer, place: Place): void {
  const far = connect(place.port, place.host);
  const end = () => {
    near.destroy();
    far.destroy();
  };
  for (const socket of [near, far]) socket.on('error', end).on('close', end);
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  far.write(`${lines.join('\r\n')}\r\n\r\n`);
  far.write(rest);
  near.pipe(far);
  far.pipe(near);
}
