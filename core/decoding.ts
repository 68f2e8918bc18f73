/** Undoes one layer of content-encoding, with a cap, on whole bodies and on streams. */
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import zlib from 'node:zlib';

const whole = {
  gzip: promisify(zlib.gunzip),
  deflate: promisify(zlib.inflate),
  br: promisify(zlib.brotliDecompress),
  zstd: promisify(zlib.zstdDecompress),
};
const streaming = {
  gzip: zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
  zstd: zlib.createZstdDecompress,
};

export type Encoding = keyof typeof whole;

/** The encoding of a `content-encoding` value; `identity` for none; undefined when it is unknown or stacked. */
export function encodingOf(header: string | undefined): Encoding | 'identity' | undefined {
  const name = (header ?? '').trim().toLowerCase().replace(/^x-/, '');
  if (name === '' || name === 'identity') return 'identity';
  return name in whole ? (name as Encoding) : undefined;
}

/** The decoded body. Rejects when it is damaged or grows beyond `maxBytes`. */
export function decodeWhole(body: Uint8Array, encoding: Encoding, maxBytes: number): Promise<Buffer> {
  return whole[encoding](body, { maxOutputLength: maxBytes });
}

/** The decoded chunks; damage and the source's own errors reject the pull. */
export function decodeStream(body: AsyncIterable<Uint8Array>, encoding: Encoding): AsyncIterable<Uint8Array> {
  const decoder = streaming[encoding]();
  return pipeline(
    Readable.from(body, { objectMode: false }),
    decoder,
    () => {},
  ) as unknown as AsyncIterable<Uint8Array>;
}
