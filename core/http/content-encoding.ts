/** Decodes one layer of content-encoding, of whole bodies and streams, with bounds on the output. */
import { pipeline, Readable, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { UpstreamError } from '../contract/upstream-failures.ts';

export type Encoding = 'gzip' | 'deflate' | 'br' | 'zstd';

interface Decoder {
  readonly whole: (body: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;
  readonly create: (options: { chunkSize: number }) => Transform;
}

/** RFC 9659: a decoder need not accept a larger window; zlib's own limit of 128 MB would be allocated for each body. */
const zstdWindow = { params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } };
const zstdWhole = promisify(zlib.zstdDecompress);

const decoders: ReadonlyMap<string, Decoder> = new Map<Encoding, Decoder>([
  ['gzip', { whole: promisify(zlib.gunzip), create: zlib.createGunzip }],
  ['deflate', { whole: promisify(zlib.inflate), create: zlib.createInflate }],
  ['br', { whole: promisify(zlib.brotliDecompress), create: zlib.createBrotliDecompress }],
  [
    'zstd',
    {
      whole: (body, options) => zstdWhole(body, { ...options, ...zstdWindow }),
      create: (options) => zlib.createZstdDecompress({ ...options, ...zstdWindow }),
    },
  ],
]);

/** The encoding of a `content-encoding` value; `identity` for none; undefined when it is unknown or stacked. */
export function encodingOf(header: string | undefined): Encoding | 'identity' | undefined {
  if (header === undefined) return 'identity';
  const name = header.trim().toLowerCase().replace(/^x-/, '');
  if (name === '' || name === 'identity') return 'identity';
  return decoders.has(name) ? (name as Encoding) : undefined;
}

/** Below this size a decoded body may have any ratio to its encoded size. */
const freeBytes = 2 ** 20;
/** Most decoded bytes per encoded byte. JSON and event streams stay far below; only decompression bombs reach it. */
export const maxRatio = 100;

/** Most bytes that this many encoded bytes may decode to. */
export function maxDecodedBytes(encodedBytes: number): number {
  return Math.max(freeBytes, encodedBytes * maxRatio);
}

/** The decoded body. Rejects when it is damaged, or grows beyond `maxBytes` or the bound on the ratio. */
export function decodeWhole(body: Uint8Array, encoding: Encoding, maxBytes: number): Promise<Buffer> {
  const maxOutputLength = Math.min(maxBytes, maxDecodedBytes(body.length));
  return decoders.get(encoding)!.whole(body, { maxOutputLength });
}

const chunkBytes = 64 * 1024;

/**
 * Decodes a whole body chunk by chunk. `onChunk` is called with the length of each chunk before the next
 * one is decoded, and may throw to stop. Rejects with what it threw, or with zlib's error when the body is damaged.
 */
export async function decodeChunks(
  parts: readonly Uint8Array[],
  encoding: Encoding,
  onChunk: (bytes: number) => void,
): Promise<Buffer[]> {
  const decoder = decoders.get(encoding)!.create({ chunkSize: chunkBytes });
  const packed = pipeline(Readable.from(parts, { objectMode: false }), decoder, () => {});
  const chunks: Buffer[] = [];
  for await (const chunk of packed as AsyncIterable<Buffer>) {
    onChunk(chunk.length);
    chunks.push(chunk);
  }
  return chunks;
}

/** The decoded chunks. Damage, the source's own errors, and growth beyond the bound on the ratio reject the pull. */
export function decodeStream(body: AsyncIterable<Uint8Array>, encoding: Encoding): AsyncIterableIterator<Uint8Array> {
  let encoded = 0;
  let decoded = 0;
  const source = body[Symbol.asyncIterator]();
  async function* counted(): AsyncGenerator<Uint8Array, void> {
    for (let step = await source.next(); step.done !== true; step = await source.next()) {
      encoded += step.value.length;
      yield step.value;
    }
  }
  const decoder = decoders.get(encoding)!.create({ chunkSize: chunkBytes });
  const packed = pipeline(Readable.from(counted(), { objectMode: false }), decoder, () => {});
  const chunks = (packed as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const stop = () => {
    decoder.destroy();
    void source.return?.();
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const step = await chunks.next();
      if (step.done === true) return step;
      decoded += step.value.length;
      if (decoded <= maxDecodedBytes(encoded)) return step;
      stop();
      throw new UpstreamError('body', `the answer decodes to more than ${maxRatio} times its size`);
    },
    async return() {
      stop();
      return { done: true, value: undefined };
    },
  };
}
