/** Heads, ranges and conditions of a file's answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servingOf } from '../../../plugins/files/serving.ts';
import { fc } from '../../helpers/properties.ts';

const now = 1_800_000_000_000;
const file = { id: `file_${'ab'.repeat(16)}`, mediaType: 'video/mp4', bytes: 1000, expiresAt: now + 3_600_000 };
const serve = (headers: Record<string, string> = {}, until = now + 60_500) => servingOf(file, { headers }, until, now);

test('a whole file is served under its type, and nothing in it can be executed', () => {
  assert.deepEqual(serve(), {
    status: 200,
    headers: {
      'accept-ranges': 'bytes',
      etag: `"${file.id}"`,
      'cache-control': 'private, max-age=60, immutable',
      vary: 'origin',
      'content-disposition': `inline; filename="${file.id}.mp4"`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'content-type': 'video/mp4',
    },
    span: { first: 0, last: 999 },
  });
  assert.match(serve({}, now + 10 ** 10).headers['cache-control']!, /max-age=3600,/);
});

test('a range is cut to the file; an unknown form is ignored; one beyond the file is refused', () => {
  const spans: [string, string][] = [
    ['bytes=0-0', '0-0'],
    ['bytes=0-', '0-999'],
    ['bytes=990-2000', '990-999'],
    ['bytes=-5', '995-999'],
    ['bytes=-5000', '0-999'],
    ['BYTES=1-2', '1-2'],
  ];
  for (const [range, reported] of spans) {
    const { status, headers } = serve({ range });
    assert.deepEqual([status, headers['content-range']], [206, `bytes ${reported}/1000`], range);
  }
  for (const range of ['bytes=0-1,5-6', 'bytes=5-1', 'bytes=-', 'items=0-1', 'bytes=a-b', 'bytes 0-1', ''])
    assert.equal(serve({ range }).status, 200, range);
  for (const range of ['bytes=1000-', 'bytes=1000-1001', 'bytes=-0']) {
    const { status, headers, span } = serve({ range });
    assert.deepEqual([status, headers['content-range'], span], [416, 'bytes */1000', undefined], range);
  }
});

test('any range of any file lies inside it and has the stated length', () => {
  const end = fc.option(fc.nat(3000), { nil: '' });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2000 }), end, end, (bytes, from, to) => {
      const { status, headers, span } = servingOf(
        { ...file, bytes },
        { headers: { range: `bytes=${from}-${to}` } },
        0,
        0,
      );
      if (status === 416) return assert.equal(span, undefined);
      assert.ok(span !== undefined && span.first >= 0 && span.last < bytes && span.first <= span.last);
      if (status === 206) assert.equal(headers['content-range'], `bytes ${span.first}-${span.last}/${bytes}`);
      else assert.deepEqual(span, { first: 0, last: bytes - 1 });
    }),
  );
});

test('a client that has the file gets 304, and a range of an earlier version must be of the same file', () => {
  const tag = `"${file.id}"`;
  for (const known of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
    const { status, span, headers } = serve({ 'if-none-match': known, range: 'bytes=0-1' });
    assert.deepEqual([status, span, headers.etag], [304, undefined, tag], known);
  }
  assert.equal(serve({ 'if-none-match': '"other"' }).status, 200);
  assert.equal(serve({ 'if-range': tag, range: 'bytes=0-1' }).status, 206);
  assert.equal(serve({ 'if-range': '"other"', range: 'bytes=0-1' }).status, 200);
});
