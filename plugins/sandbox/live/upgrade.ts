/** Upgrades to WebSockets: address, key and protocol. */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { bearerKey } from '../protocols/chat-faults.ts';
import type { Vendor } from '../vendor-state.ts';
import { serveGeminiLive } from './gemini-live.ts';
import { serveRealtime } from './realtime.ts';
import { serveResponses } from './responses.ts';

const livePath = /^\/ws\/google\.ai\.generativelanguage\.v1(?:beta|alpha)?\.GenerativeService\.BidiGenerateContent$/;
const responsesPath = /^(?:\/v1)?\/responses$/;
const server = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false });

/** Answers Node's `upgrade` event. */
export function upgrade(vendor: Vendor, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  socket.on('error', () => {});
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://sandbox');
  const given =
    bearerKey(request.headers.authorization) ?? request.headers['x-goog-api-key'] ?? searchParams.get('key');
  const model = searchParams.get('model') ?? '';
  const refusal = refusalOf(vendor, pathname, given, model);
  if (refusal !== undefined) {
    refuse(socket, ...refusal);
    return;
  }
  server.handleUpgrade(request, socket, head, (client) => {
    if (responsesPath.test(pathname)) serveResponses(vendor, client, request);
    else if (livePath.test(pathname)) serveGeminiLive(vendor, client);
    else
      serveRealtime({
        vendor,
        socket: client,
        model,
        isBeta: request.headers['openai-beta'] === 'realtime=v1',
        requestId: undefined,
      });
  });
}

function refusalOf(
  { key }: Vendor,
  path: string,
  given: unknown,
  model: string,
): readonly [status: number, message: string] | undefined {
  const isLive = livePath.test(path) || responsesPath.test(path);
  if (!isLive && !/^(?:\/v1)?\/realtime$/.test(path)) return [404, 'The sandbox has no session here.'];
  if (key !== undefined && given !== key) return [401, 'The sandbox does not know this API key.'];
  return model === '' && !isLive ? [400, 'You must provide a model parameter.'] : undefined;
}

function refuse(socket: Duplex, status: number, message: string): void {
  const body = JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
