/** `/v1/videos` through a whole gateway as the official client uses it: forms with a file, states, pages in both orders, the film. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { ended, mediaGateway, png } from './clients.ts';

const { gateway, alice } = await mediaGateway(
  (origin) => `
providers: { studio: { keys: vendor-key, speaks: { xai-videos: "${origin}/imagine/v1" } } }
models: { film: { owned_by: tests, kind: video, targets: [studio], price: { second: 0.05 } } }
task-store: { poll: { first: 50ms, longest: 100ms } }
`,
);
const official = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: alice.key, maxRetries: 0 });
const order = { model: 'film', prompt: 'Waves', seconds: '4', size: '1280x720' } as const;

test('a video is ordered by a file, by an address and by words alone, and opened when it is done', async () => {
  const file = await toFile(png, 'lighthouse.png', { type: 'image/png' });
  const image_url = 'https://images.example.com/lighthouse.png';
  for (const shown of [{ input_reference: file }, { input_reference: { image_url } }, {}]) {
    const { id, status, seconds, size } = await official.videos.create({ ...order, ...shown });
    assert.deepEqual([status, seconds, size], ['queued', '4', '1280x720']);
    await ended(alice, `/v1/videos/${id}`);
    const reported = await official.videos.retrieve(id);
    assert.deepEqual([reported.status, reported.progress, reported.error], ['completed', 100, null]);
    const film = await official.videos.downloadContent(id);
    assert.equal(film.headers.get('content-type'), 'video/mp4');
    assert.equal(Buffer.from(await film.arrayBuffer()).toString('latin1', 4, 8), 'ftyp');
  }
});

test('the official client deletes a video that it has downloaded', async () => {
  const { id } = await official.videos.create(order);
  await ended(alice, `/v1/videos/${id}`);
  const before = await alice.balance();
  const link = (await alice.send('GET', `/v1/contents/generations/tasks/${id}`)).json.content.video_url as string;
  assert.equal((await fetch(link)).status, 200);
  assert.deepEqual(await official.videos.delete(id), { id, object: 'video.deleted', deleted: true });
  for (const call of [() => official.videos.retrieve(id), () => official.videos.downloadContent(id)])
    await assert.rejects(call(), OpenAI.NotFoundError);
  await assert.rejects(official.videos.delete(id), OpenAI.NotFoundError);
  assert.equal((await fetch(link)).status, 404);
  assert.equal(await alice.balance(), before);
});

test('a file that is no image is named as such', async () => {
  const file = await toFile(Buffer.from('no image at all, but a text'), 'cat.png', { type: 'image/png' });
  await assert.rejects(official.videos.create({ ...order, input_reference: file }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, String(error));
    assert.equal(error.param, 'input_reference');
    assert.match(error.message, /is not an image/);
    return true;
  });
});

test('remixes, edits, extensions and characters are not found, and named as unsupported', async () => {
  const { data } = await official.videos.list({ limit: 1 });
  const file = await toFile(Buffer.from('film'), 'film.mp4');
  for (const call of [
    () => official.videos.remix(data[0]!.id, { prompt: 'Rain' }),
    () => official.videos.edit({ prompt: 'Rain', video: file }),
    () => official.videos.extend({ prompt: 'Rain', seconds: '4', video: file }),
    () => official.videos.createCharacter({ name: 'Cat', video: file }),
    () => official.videos.getCharacter('char_1'),
  ])
    await assert.rejects(call(), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError, String(error));
      assert.equal(error.code, 'unsupported');
      return true;
    });
});

test('only the video itself is kept, and another variant is refused by its name', async () => {
  const { data } = await official.videos.list({ limit: 1 });
  for (const variant of ['thumbnail', 'spritesheet'] as const) {
    await assert.rejects(official.videos.downloadContent(data[0]!.id, { variant }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, String(error));
      assert.equal(error.param, 'variant');
      return true;
    });
  }
  const film = await official.videos.downloadContent(data[0]!.id, { variant: 'video' });
  await film.arrayBuffer();
});

test('pages in either order have each video once', async () => {
  const listed = async (sorting: 'asc' | 'desc') => {
    const ids: string[] = [];
    for await (const { id } of official.videos.list({ limit: 2, order: sorting })) ids.push(id);
    return ids;
  };
  const oldestFirst = await listed('asc');
  assert.equal(new Set(oldestFirst).size, 3);
  assert.deepEqual(await listed('desc'), oldestFirst.toReversed());
  const wrong = await alice.send('GET', '/v1/videos?order=up');
  assert.deepEqual([wrong.status, wrong.json.error.param], [400, 'order']);
});

test('a fault in an order is a 400 that names the field, the model too, in each of its protocols', async () => {
  const before = await alice.balance();
  const form = (members: Record<string, string>) => {
    const body = new FormData();
    for (const [name, value] of Object.entries({ ...order, ...members })) body.set(name, value);
    return body;
  };
  const twice = form({});
  twice.append('prompt', 'Again');
  const fileAsPrompt = form({});
  fileAsPrompt.set('prompt', new Blob([new Uint8Array(png)]), 'prompt.png');
  const content = [{ type: 'text', text: 'Waves' }];
  for (const [path, body, field] of [
    ['/v1/videos', form({ seconds: '61' }), 'seconds'],
    ['/v1/videos', form({ input_reference: 'no image' }), 'input_reference'],
    ['/v1/videos', form({ 'input_reference[file_id]': 'file-1' }), 'input_reference.image_url'],
    ['/v1/videos', twice, 'prompt'],
    ['/v1/videos', fileAsPrompt, 'prompt'],
    ['/v1/videos', form({ model: 'missing' }), 'model'],
    ['/v1/videos', { ...order, model: 'missing' }, 'model'],
    ['/v1/contents/generations/tasks', { model: 'missing', content }, 'model'],
    ['/v1/contents/generations/tasks', { model: 'film', content: [] }, 'content'],
  ] as const) {
    const { status, json } = await alice.send('POST', path, body);
    assert.deepEqual([status, json.error.param], [400, field], `${path} ${field}`);
  }
  await alice.hasPaid(before, 0n);
});
