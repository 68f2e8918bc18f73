/** Base64 in data URLs: long texts, which are looked at natively, are read like short ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDataUrl, plainBase64 } from '../../plugins/common/kit/data-url.ts';

const long = Buffer.from(Array.from({ length: 120_001 }, (_, index) => (index * 2_654_435_761) >>> 24)).toString(
  'base64',
);

test('long base64 is accepted with each of its paddings', () => {
  for (const bytes of [0, 1, 2]) {
    const text = Buffer.from(long, 'base64').subarray(bytes).toString('base64');
    assert.equal(plainBase64(text), text);
    assert.equal(plainBase64(text.replace(/=+$/, '')), text, 'padding is added');
    assert.equal(plainBase64(text.replaceAll('+', '-').replaceAll('/', '_')), text, 'the alphabet of URLs');
    assert.equal(plainBase64(`${text.slice(0, 100)}\n${text.slice(100)}`), text, 'lines');
  }
});

test('one invalid character anywhere in long base64 is found', () => {
  const text = long.slice(0, 100_000);
  for (const wrong of ['!', '"', '.', 'é', '\0', '=']) {
    for (const at of [0, 1, 50_001, 99_990]) {
      const broken = text.slice(0, at) + wrong + text.slice(at + 1);
      assert.equal(plainBase64(broken), undefined, `${wrong} at ${at}`);
      assert.equal(parseDataUrl(`data:image/png;base64,${broken}`), undefined, `${wrong} at ${at}`);
    }
  }
});
