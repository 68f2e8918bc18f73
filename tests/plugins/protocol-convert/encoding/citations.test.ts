/** Places in texts: bytes and UTF-16 units tell the same one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteOffset, utf16Offset } from '../../../../plugins/protocol-convert/encoding/citations.ts';
import { fc } from '../../../helpers/properties.ts';

const anyText = fc.string({ unit: 'grapheme', maxLength: 40 });

test('pitfall 221: offsets in bytes become offsets in characters', () => {
  assert.equal(utf16Offset('Größe 🎉 x', 12), 8);
  assert.equal('Größe 🎉 x'.slice(0, 8), 'Größe 🎉');
});

test('every boundary between characters is found both ways', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      let offset = 0;
      for (const character of [...text, '']) {
        const bytes = Buffer.byteLength(text.slice(0, offset));
        assert.equal(utf16Offset(text, bytes), offset);
        assert.equal(byteOffset(text, offset), bytes);
        offset += character.length;
      }
    }),
  );
});

test('a byte inside a character is where the character begins', () => {
  fc.assert(
    fc.property(anyText, fc.nat(200), (text, bytes) => {
      let naive = 0;
      for (const character of text) {
        if (Buffer.byteLength(text.slice(0, naive) + character) > bytes) break;
        naive += character.length;
      }
      assert.equal(utf16Offset(text, bytes), naive);
    }),
  );
});

test('nothing lies before the beginning or behind the end', () => {
  assert.equal(utf16Offset('äb', -3), 0);
  assert.equal(utf16Offset('äb', 99), 2);
  assert.equal(byteOffset('äb', 99), 3);
});
