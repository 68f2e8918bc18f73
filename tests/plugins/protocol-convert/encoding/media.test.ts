/** Media: types by content, data URLs however they are written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  audioFormat,
  bytesSource,
  dataUrl,
  documentTitle,
  kindOfMedia,
  mediaTypeOfName,
  parseDataUrl,
  plainText,
  sniffMediaType,
  urlSource,
} from '../../../../plugins/common/encoding/media.ts';
import { fc } from '../../../helpers/properties.ts';

const base64 = (latin1: string) => Buffer.from(latin1, 'latin1').toString('base64');
const png = base64('\x89PNG\r\n\x1a\n\0\0\0\rIHDR rest of it');
const samples: Record<string, string> = {
  'image/png': '\x89PNG\r\n\x1a\n\0\0\0\r',
  'image/jpeg': '\xff\xd8\xff\xe0\0\x10JFIF',
  'image/gif': 'GIF89a\x01\0\x01\0',
  'image/webp': 'RIFF\x24\0\0\0WEBPVP8 ',
  'image/avif': '\0\0\0\x20ftypavif',
  'image/heic': '\0\0\0\x18ftypheic',
  'image/bmp': 'BM\x36\0\x0c\0\0\0\0\0\x36\0',
  'application/pdf': '%PDF-1.7\n',
  'audio/wav': 'RIFF\x24\0\0\0WAVEfmt ',
  'audio/mpeg': '\xff\xfb\x90\x64\0\0\0\0',
  'audio/aac': '\xff\xf1\x50\x80\0\0',
  'audio/flac': 'fLaC\0\0\0\x22',
  'audio/ogg': 'OggS\0\x02\0\0',
  'audio/mp4': '\0\0\0\x20ftypM4A ',
  'video/mp4': '\0\0\0\x20ftypisom',
  'video/quicktime': '\0\0\0\x14ftypqt  ',
  'video/webm': '\x1aE\xdf\xa3\x01\0\0\0',
};

test('pitfall 193: the first bytes tell the type', () => {
  for (const [type, bytes] of Object.entries(samples)) assert.equal(sniffMediaType(base64(bytes)), type, type);
  for (const other of ['', 'plain words', 'BMW is a car.', '\xff\xff\xff\xff', 'RIFF\0\0\0\0ABCD'])
    assert.equal(sniffMediaType(base64(other)), undefined, other);
});

test('pitfall 193: content beats declaration, and a declaration stands where content tells nothing', () => {
  assert.deepEqual(bytesSource(png, 'image/jpeg'), { form: 'bytes', mediaType: 'image/png', base64: png });
  assert.equal(bytesSource(base64('words'), 'Text/Plain; charset=utf-8').mediaType, 'text/plain');
  assert.equal(bytesSource(base64('words'), undefined).mediaType, 'application/octet-stream');
  assert.equal(bytesSource(base64('words'), 'nonsense').mediaType, 'application/octet-stream');
});

test('a container format counts as a sound where its name says so', () => {
  assert.equal(bytesSource(base64(samples['video/webm']!), 'audio/webm').mediaType, 'audio/webm');
  assert.equal(bytesSource(base64(samples['video/mp4']!), 'audio/mp4').mediaType, 'audio/mp4');
  assert.equal(bytesSource(base64(samples['video/mp4']!), 'image/png').mediaType, 'video/mp4');
});

test('pitfall 194: an address is judged by its path, not by its query', () => {
  const url = 'https://example.com/a/photo.JPG?format=png&x=.gif#y.webp';
  assert.deepEqual(urlSource(url), { form: 'url', url, mediaType: 'image/jpeg' });
  assert.deepEqual(urlSource('https://example.com/photo'), { form: 'url', url: 'https://example.com/photo' });
  assert.equal(
    (urlSource('https://example.com/a.png', 'image/webp') as { mediaType?: string }).mediaType,
    'image/webp',
  );
  assert.equal(mediaTypeOfName('constructor'), undefined);
});

test('pitfall 195: data URLs are read with parameters, in any case, without padding, and bare base64 too', () => {
  const bare = png.replace(/=+$/, '');
  const forms = [
    `data:image/png;base64,${png}`,
    `DATA:Image/PNG;BASE64,${png}`,
    `data:image/png;charset=utf-8;name="a;b.png";base64,${bare}`,
    `data:image/png; base64,${bare.replace(/(.{10})/g, '$1\n')}`,
    `data:image/png;base64,${encodeURIComponent(png)}`,
    `data:;base64,${png.replaceAll('+', '-').replaceAll('/', '_')}`,
    png,
    bare,
  ];
  for (const form of forms) assert.deepEqual(parseDataUrl(form), { mediaType: 'image/png', base64: png }, form);
});

test('a data URL without base64 is decoded as text', () => {
  const words = base64('a, b');
  assert.deepEqual(parseDataUrl('data:text/csv,a%2C%20b'), { mediaType: 'text/csv', base64: words });
  assert.deepEqual(parseDataUrl('data:,a, b'), { mediaType: 'text/plain', base64: words });
});

test('texts that only resemble a data URL are none', () => {
  const others = ['', 'data:', 'data:image/png;base64', 'data:image/png;base64,a!b?', 'https://example.com/a.png', 'x'];
  for (const other of others) assert.equal(parseDataUrl(other), undefined, other);
  assert.equal(parseDataUrl('averylongwordwithoutanymeaningatall'), undefined);
  assert.deepEqual(urlSource('https://example.com/'), { form: 'url', url: 'https://example.com/' });
});

test('bytes become an address and come back, whatever they are', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const source = bytesSource(Buffer.from(bytes).toString('base64'), 'application/zip');
      assert.deepEqual(urlSource(dataUrl(source)), source);
      assert.deepEqual(Buffer.from(source.base64, 'base64'), Buffer.from(bytes));
    }),
  );
});

test('parsing of any text as an address does not throw', () => {
  const unit = fc.constantFrom('d', 'a', 't', ':', ';', ',', '%', '=', 'base64', 'data:', '\n', 'é');
  fc.assert(fc.property(fc.string({ unit, maxLength: 30 }), (text) => void urlSource(text, text)));
});

test('pitfall 198: a file’s name becomes a title that every upstream takes', () => {
  assert.equal(documentTitle('annual.report_2025.v2.pdf'), 'annual report 2025 v2');
  assert.equal(documentTitle('Größe (2).docx'), 'Größe (2)');
  assert.equal(documentTitle('.pdf'), 'document');
});

test('pitfall 199: formats of sounds are media types and back', () => {
  assert.equal(mediaTypeOfName('mp3'), 'audio/mpeg');
  assert.equal(mediaTypeOfName('wav'), 'audio/wav');
  assert.equal(audioFormat(bytesSource(base64('words'), 'audio/mp3').mediaType), 'mp3');
  assert.equal(audioFormat('audio/wav'), 'wav');
  assert.equal(audioFormat('audio/flac'), undefined);
});

test('media are grouped by family, and words of text documents can be read', () => {
  assert.deepEqual(['image/png', 'audio/wav', 'video/mp4', 'application/pdf'].map(kindOfMedia), [
    'image',
    'audio',
    'video',
    'document',
  ]);
  assert.equal(plainText(bytesSource(Buffer.from('Größe').toString('base64'), 'text/markdown')), 'Größe');
  assert.equal(plainText({ form: 'text', text: 'words' }), 'words');
  assert.equal(plainText(bytesSource(png, undefined)), undefined);
  assert.equal(dataUrl({ form: 'text', text: 'é' }), 'data:text/plain;base64,w6k=');
});
