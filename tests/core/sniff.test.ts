/** Media types by content, beyond those that translated requests are tested with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sniffMediaType } from '../../plugins/common/kit/data-url.ts';
import { extensionOf, kindOfMedia, mediaTypeOfName } from '../../plugins/common/kit/media-types.ts';
import { sniffBytes } from '../../plugins/common/kit/sniff.ts';

const latin = (text: string) => Buffer.from(text, 'latin1');
const mp4 = latin('\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free');
/** The head that common encoders write: document type at byte 31. */
const ebml = (type: string) =>
  latin(`\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84${type}B\x87`);

test('videos are recognised by their containers', () => {
  assert.equal(sniffBytes(mp4), 'video/mp4');
  assert.equal(sniffBytes(latin('\0\0\0\x14ftypqt  \0\0\0\0qt  ')), 'video/quicktime');
  assert.equal(sniffBytes(ebml('webm')), 'video/webm');
  assert.equal(sniffBytes(ebml('matroska')), 'video/x-matroska');
  assert.equal(sniffMediaType(ebml('matroska').toString('base64')), 'video/x-matroska');
});

test('a page, an SVG drawing and an empty file are no media', () => {
  for (const text of ['<!doctype html><html>', '<svg xmlns="http://www.w3.org/2000/svg"/>', '', '{"error":"gone"}'])
    assert.equal(sniffBytes(latin(text)), undefined, text);
});

test('each type that a file may be served as has an ending, which maps back to it', () => {
  for (const type of ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'video/mp4', 'video/webm', 'audio/mpeg'])
    assert.equal(mediaTypeOfName(`x.${extensionOf(type)}`), type);
  assert.equal(extensionOf('application/x-unknown'), 'bin');
  assert.equal(kindOfMedia('video/webm'), 'video');
});
