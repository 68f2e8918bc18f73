/** The vendor as an HTTP server: listens, routes requests to protocols, and serves its bill. Runs inside a gateway or alone. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { Bill, type BillReport } from './bill.ts';
import { PromptCache } from './cache.ts';
import { serveService } from './endpoints/service.ts';
import { upgrade } from './live/upgrade.ts';
import { mediaAt } from './media/links.ts';
import { servePictures } from './media/pictures.ts';
import { VideoJobs } from './media/video-jobs.ts';
import { serveVideos } from './media/videos.ts';
import type { Call } from './protocol.ts';
import { type Route, routeOf } from './routes.ts';
import { serve } from './serve.ts';
import { serveStoredResponse } from './stored-response-routes.ts';
import { StoredResponses } from './stored-responses.ts';
import { serveTools } from './tools/serve.ts';
import { sendJson, type Vendor } from './vendor-state.ts';

export interface VendorOptions {
  /** Loopback by default. */
  readonly host?: string;
  /** 0, the default, selects any free port. */
  readonly port?: number;
  /** The required key; without it every key is accepted. */
  readonly key?: string | undefined;
  /** Delay in milliseconds before each answer's head, and between the pieces of a stream. */
  readonly firstByteMs?: number;
  readonly chunkMs?: number;
  /** Wall clock in milliseconds. */
  readonly now?: () => number;
  /** Letters and digits at the start of every answer's id, so that ids differ between runs. */
  readonly idPrefix?: string;
}

export interface RunningVendor {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  bill(): BillReport;
  resetBill(): void;
  /** Closes every connection and resolves when the port is free. */
  close(): Promise<void>;
}

const idLength = 24;
const noQuery = new URLSearchParams();
/** Longer than any client's, so that the vendor never closes an idle connection under a request. */
const keepAliveTimeoutMs = 600_000;

/** Starts listening. Rejects if the address is unavailable. */
export async function startVendor(options: VendorOptions = {}): Promise<RunningVendor> {
  const vendor = vendorOf(options);
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, (request, answer) => {
    handle(vendor, request, answer);
  });
  const sockets = new Set<Duplex>();
  server.on('upgrade', (request, socket, head) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    upgrade(vendor, request, socket, head);
  });
  const host = options.host ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const port = options.port ?? 0;
    // Workers that share a listener would all get one free port, and reach each other's vendor.
    server.listen({ port, host, exclusive: port === 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    bill: () => reportOf(vendor),
    resetBill: () => vendor.bill.reset(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function vendorOf(options: VendorOptions): Vendor {
  const prefix = (options.idPrefix ?? 'sandbox').slice(0, idLength / 2);
  const bill = new Bill();
  let count = 0;
  return {
    key: options.key,
    firstByteMs: options.firstByteMs ?? 0,
    chunkMs: options.chunkMs ?? 0,
    cache: new PromptCache(),
    bill,
    videos: new VideoJobs(bill),
    responses: new StoredResponses(),
    // Outside of a gateway there is no host clock.
    now: options.now ?? Date.now,
    nextId: () => prefix + (++count).toString(36).padStart(idLength - prefix.length, '0'),
  };
}

function handle(vendor: Vendor, request: IncomingMessage, answer: ServerResponse): void {
  const target = request.url ?? '/';
  const question = target.indexOf('?');
  const query = question < 0 ? noQuery : new URLSearchParams(target.slice(question + 1));
  const path = question < 0 ? target : target.slice(0, question);
  const route = routeOf(request.method ?? 'GET', path);
  if (route?.kind === 'call') {
    const call: Call = {
      protocol: route.protocol,
      operation: route.operation,
      pathModel: route.pathModel,
      pathStream: route.pathStream ?? false,
      events: route.protocol !== 'gemini' || query.get('alt') === 'sse',
      query,
      headers: request.headers,
    };
    void serve(vendor, call, request, answer);
    return;
  }
  if (route?.kind === 'service') return void serveService(vendor, route.service, route, request, answer);
  if (route !== undefined && readsBody(vendor, route, request, answer)) return;
  request.resume();
  if (route?.kind === 'stored-response') return void serveStoredResponse(vendor, route, query, request, answer);
  if (route?.kind === 'file') {
    sendFile(vendor, path, query, answer);
    return;
  }
  if (route?.kind === 'reset') vendor.bill.reset();
  const body = route === undefined ? '{"error":{"message":"The sandbox has nothing here."}}' : billJson(vendor);
  sendJson(answer, route === undefined ? 404 : 200, {}, body);
}

/** Whether it is a route that reads the request itself; it then answers. */
function readsBody(vendor: Vendor, route: Route, request: IncomingMessage, answer: ServerResponse): boolean {
  if (route.kind === 'tools') void serveTools(vendor, request, answer);
  else if (route.kind === 'images') void servePictures(vendor, route.protocol, route.edits, request, answer);
  else if (route.kind === 'videos') void serveVideos(vendor, route.protocol, route.id, request, answer);
  else return false;
  return true;
}

/** Needs no key: the URL itself grants access to the file. */
function sendFile(vendor: Vendor, path: string, query: URLSearchParams, answer: ServerResponse): void {
  const media = mediaAt(path, query, vendor.now());
  if (media === undefined) sendJson(answer, 404, {}, '{"error":{"message":"The sandbox has no such file."}}');
  else if (media === 'expired') sendJson(answer, 403, {}, '{"error":{"message":"This address has expired."}}');
  else answer.writeHead(200, { 'content-type': media.type, 'content-length': media.bytes.length }).end(media.bytes);
}

function reportOf(vendor: Vendor): BillReport {
  vendor.videos.settle(vendor.now());
  return vendor.bill.report();
}

function billJson(vendor: Vendor): string {
  return `${JSON.stringify(reportOf(vendor), null, 2)}\n`;
}
