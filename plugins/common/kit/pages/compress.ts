/** Pages and data that are made when they are asked for, compressed as the browser accepts it. */
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createGzip, gzip } from 'node:zlib';
import type { Answer } from '../../../../core/contract/message.ts';

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

/** Smaller bodies fit into one packet anyway. */
const leastBytes = 1024;
/** Quick and nearly as small as the best. */
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** The answer as it is, or compressed; `accepted`: the request's accept-encoding. Streams are compressed while they go. */
export async function compressed(answer: Answer, accepted: string): Promise<Answer> {
  const { body, headers } = answer;
  if (
    !/^(?:application\/json|text\/(?:csv|css|html|javascript|markdown|plain)|image\/svg\+xml)\b/.test(
      String(headers['content-type'] ?? ''),
    )
  )
    return answer;
  const coding = accepts(accepted, 'br') ? 'br' : accepts(accepted, 'gzip') ? 'gzip' : undefined;
  const varied = { ...headers, vary: [headers['vary'] ?? [], 'accept-encoding'].flat().join(', ') };
  if (coding === undefined) return { ...answer, headers: varied };
  if (typeof body === 'string' || body instanceof Uint8Array) {
    if (body.length < leastBytes) return { ...answer, headers: varied };
    const small = coding === 'br' ? await brotli(body, brotliOptions) : await zip(body);
    return { ...answer, headers: { ...varied, 'content-encoding': coding }, body: small };
  }
  if (!accepts(accepted, 'gzip')) return { ...answer, headers: varied };
  const stream = pipeline(Readable.from(body), createGzip(), () => undefined);
  return { ...answer, headers: { ...varied, 'content-encoding': 'gzip' }, body: stream };
}

/** `gzip;q=0` is a no. */
export function accepts(header: string, name: string): boolean {
  return header.split(',').some((entry) => {
    const [coding, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return coding === name && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
