/** Forms that are read as they arrive: the same parts as of the whole body, however it is cut; nothing else than a refusal for others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { readFormStream } from '../../../plugins/common/kit/forms/form-stream.ts';
import { readMultipart } from '../../../plugins/common/kit/forms/multipart.ts';
import { fc } from '../../helpers/properties.ts';

interface Found {
  readonly name: string;
  readonly filename: string | undefined;
  readonly bytes: string;
}

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function streamed(bytes: Buffer, sizes: readonly number[], boundary: string): Promise<Found[]> {
  const found: Found[] = [];
  for await (const { name, filename, body } of readFormStream(cut(bytes, sizes), boundary)) {
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    found.push({ name, filename, bytes: Buffer.concat(chunks).toString('latin1') });
  }
  return found;
}

const boundary = 'b-b';
const part = fc.record({
  name: fc.stringMatching(/^[a-z[\]]{1,8}$/),
  filename: fc.option(fc.stringMatching(/^[a-z. ]{1,8}$/), { nil: undefined }),
  // Pieces of the boundary are what can go wrong.
  content: fc.array(fc.constantFrom('\r', '\n', '\r\n', '-', '--', '--b', '-b', 'b', '\r\n--', '\r\n--b', 'x', '\0'), {
    maxLength: 12,
  }),
});

/** What is left of a text when the boundary is cut out may join to another boundary. */
function withoutBoundary(text: string): string {
  const rest = text.replaceAll(`--${boundary}`, '');
  return rest === text ? rest : withoutBoundary(rest);
}

test('every form that a whole reading accepts is read the same, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }),
      async (parts, sizes) => {
        const pieces = parts.map(({ name, filename, content }) => {
          const file = filename === undefined ? '' : `; filename="${filename}"\r\ncontent-type: text/plain`;
          const text = withoutBoundary(content.join(''));
          return `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${text}\r\n`;
        });
        const form = Buffer.from(`${pieces.join('')}--${boundary}--\r\n`);
        const whole = readMultipart(form, boundary).map(({ name, filename, bytes }) => {
          return { name, filename, bytes: bytes.toString('latin1') };
        });
        assert.deepEqual(await streamed(form, sizes, boundary), whole);
        // A form that breaks off is refused.
        const broken = form.subarray(0, form.length - `${boundary}--\r\n`.length);
        await assert.rejects(streamed(broken, sizes, boundary), (error) => error instanceof GatewayError);
      },
    ),
    { numRuns: 300 },
  );
});

test('an unread part does not hide the next one', async () => {
  const form = Buffer.from(
    ['one', 'two']
      .map((name) => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${'x'.repeat(50)}\r\n`)
      .join('') + '--b--',
  );
  const names: string[] = [];
  for await (const { name } of readFormStream(cut(form, [7]), 'b')) names.push(name);
  assert.deepEqual(names, ['one', 'two']);
});

test('heads, parts and the text before the form are bounded', async () => {
  const head = Buffer.from(`--b\r\ncontent-disposition: form-data; name="${'n'.repeat(10_000)}`);
  await assert.rejects(streamed(head, [1000], 'b'), GatewayError);
  await assert.rejects(streamed(Buffer.alloc(100_000, 'x'), [1000], 'b'), GatewayError);
  const many = Buffer.from(`${'--b\r\ncontent-disposition: form-data; name="n"\r\n\r\n\r\n'.repeat(101)}--b--`);
  await assert.rejects(streamed(many, [1000], 'b'), /more than 100 parts/);
});
