/** The vendor as a server: it listens, finds the protocol of a request, and shows its bill. Runs inside a gateway or alone. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Bill, type BillReport } from './bill.ts';
import { PromptCache } from './cache.ts';
import { KeptResponses, serveKept } from './kept.ts';
import { mediaAt } from './media/links.ts';
import { servePictures } from './media/pictures.ts';
import { serveVideos, VideoJobs } from './media/videos.ts';
import type { Call } from './protocol.ts';
import { routeOf } from './routes.ts';
import { sendJson, type Vendor } from './run.ts';
import { serve } from './serve.ts';

export interface VendorOptions {
  /** Loopback by default. */
  readonly host?: string;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** The key that clients must send; without one every key will do. */
  readonly key?: string | undefined;
  /** Milliseconds of silence before each answer's head, and between the pieces of a stream. */
  readonly firstByteMs?: number;
  readonly chunkMs?: number;
  /** Wall clock in milliseconds. */
  readonly now?: () => number;
  /** Letters and digits with which every answer's id begins, so that ids differ between runs. */
  readonly idPrefix?: string;
}

export interface RunningVendor {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  bill(): BillReport;
  resetBill(): void;
  /** Breaks every connection and resolves when the port is free. */
  close(): Promise<void>;
}

const idLength = 24;
const noQuery = new URLSearchParams();
/** Longer than any client's, so that it is never the vendor who closes an idle connection under a request. */
const keepAliveTimeoutMs = 600_000;

/** Starts listening. Rejects when the address cannot be had. */
export async function startVendor(options: VendorOptions = {}): Promise<RunningVendor> {
  const vendor = vendorOf(options);
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, (request, answer) => {
    handle(vendor, request, answer);
  });
  const host = options.host ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const port = options.port ?? 0;
    // Workers that share a listener would be given one free port all together, and be each other's vendor.
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
    kept: new KeptResponses(),
    // Alone, without a gateway, there is no host whose clock could be asked.
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
  if (route?.kind === 'images') return void servePictures(vendor, route.protocol, route.edits, request, answer);
  if (route?.kind === 'videos') return void serveVideos(vendor, route.protocol, route.id, request, answer);
  request.resume();
  if (route?.kind === 'kept') return void serveKept(vendor, route, query, request, answer);
  if (route?.kind === 'file') {
    sendFile(vendor, path, query, answer);
    return;
  }
  if (route?.kind === 'reset') vendor.bill.reset();
  const body = route === undefined ? '{"error":{"message":"The sandbox has nothing here."}}' : billJson(vendor);
  sendJson(answer, route === undefined ? 404 : 200, {}, body);
}

/** Needs no key: whoever has the address may have the file. */
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
