/** Forms with files: what clients write is read, what is written here others read, and nothing else passes for a form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  boundaryIn,
  type FormMember,
  readMultipart,
  writeMultipart,
} from '../../../plugins/common/kit/forms/multipart.ts';
import { fc } from '../../helpers/properties.ts';
import { refusal } from './orders.ts';

const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).filter((text) => !/[\r\n\0]/.test(text));
const content = fc.uint8Array({ maxLength: 200 });

test("a browser's form is decoded exactly: names, files and every byte", async () => {
  const members = fc.array(fc.tuple(name, fc.boolean(), content), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(members, async (given) => {
      const form = new FormData();
      for (const [key, isFile, bytes] of given) {
        if (isFile) form.append(key, new Blob([new Uint8Array(bytes)]), 'a "b".png');
        else form.append(key, Buffer.from(bytes).toString('hex'));
      }
      const request = new Request('http://x', { method: 'POST', body: form });
      const boundary = boundaryIn(request.headers.get('content-type')!)!;
      const parts = readMultipart(new Uint8Array(await request.arrayBuffer()), boundary);
      assert.deepEqual(
        parts.map((part) => [part.name, part.filename, part.bytes.toString('hex')]),
        given.map(([key, isFile, bytes]) => {
          const hex = Buffer.from(bytes).toString('hex');
          return [
            key.toWellFormed(),
            isFile ? 'a "b".png' : undefined,
            isFile ? hex : Buffer.from(hex).toString('hex'),
          ];
        }),
      );
    }),
    { numRuns: 60 },
  );
});

test('an encoded form is decoded the same by others', async () => {
  const key = fc.constantFrom('prompt', 'image[]', 'mask');
  const member: fc.Arbitrary<FormMember> = fc.oneof(
    fc.record({ name: key, text: fc.string({ unit: 'grapheme' }).filter((text) => !/\r|\n/.test(text)) }),
    fc.record({
      name: key,
      filename: fc.constant('image-0.png'),
      mediaType: fc.constant('image/png'),
      base64: content.map((bytes) => Buffer.from(bytes).toString('base64')),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(member, { maxLength: 6 }), async (members) => {
      const boundary = 'form-0123456789abcdef';
      const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
      const read = await new Response(new Uint8Array(writeMultipart(members, boundary)), { headers }).formData();
      const reply = await Promise.all(
        [...read].map(async ([of, value]) =>
          typeof value === 'string'
            ? { name: of, text: value }
            : {
                name: of,
                filename: value.name,
                mediaType: value.type,
                base64: Buffer.from(await value.arrayBuffer()).toString('base64'),
              },
        ),
      );
      assert.deepEqual(
        reply,
        members.map((each) => ({ ...each })),
      );
    }),
    { numRuns: 60 },
  );
});

test('a boundary is read with and without quotes, and only of forms', () => {
  assert.equal(boundaryIn('multipart/form-data; boundary=abc'), 'abc');
  assert.equal(boundaryIn('Multipart/Form-Data; charset=utf-8; Boundary="a b;c"'), 'a b;c');
  for (const type of [undefined, '', 'application/json', 'multipart/mixed; boundary=a', 'multipart/form-data'])
    assert.equal(boundaryIn(type), undefined);
});

test('a body that is no form, is cut, or has too many parts is refused', () => {
  const whole = writeMultipart([{ name: 'prompt', text: 'A cat' }], 'b').toString();
  const read = (text: string) => readMultipart(Buffer.from(text), 'b');
  assert.equal(read(`what nothing reads\r\n${whole}what nothing reads`).length, 1);
  assert.equal(read('--b--\r\n').length, 0);
  for (let length = 0; length < whole.length - 4; length += 1) refusal(() => read(whole.slice(0, length)));
  refusal(() => read('{"prompt":"A cat"}'));
  refusal(() => read('--b\r\nx-nothing: 1\r\n\r\nA cat\r\n--b--'));
  refusal(() => read(`--b\r\nx: ${'y'.repeat(5_000)}\r\ncontent-disposition: form-data; name="a"\r\n\r\nz\r\n--b--`));
  refusal(() => read(writeMultipart(Array(101).fill({ name: 'a', text: 'b' }), 'b').toString()));
});

test('any body is decoded or refused', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom('--b', '\r\n', '\r\n\r\n', '--', 'content-disposition: form-data; name="a"'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      try {
        readMultipart(Buffer.from(pieces.join('')), 'b');
      } catch (error) {
        refusal(() => {
          throw error;
        });
      }
    }),
    { numRuns: 500 },
  );
});
