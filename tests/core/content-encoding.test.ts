/** How vendors' encoded answers are decoded: a bomb ends at a bound, in a stream and whole; all else comes through. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { decodeStream, decodeWhole, encodingOf } from '../../core/http/content-encoding.ts';

const mebi = 2 ** 20;
const quickBrotli = (bytes: Buffer | string) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
const packers = { gzip: gzipSync, deflate: deflateSync, br: quickBrotli, zstd: zstdCompressSync };
const names = Object.keys(packers) as (keyof typeof packers)[];

async function* inChunks(bytes: Buffer, size = 100): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

for (const name of names) {
  test(`${name}: a bomb in mid-stream breaks the stream at the bound`, async () => {
    const bytes = Buffer.concat([Buffer.from('data: {"x":1}\n\n'.repeat(50)), Buffer.alloc(12 * mebi, 0x20)]);
    const packed = packers[name](bytes);
    let decoded = 0;
    await assert.rejects(
      async () => {
        for await (const chunk of decodeStream(inChunks(packed), name)) decoded += chunk.length;
      },
      { name: 'UpstreamError', phase: 'body', message: /100 times/ },
    );
    assert.ok(decoded > 0 && decoded <= Math.max(mebi, 100 * packed.length), `${decoded} bytes came out`);
  });

  test(`${name}: a bomb that is read whole is refused at the bound`, async () => {
    const packed = packers[name](Buffer.alloc(12 * mebi));
    await assert.rejects(decodeWhole(packed, name, 256 * mebi), { code: 'ERR_BUFFER_TOO_LARGE' });
  });

  test(`${name}: a long stream of frames arrives whole, and a disconnected reader ends its source`, async () => {
    const text = Array.from({ length: 40_000 }, (_, index) => `data: {"index":${index * 7_919}}\n\n`).join('');
    const packed = packers[name](text);
    const parts: Uint8Array[] = [];
    for await (const chunk of decodeStream(inChunks(packed, 1_000), name)) parts.push(chunk);
    assert.equal(Buffer.concat(parts).toString(), text);
    for (const pulls of [0, 1]) {
      let returned = 0;
      const source = inChunks(packed, 1_000);
      const watched: AsyncIterableIterator<Buffer> = {
        [Symbol.asyncIterator]: () => watched,
        next: () => source.next(),
        return: async () => {
          returned += 1;
          return source.return(undefined);
        },
      };
      const reading = decodeStream(watched, name);
      for (let pull = 0; pull < pulls; pull++) await reading.next();
      await reading.return!();
      assert.ok(returned > 0, `after ${pulls} pulls`);
    }
  });
}

test('only the exact names of encodings are recognised', () => {
  assert.equal(encodingOf(undefined), 'identity');
  assert.equal(encodingOf(' X-GZip '), 'gzip');
  for (const name of ['constructor', '__proto__', 'toString', 'gzip, br', 'rot13'])
    assert.equal(encodingOf(name), undefined);
});
