/** `POST /v1/images/edits`: the form with files and its JSON form say the same, each bound names the client's field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Submission } from '../../../../plugins/task-store/contract.ts';
import { imageEdit } from '../../../../plugins/task-store/orders/shapes/index.ts';
import { png, read, refusal } from '../orders.ts';

const url = 'https://example.com/a.png';
const dataUrl = `data:image/png;base64,${png}`;
const body = { model: 'gpt-image-2', prompt: 'A hat for the cat', images: [{ image_url: url }] };
const jsonField = (over: object) => refusal(() => read(imageEdit, { ...body, ...over })).field;

type Part = readonly [name: string, value: string | Uint8Array<ArrayBuffer>];
const file = new Uint8Array(Buffer.from(png, 'base64'));
const plain: readonly Part[] = [
  ['model', 'gpt-image-2'],
  ['prompt', 'A hat for the cat'],
];

async function readForm(parts: readonly Part[], headers: Record<string, string> = {}): Promise<Submission> {
  const form = new FormData();
  for (const [name, value] of parts) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, new Blob([value], { type: 'application/octet-stream' }), 'cat.png');
  }
  const request = new Request('http://x', { method: 'POST', body: form });
  const type = request.headers.get('content-type')!;
  return imageEdit.read(new Uint8Array(await request.arrayBuffer()), { 'content-type': type, ...headers });
}

async function formField(...parts: readonly Part[]): Promise<string | undefined> {
  const error = await readForm([...plain, ...parts]).catch((thrown: unknown) => thrown);
  return refusal(() => {
    throw error;
  }).field;
}

test('a form and its JSON form are the same order', async () => {
  const more = { n: 2, size: '1024x1536', quality: 'high', output_format: 'webp', output_compression: 80 };
  const json = read(imageEdit, { ...body, ...more, images: [{ image_url: dataUrl }], mask: { image_url: dataUrl } });
  const texts = Object.entries(more).map(([name, value]) => [name, String(value)] as const);
  const form = await readForm([...plain, ['image', file], ['mask', file], ...texts]);
  const named = ({ order: { fields, references, ...order } }: Submission) => ({
    ...order,
    references: references.map(({ role, source }) => ({ role, source })),
    roles: fields!.count,
  });
  assert.deepEqual(named(form), named(json));
  assert.deepEqual(
    form.order.references.map(({ role, field }) => [role, field]),
    [
      ['image', 'image[0]'],
      ['mask', 'mask'],
    ],
  );
  assert.deepEqual(form.order.references[0]!.source, { base64: png, mediaType: 'image/png' });
  assert.deepEqual(form.order.extra, { output_format: 'webp', output_compression: 80 });
  assert.deepEqual([form.order.count, form.order.size], [2, { width: 1_024, height: 1_536 }]);
});

test('addresses stay addresses, in both forms', async () => {
  const json = read(imageEdit, { ...body, images: [{ image_url: url }, { image_url: { url } }, url] });
  const form = await readForm([...plain, ['image[]', url], ['image[]', file], ['image', url]]);
  assert.deepEqual(
    json.order.references.map(({ source }) => source),
    Array(3).fill({ url }),
  );
  assert.deepEqual(
    form.order.references.map(({ source }) => 'url' in source),
    [true, false, true],
  );
});

test('there may be 1 to 14 images', async () => {
  const many = (count: number) => Array.from({ length: count }, () => ({ image_url: url }));
  assert.equal(read(imageEdit, { ...body, images: many(14) }).order.references.length, 14);
  for (const images of [undefined, null, [], many(15), 'https://a', {}]) assert.equal(jsonField({ images }), 'images');
  const files = (count: number) => Array.from({ length: count }, (): Part => ['image[]', file]);
  assert.equal((await readForm([...plain, ...files(14)])).order.references.length, 14);
  assert.equal(await formField(), 'image');
  assert.equal(await formField(...files(15)), 'image');
});

test('each wrong member is named as the client wrote it', async () => {
  assert.equal(jsonField({ model: '' }), 'model');
  assert.equal(jsonField({ prompt: undefined }), 'prompt');
  assert.equal(jsonField({ n: 11 }), 'n');
  assert.equal(jsonField({ images: [{ image_url: url }, { image_url: 'ftp://a' }] }), 'images[1].image_url');
  assert.equal(jsonField({ images: [{ file_id: 'file-1' }] }), 'images[0].file_id');
  assert.equal(jsonField({ images: [{}] }), 'images[0].image_url');
  assert.equal(jsonField({ mask: { file_id: 'file-1' } }), 'mask.file_id');
  assert.equal(jsonField({ mask: { image_url: 'no image' } }), 'mask.image_url');
  assert.equal(refusal(() => imageEdit.read(Buffer.from('{"n":1,"n":2}'), {})).field, 'n');
  const image: Part = ['image', file];
  assert.equal(await formField(image, ['n', 'two']), 'n');
  assert.equal(await formField(image, ['n', '11']), 'n');
  assert.equal(await formField(image, ['stream', 'yes']), 'stream');
  assert.equal(await formField(image, ['prompt', 'again']), 'prompt');
  assert.equal(await formField(image, ['mask', file], ['mask', file]), 'mask');
  assert.equal(await formField(image, ['size', file]), 'size');
  assert.equal(await formField(image, ['image', new Uint8Array([1, 2, 3])]), 'image[1]');
});

test('official clients wait for the images; a client that prefers a task gets one', async () => {
  assert.equal(read(imageEdit, body).waits, true);
  assert.equal(read(imageEdit, body, { prefer: 'respond-async' }).waits, false);
  assert.equal((await readForm([...plain, ['image', file]], { prefer: 'respond-async' })).waits, false);
  assert.equal(read(imageEdit, { ...body, response_format: 'url' }, { prefer: 'respond-async' }).waits, true);
});

test('a stream is of one image, with up to three previews', async () => {
  assert.equal(read(imageEdit, { ...body, stream: true, partial_images: 2 }).order.previews, 2);
  assert.equal((await readForm([...plain, ['image', file], ['stream', 'true']])).order.previews, 0);
  assert.equal('previews' in read(imageEdit, { ...body, partial_images: 2 }).order, false);
  assert.equal(jsonField({ stream: true, partial_images: 4 }), 'partial_images');
  assert.equal(jsonField({ stream: true, n: 2 }), 'n');
});
