/** An incoming request: its whole body as a JSON object, and the sender's request id. */
import type { IncomingMessage } from 'node:http';
import { badRequest, Fault } from './fault.ts';
import { isObject, type JsonObject } from './json.ts';

const maxBodyBytes = 64 * 2 ** 20;

/** The whole body. Throws a 413 fault when it is too long. */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBodyBytes) reject(new Fault(413, 'The request is too large.'));
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => reject(new Error('the client left before its request was whole')));
  });
}

/** Throws a 400 fault for anything but a JSON object. */
export function parse(bytes: Buffer): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString());
  } catch {
    throw badRequest('We could not parse the JSON body of your request.');
  }
  if (!isObject(body)) throw badRequest('The JSON body of your request must be an object.');
  return body;
}

export function requestIdOf({ headers }: IncomingMessage): string | undefined {
  const named = headers['x-gateway-request-id'] ?? headers['x-client-request-id'] ?? headers['x-request-id'];
  return typeof named === 'string' ? named : undefined;
}
