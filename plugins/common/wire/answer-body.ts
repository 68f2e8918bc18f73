/** The body of a vendor's answer, which is whole or pulled in chunks. */
import type { Answer } from '../../../core/contract/message.ts';

export function isWhole(body: Answer['body']): body is Uint8Array | string {
  return typeof body === 'string' || body instanceof Uint8Array;
}

export function asBytes(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

/** Reads no further than `maxBytes` and a chunk. */
export async function wholeBody(body: Answer['body'], maxBytes: number): Promise<Uint8Array> {
  if (isWhole(body)) return asBytes(body);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks);
}
