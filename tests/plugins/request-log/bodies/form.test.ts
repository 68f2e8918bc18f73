/** Forms in excerpts: the same whether their bytes are there or they were read as they came. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { keptForm, keptParts } from '../../../../plugins/request-log/bodies/form.ts';

const sha256 = (bytes: string) => createHash('sha256').update(bytes).digest('hex');
const file = 'RIFF and much more';
const parts = [
  { name: 'model', filename: undefined, mediaType: undefined, bytes: 4, sha256: sha256('ears'), text: 'ears' },
  {
    name: 'file',
    filename: 'a.wav',
    mediaType: 'audio/wav',
    bytes: file.length,
    sha256: sha256(file),
    text: undefined,
  },
];

test('texts stay, and a file is replaced by its type, size and hash', () => {
  const kept = keptParts(parts, 10_000);
  const body = [
    '----form\r\ncontent-disposition: form-data; name="model"\r\n\r\nears\r\n',
    `----form\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n${file}\r\n----form--`,
  ].join('');
  const whole = keptForm(Buffer.from(body), 'multipart/form-data; boundary=--form', 10_000)!;
  assert.equal(kept.text, whole.text.replace('content-type: audio/wav\r\n', ''));
  assert.match(kept.text, /\[audio\/wav: 18 bytes, sha256 [0-9a-f]{16}\]/);
  assert.deepEqual([kept.bytes, kept.omittedBytes], [22, 0]);
});

test('an excerpt is bounded, and has the omitted length', () => {
  const kept = keptParts(parts, 20);
  assert.equal(kept.text.length, 20);
  assert.equal(kept.omittedBytes, keptParts(parts, 10_000).text.length - 20);
});
