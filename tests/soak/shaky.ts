/** A proxy before the vendor that now and then answers 429 or 500, or hangs up: the vendor never hears of those requests, and bills none. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Chance } from '../simulation/chance.ts';

export interface ShakyVendor {
  readonly origin: string;
  /** How often it did each. */
  readonly counts: ReadonlyMap<string, number>;
}

const faults = {
  none: 90,
  /** Too many requests, with a waiting time. */
  limited: 4,
  failed: 2,
  /** No byte of an answer. */
  hungUp: 2,
  /** A head and half of a body. */
  brokeOff: 2,
};

export async function startShaky(vendorOrigin: string, seed: number): Promise<ShakyVendor> {
  const chance = new Chance(seed, 7);
  const counts = new Map<string, number>();
  const { host, hostname, port } = new URL(vendorOrigin);
  const server = createServer((incoming, outgoing) => {
    const fault = Object.keys(faults)[chance.weighted(Object.values(faults))]!;
    counts.set(fault, (counts.get(fault) ?? 0) + 1);
    // The addresses of files that an answer names lead to the vendor itself.
    if (fault === 'none') pass(incoming, outgoing, { host: hostname, port, headers: { ...incoming.headers, host } });
    else incoming.resume().once('end', () => misbehave(fault, incoming, outgoing));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  server.unref();
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts };
}

function misbehave(fault: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const body = JSON.stringify({ error: { message: `shaky: ${fault}` } });
  const json = { 'content-type': 'application/json' };
  if (fault === 'limited') outgoing.writeHead(429, { ...json, 'retry-after': '1' }).end(body);
  else if (fault === 'failed') outgoing.writeHead(500, json).end(body);
  else if (fault === 'hungUp') incoming.socket.destroy();
  else {
    outgoing.writeHead(200, { ...json, 'content-length': body.length });
    outgoing.write(body.slice(0, body.length / 2), () => incoming.socket.destroy());
  }
}

function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  to: { host: string; port: string; headers: object },
): void {
  const { method, url } = incoming;
  const requested = request({ ...to, headers: { ...to.headers }, method, path: url }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(outgoing);
    answer.once('error', () => outgoing.destroy());
  });
  requested.once('error', () => outgoing.destroy());
  outgoing.once('close', () => requested.destroy());
  incoming.pipe(requested);
}
