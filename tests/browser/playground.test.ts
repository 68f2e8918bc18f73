/** The playground at the demo gateway: four protocols, an image, two models beside each other, kept instructions, no money. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { after, before, test } from './browser-test.ts';
import { findingsOf, firstLook } from './looks.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let page: Page;
before(async () => {
  stage = await openStage('demo');
  page = await stage.page(firstLook);
  await open('');
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).click();
  await page.getByRole('button', { name: 'Make a key for this session', exact: true }).waitFor({ state: 'hidden' });
});
after(() => stage?.close());

const open = (search: string) => page.goto(`${stage.origin}/console/playground${search}`);

/** Keeps the page, and with it the key. */
async function choose(field: string, option: string): Promise<void> {
  await page.getByRole('combobox', { name: field, exact: true }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

async function send(question: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(question);
  await page.keyboard.press('Control+Enter');
}

async function newConversation(): Promise<void> {
  await page.getByRole('button', { name: 'New conversation', exact: true }).click();
  await page.locator('.said').first().waitFor({ state: 'detached' });
}

/** The next streamed answer comes whole, but ends only when it is let. */
async function holdEnds(): Promise<() => Promise<unknown>> {
  await page.evaluate(`{
    const { promise, resolve } = Promise.withResolvers();
    const { fetch } = window;
    window.fetch = async (...given) => {
      const answer = await fetch(...given);
      if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
      return new Response(answer.body.pipeThrough(new TransformStream({ flush: () => promise })), answer);
    };
    window.endAnswers = () => {
      window.fetch = fetch;
      resolve();
    };
  }`);
  return () => page.evaluate('endAnswers()');
}

test('without money the error names where it is added', async () => {
  await send('Hello');
  const alert = page.getByRole('alert');
  await alert.getByRole('link', { name: 'Buy credit', exact: true }).waitFor();
  assert.match((await alert.getByRole('link').getAttribute('href'))!, /\/wallet$/);
});

test('each protocol is spoken with the gateway, and the curl command follows', async () => {
  const code = await stage.makeCode('5');
  await page.request.post(`${stage.origin}/console/api/wallet/redeem`, {
    headers: { origin: stage.origin, 'x-console': '1', 'idempotency-key': 'playground' },
    data: { code },
  });
  const paths = {
    chat: '/v1/chat/completions',
    responses: '/v1/responses',
    messages: '/v1/messages',
    gemini: ':streamGenerateContent',
  };
  for (const [protocol, path] of Object.entries(paths)) {
    await choose('Protocol', protocol);
    const answer = page.waitForResponse((response) => response.url().includes(path));
    await send(`Tell me of lighthouses by ${protocol}`);
    assert.equal((await answer).status(), 200, protocol);
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    assert.ok((await page.locator('pre').last().textContent())!.includes(path), protocol);
    await page.getByText(/^\d+ \/ \d+$/).waitFor();
    await newConversation();
  }
});

test('the gateway calls tools for a model in each protocol, and the cost is that of the run', async () => {
  await choose('Tools', 'sandbox');
  await page.keyboard.press('Escape');
  for (const protocol of ['chat', 'responses', 'messages', 'gemini']) {
    await choose('Protocol', protocol);
    await send('What is the weather in Oslo?');
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await page.getByText('Called sandbox__weather').first().click();
    await page
      .getByText(/→ .*Oslo/)
      .first()
      .waitFor();
    await page.getByTestId('cost').filter({ hasText: /[1-9]/ }).waitFor();
    assert.ok((await page.locator('pre').last().textContent())!.includes('gateway://sandbox'), protocol);
    await newConversation();
  }
});

test('a tool call that is opened while its answer is written stays open when the answer has ended', async () => {
  await choose('Protocol', 'messages');
  const end = await holdEnds();
  await send('What is the weather in Oslo?');
  const called = page.getByText('Called sandbox__weather').first();
  await called.click();
  const result = page.getByText(/→ .*Oslo/).first();
  await result.waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  await end();
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  assert.equal(await result.isVisible(), true);
});

test('a new conversation that is begun while an answer is written stays empty', async () => {
  await newConversation();
  const end = await holdEnds();
  await send('What is the weather in Oslo?');
  await page.getByText('Called sandbox__weather').first().waitFor();
  await newConversation();
  await end();
  await send('And in Bergen?');
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  assert.deepEqual(await page.locator('.said[data-role=user]').allTextContents(), ['And in Bergen?']);
  assert.equal(await page.locator('.said[data-role=assistant]').count(), 1);
  await newConversation();
  await page.getByRole('combobox', { name: 'Tools', exact: true }).press('Backspace');
});

test('an image is sent with the question, and two models answer beside each other', async () => {
  if ((await page.locator('.said').count()) > 0) await newConversation();
  await choose('Compare with', 'claude-sonnet-5');
  await page.locator('input[type=file]').setInputFiles('plugins/console/pictures/home.png');
  await page.getByRole('button', { name: 'Remove this image', exact: true }).waitFor();
  const answered: number[] = [];
  page.on('response', (response) => {
    if (response.request().method() === 'POST') answered.push(response.status());
  });
  await send('What is on it?');
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  assert.deepEqual(answered, [200, 200]);
  assert.equal(await page.getByRole('img', { name: 'Image', exact: true }).count(), 2);
  assert.equal(await page.locator('.said[data-role=assistant]').count(), 2);
});

test('instructions are kept in the browser', async () => {
  await page.getByRole('textbox', { name: 'Instructions (optional)', exact: true }).fill('Answer in one word.');
  await page.getByRole('button', { name: 'Keep', exact: true }).click();
  await open('');
  await choose('Kept instructions', 'Answer in one word.');
  assert.equal(
    await page.getByRole('textbox', { name: 'Instructions (optional)', exact: true }).inputValue(),
    'Answer in one word.',
  );
});

test('the page with two models beside each other is accessible', async () => {
  const findings = await findingsOf(
    page,
    `${stage.origin}/console/playground?beside=claude-sonnet-5&protocol=messages`,
  );
  assert.equal([...findings, ...stage.complaints].join('\n'), '');
});
