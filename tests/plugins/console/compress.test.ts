/** Answers of the console's API, compressed as the browser accepts it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Answer } from '../../../core/contract/message.ts';
import { compressed } from '../../../plugins/common/kit/pages/compress.ts';

const long = JSON.stringify({ rows: Array.from({ length: 200 }, (_, number) => ({ number, name: 'a model' })) });
const json = (body: Answer['body']): Answer => ({ status: 200, headers: { 'content-type': 'application/json' }, body });

async function bytesOf({ body }: Answer): Promise<Buffer> {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('brotli before gzip, and neither where the browser does not accept it', async () => {
  const cases = [
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['', undefined],
    ['identity', undefined],
    ['constructor', undefined],
  ] as const;
  for (const [accepted, coding] of cases) {
    const answer = await compressed(json(long), accepted);
    assert.equal(answer.headers['content-encoding'], coding, accepted);
    assert.equal(answer.headers['vary'], 'accept-encoding');
    const bytes = await bytesOf(answer);
    const plain = coding === 'br' ? brotliDecompressSync(bytes) : coding === 'gzip' ? gunzipSync(bytes) : bytes;
    assert.equal(plain.toString(), long);
    if (coding !== undefined) assert.ok(bytes.length < long.length / 5);
  }
});

test('a file of rows is compressed while it is made', async () => {
  let made = 0;
  async function* rows() {
    for (; made < 50_000; made += 1) yield Buffer.from(`${made},a model,0.0021\n`);
  }
  const file: Answer = { status: 200, headers: { 'content-type': 'text/csv; charset=utf-8' }, body: rows() };
  const answer = await compressed(file, 'br, gzip');
  assert.equal(answer.headers['content-encoding'], 'gzip');
  const body = answer.body as AsyncIterable<Uint8Array>;
  const chunks: Uint8Array[] = [];
  let madeAtFirst = 0;
  for await (const chunk of body) {
    if (chunks.length === 0) madeAtFirst = made;
    chunks.push(chunk);
  }
  assert.ok(madeAtFirst < 50_000, 'bytes leave before the last row is made');
  assert.equal(gunzipSync(Buffer.concat(chunks)).toString().trimEnd().split('\n').length, 50_000);
});

test('short answers and other types are not compressed', async () => {
  assert.equal((await compressed(json('{}'), 'br')).headers['content-encoding'], undefined);
  const picture: Answer = { status: 200, headers: { 'content-type': 'image/png' }, body: long };
  assert.equal(await compressed(picture, 'br'), picture);
});
