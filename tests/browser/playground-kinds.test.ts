/** The playground at the demo gateway for images, videos, speech, transcription, embeddings, rerank and moderation: price before, result, charge after. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { after, before, test } from './browser-test.ts';
import { findingsOf, firstLook } from './looks.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let page: Page;
before(async () => {
  stage = await openStage('demo');
  page = await stage.page({ ...firstLook, acceptDownloads: true });
  await page.goto(`${stage.origin}/console/playground`);
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).click();
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).waitFor({ state: 'hidden' });
});
after(() => stage?.close());

/** Keeps the page, and with it the key. */
async function choose(field: string, option: string): Promise<void> {
  await page.getByRole('combobox', { name: field, exact: true }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

const run = () => page.getByRole('button', { name: 'Run', exact: true }).click();
const price = async () => (await page.getByTestId('price').textContent())!.replace('Price: ', '');

/** What the call was charged, once it is. */
async function charged(): Promise<string> {
  const cost = page.getByTestId('cost').filter({ hasText: '$' });
  await cost.waitFor();
  return (await cost.textContent())!;
}

async function addMoney(): Promise<void> {
  const answer = await page.request.post(`${stage.origin}/console/api/wallet/redeem`, {
    headers: { origin: stage.origin, 'x-console': '1', 'idempotency-key': 'kinds' },
    data: { code: await stage.makeCode('5') },
  });
  assert.equal(answer.status(), 200);
}

const code = () => page.locator('pre').last().textContent();

test('the picker groups models by kind, and without money an order leads to the wallet', async () => {
  await page.getByRole('combobox', { name: 'Model', exact: true }).click();
  for (const group of ['Chat', 'Images', 'Videos', 'Embeddings', 'Rerank', 'Speech', 'Transcription', 'Moderation'])
    await page.getByRole('group', { name: group, exact: true }).waitFor({ state: 'attached' });
  await page.getByRole('option', { name: 'gpt-image-2', exact: true }).click();
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('A lighthouse of paper');
  await run();
  const alert = page.getByRole('alert');
  assert.match((await alert.getByRole('link', { name: 'Buy credit', exact: true }).getAttribute('href'))!, /\/wallet$/);
});

test('ordered images cost their listed price, are shown, and can be saved', async () => {
  await addMoney();
  assert.equal(await page.getByRole('textbox', { name: 'Prompt', exact: true }).inputValue(), 'A lighthouse of paper');
  await choose('Size', '1536 × 1024');
  await page.getByRole('textbox', { name: 'How many', exact: true }).fill('2');
  await page.getByText('$0.01', { exact: true }).waitFor();
  assert.equal(await price(), '$0.01');
  await choose('Quality', 'medium');
  await page.getByText('$0.082', { exact: true }).waitFor();
  await run();
  await page.getByRole('img', { name: 'A lighthouse of paper', exact: true }).nth(1).waitFor();
  // The sandbox paints small pictures in the shape that was asked for.
  const shapes = await page.evaluate(
    "Promise.all([...document.querySelectorAll('img.media')].map((image) => image.decode().then(() => image.naturalWidth / image.naturalHeight)))",
  );
  assert.deepEqual(shapes, [1.5, 1.5]);
  assert.equal(await charged(), '$0.082');
  const saving = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download', exact: true }).first().click();
  assert.ok((await (await saving).path()).length > 0);
});

test('the code follows the form, in three languages, with the key where it is wanted', async () => {
  assert.match((await code())!, /\/v1\/images\/generations'[\s\S]*"n": 2[\s\S]*YOUR_KEY|YOUR_KEY[\s\S]*"n": 2/);
  await page.getByText('Python', { exact: true }).click();
  assert.match((await code())!, /client\.images\.generate\([\s\S]*n=2/);
  await page.getByText('JavaScript', { exact: true }).click();
  assert.match((await code())!, /await client\.images\.generate\([\s\S]*n: 2/);
  assert.match((await code())!, /apiKey: "YOUR_KEY"/);
  await page.getByRole('switch', { name: 'Fill in my key', exact: true }).press('Space');
  assert.match((await code())!, /apiKey: "sk-gw-/);
  await page.getByRole('switch', { name: 'Fill in my key', exact: true }).press('Space');
});

test('a reference image is sent with an order', async () => {
  await page.locator('input[type=file]').setInputFiles('plugins/console/pictures/home.png');
  await page.getByRole('button', { name: 'Remove this image', exact: true }).waitFor();
  assert.match((await code())!, /client\.images\.edit\([\s\S]*createReadStream\("image\.png"\)/);
  const order = page.waitForRequest((request) => request.url().endsWith('/v1/images/generations'));
  await run();
  assert.equal((await order).postDataJSON().image_urls.length, 1);
  await page.getByRole('img', { name: 'A lighthouse of paper', exact: true }).first().waitFor();
});

test('a video needs its first frame, shows its progress and plays', async () => {
  await choose('Model', 'grok-imagine-video');
  await page.getByRole('textbox', { name: 'Prompt', exact: true }).fill('Waves [[sandbox: takes=3s]]');
  assert.ok(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled());
  await page.locator('input[type=file]').setInputFiles('plugins/console/pictures/home.png');
  const seconds = page.getByRole('textbox', { name: 'Seconds', exact: true });
  await seconds.fill('99');
  assert.ok(Number(await seconds.inputValue()) <= 15, 'the bound of the catalogue');
  await seconds.fill('4');
  await choose('Size', '720p, 9:16');
  // 4 seconds at 0.07, and 0.002 for the request.
  await page.getByText('$0.282', { exact: true }).waitFor();
  await run();
  await page
    .getByRole('img', { name: /% made/ })
    .or(page.getByText('being made'))
    .first()
    .waitFor();
  await page.locator('video.media').waitFor();
  const { width, height, duration } = (await page.evaluate(`new Promise((done) => {
    const video = document.querySelector('video.media');
    const tell = () => done({ width: video.videoWidth, height: video.videoHeight, duration: video.duration });
    if (video.readyState > 0) tell();
    else video.onloadedmetadata = tell;
  })`)) as { width: number; height: number; duration: number };
  assert.ok(height > width && Math.abs(duration - 4) < 0.2, `${width} × ${height}, ${duration} s`);
  assert.equal(await charged(), '$0.282');
});

test('a text is spoken, and the speech is transcribed with its segments', async () => {
  await choose('Model', 'tts-1');
  const text = 'The lighthouse keeper counts the ships. '.repeat(3).trim();
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill(text);
  await choose('Format', 'wav');
  await choose('Voice', 'nova');
  // 119 characters at 15 dollars a million.
  await page.getByText('$0.001785', { exact: true }).waitFor();
  assert.equal(text.length, 119);
  await run();
  await page.locator('audio.sound').waitFor();
  assert.match(await charged(), /^\$0\.00178/);
  const saving = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download', exact: true }).click();
  const file = await (await saving).path();
  await choose('Model', 'whisper-1');
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'talk.wav', mimeType: 'audio/wav', buffer: await readFile(file) });
  await page.getByTestId('price').getByText('Price:').waitFor();
  const before = await price();
  await run();
  await page.getByRole('row', { name: /0:00\.0/ }).waitFor();
  await page
    .getByText(/talk\.wav/)
    .first()
    .waitFor();
  assert.equal(await charged(), before);
});

test('texts are compared by their vectors', async () => {
  await choose('Model', 'text-embedding-3-small');
  await page.getByRole('textbox', { name: 'Text 1', exact: true }).fill('the cat sat on the mat');
  await page.getByRole('textbox', { name: 'Text 2', exact: true }).fill('the cat lay on the mat');
  await page.getByRole('button', { name: 'Add one', exact: true }).click();
  await page.getByRole('textbox', { name: 'Text 3', exact: true }).fill('quarterly revenue grew strongly');
  await page.keyboard.press('Control+Enter');
  const table = page.getByRole('table', { name: 'Cosine similarity', exact: true });
  await table.waitFor();
  const cells = (await table.locator('tbody td').allTextContents()).map(Number);
  assert.equal(cells.length, 9);
  assert.deepEqual([cells[0], cells[4], cells[8]], [1, 1, 1]);
  assert.deepEqual([cells[1], cells[2], cells[5]], [cells[3], cells[6], cells[7]]);
  assert.ok(cells[1]! > cells[2]! + 0.3, 'the nearer the more words they share');
});

test('documents are ranked, and a text is moderated', async () => {
  await choose('Model', 'jina-reranker-v2-base-multilingual');
  await page.getByRole('textbox', { name: 'Query', exact: true }).fill('a cat on a mat');
  await page.getByRole('textbox', { name: 'Document 1', exact: true }).fill('it rains in the harbour');
  await page.getByRole('textbox', { name: 'Document 2', exact: true }).fill('a cat on a mat');
  await run();
  const rows = page.locator('table tbody tr');
  await rows.nth(1).waitFor();
  assert.match((await rows.first().textContent())!, /^a cat on a mat/);
  await choose('Model', 'omni-moderation-latest');
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('A text about violence');
  await run();
  await page.getByRole('heading', { name: 'Flagged', exact: true }).waitFor();
  await page.getByRole('columnheader', { name: 'Score', exact: true }).waitFor();
  assert.equal(await rows.filter({ hasText: /^violence0\.970$/ }).count(), 1);
});

test('a moderation with flags alone shows no score', async () => {
  await page.route('**/v1/moderations', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { results: { category_scores?: object }[] };
    for (const result of body.results) delete result.category_scores;
    await route.fulfill({ response: answer, json: body });
  });
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Another text about violence');
  await run();
  const rows = page.locator('table tbody tr');
  await rows.filter({ hasText: /^violenceFlagged$/ }).waitFor();
  assert.equal(await page.getByRole('columnheader', { name: 'Score', exact: true }).count(), 0);
  assert.doesNotMatch((await page.locator('table tbody').textContent())!, /\d/);
  assert.match((await rows.filter({ hasText: /^violenceFlagged$/ }).getAttribute('class'))!, /\bbad\b/);
  await page.unroute('**/v1/moderations');
});

test("a refusal is shown in the reader's language", async () => {
  await page.getByRole('button', { name: 'Language', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Deutsch', exact: true }).click();
  await page.getByRole('textbox', { name: 'Schlüssel', exact: true }).fill('sk-wrong');
  await page.getByRole('button', { name: 'Ausführen', exact: true }).click();
  await page.getByRole('alert').getByText('Dieser Schlüssel ist nicht bekannt.').waitFor();
});

for (const model of [
  'gpt-image-2',
  'grok-imagine-video',
  'tts-1',
  'whisper-1',
  'text-embedding-3-small',
  'rerank-3',
  'omni-moderation-latest',
])
  test(`the form of ${model} is accessible`, async () => {
    const findings = await findingsOf(page, `${stage.origin}/console/playground?model=${model}`);
    assert.equal([...findings, ...stage.complaints].join('\n'), '');
  });

test('the details of a model list its voices and formats', async () => {
  const english = await stage.page(firstLook);
  await english.goto(`${stage.origin}/console/models?open=tts-1`);
  const drawer = english.getByRole('dialog');
  await drawer.getByText('mp3, opus, aac, flac, wav, pcm', { exact: true }).waitFor();
  assert.match((await drawer.textContent())!, /Voicesalloy, ash, coral, .*Formatsmp3/);
  await english.goto(`${stage.origin}/console/models?open=omni-moderation-latest`);
  await drawer.getByText('omni-moderation-latest', { exact: true }).waitFor();
  assert.doesNotMatch((await drawer.textContent())!, /Voices|Formats/);
});
