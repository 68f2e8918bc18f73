/**
 * The pictures of the console in the documents: what they show is compared with what was called and charged.
 * `npm run pictures` takes them again, into `plugins/console/pictures`.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { formatUsd } from '../../plugins/common/domain/money.ts';
import { moneyText } from '../../plugins/console/web/src/parts/format.ts';
import type { Browser as Client } from '../plugins/console/browser.ts';
import { firstToken, operator, startDemo, type TestConsole } from '../plugins/console/start-console.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser, signIn } from './chromium.ts';
import { buildPages } from './operator-stage.ts';
import { paletteOf } from './palette-png.ts';

const folder = 'plugins/console/pictures';
const isTaking = process.env['PICTURES'] === 'take';
const client = { email: 'ada@example.test', password: 'another long password', name: 'Ada' };

/** Nano-USD per token, input and output: of the catalogue, and the operator's own. */
const models = {
  'gpt-5.4-mini': { price: [750n, 4500n], cost: [350n, 2000n] },
  'claude-opus-5': { price: [5000n, 25_000n], cost: [4000n, 20_000n] },
  'kimi-k2.6': { price: [950n, 4000n], cost: [800n, 3000n] },
  'glm-5.1': { price: [1400n, 4400n], cost: [1000n, 4000n] },
} as const;
type Model = keyof typeof models;
const costOf = ([input, output]: readonly [bigint, bigint]) =>
  `cost: { input: ${Number(input) / 1000}, output: ${Number(output) / 1000}, cache_read: 0.01 }`;

const more = `
console: { name: Example gateway }
models:
${Object.entries(models)
  .map(([id, { cost }]) => `  ${id}: { ${costOf(cost)} }\n`)
  .join('')}`;

let testbed: TestConsole;
let browser: Browser;
let boss: Client;
let ada: Client;
let key: string;
/** What was sent, and what it must have cost the client and the operator. */
const sent = { ok: 0, refused: 0, charged: 0n, ownCost: 0n };

before(async () => {
  buildPages();
  testbed = await startDemo('demo', more);
  browser = await launchBrowser();
  await testbed.browser().send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  boss = testbed.browser();
  await boss.send('/auth/sign-in/email', { body: operator });
  const gift = { kind: 'balance', amount: '20' };
  const made = await boss.send('/admin/codes', { body: { gift, count: 1, maxUses: 1, reason: 'pictures' } });
  ada = testbed.browser();
  await ada.send('/auth/sign-up/email', { body: client });
  await ada.send('/wallet/redeem', { body: { code: made.json.codes[0] } });
  key = (await ada.send('/keys', { body: { name: 'laptop' } })).json.key;
  for (let second = 0; second < (isTaking ? 60 : 3); second++) {
    const calls = (Object.keys(models) as Model[]).map((model, index) => call(model, 80 + 40 * index));
    await Promise.all([...calls, ...(second % 9 === 2 ? [mistake()] : [])]);
    await pause(700);
  }
});
after(async () => {
  await browser?.close();
  await testbed?.stop();
});

/** Resolves with what the call must have cost its client. */
async function call(model: Model, tokens: number): Promise<bigint> {
  const content = `Which ships passed the lighthouse today? [[sandbox: tokens=${tokens} delay=${tokens * 2}ms]]`;
  const answer = await send({ model, messages: [{ role: 'user', content }] });
  assert.equal(answer.status, 200);
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
  const of = ([input, output]: readonly [bigint, bigint]) =>
    BigInt(usage.prompt_tokens) * input + BigInt(usage.completion_tokens) * output;
  const { price, cost } = models[model];
  sent.ok++;
  sent.charged += of(price);
  sent.ownCost += of(cost);
  return of(price);
}

async function mistake(): Promise<void> {
  assert.equal((await send({ model: 'gpt-5.4-mini', messages: 'Hello' })).status, 400);
  sent.refused++;
}

const send = (body: object) =>
  fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const wide: BrowserContextOptions = { viewport: { width: 1200, height: 860 } };

async function openSignedIn(person: typeof client, look = wide): Promise<Page> {
  const page = await browser.newPage({ baseURL: testbed.origin, locale: 'en-US', reducedMotion: 'reduce', ...look });
  page.setDefaultTimeout(40_000);
  await signIn(page, person);
  return page;
}

async function take(page: Page, name: string): Promise<void> {
  const path = `${folder}/${name}.png`;
  if (isTaking) {
    await page.mouse.move(0, 0);
    await page.waitForTimeout(600);
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, paletteOf(await page.screenshot()));
  }
  const kept = readFileSync(path);
  assert.equal(kept.readUInt32BE(16), page.viewportSize()!.width, `${path} is as wide as the window`);
  assert.ok(kept.length <= 150_000, `${path} has ${kept.length} bytes`);
}

test('the monitor shows every call with its charge and its own cost', async () => {
  const page = await openSignedIn(operator);
  await page.goto('/console/admin/monitor?span=15m');
  await page.getByRole('button', { name: new RegExp(`^Requests ${sent.ok + sent.refused}\\b`) }).waitFor();
  await page.getByRole('row', { name: /claude-opus-5/ }).waitFor();
  const { requests, results, cost, ownCost, margin } = (await boss.send('/admin/monitor')).json;
  assert.deepEqual(
    { requests, ok: results.ok, refused: results.client_error, cost, ownCost, margin },
    {
      requests: sent.ok + sent.refused,
      ok: sent.ok,
      refused: sent.refused,
      cost: formatUsd(sent.charged),
      ownCost: formatUsd(sent.ownCost),
      margin: formatUsd(sent.charged - sent.ownCost),
    },
  );
  await take(page, 'monitor');
  await page.close();
});

test("a client's home shows the remaining balance", async () => {
  const page = await openSignedIn(client);
  const { balance } = (await ada.send('/home')).json.pool;
  assert.equal(balance, formatUsd(20_000_000_000n - sent.charged));
  await page.goto('/console/');
  await page.locator('.balance-chip', { hasText: moneyText(balance) }).waitFor();
  await page.getByText('gpt-5.4-mini').first().waitFor();
  await take(page, 'home');
  await page.close();
});

const dark: BrowserContextOptions = { ...wide, colorScheme: 'dark' };
const small: BrowserContextOptions = { viewport: { width: 380, height: 780 } };
/** Pages in turn, with a text that is there when they are. */
const galleries = [
  {
    person: client,
    look: wide,
    pages: [
      ['usage', '/console/usage', 'Requests'],
      ['models', '/console/models', 'claude-opus-5'],
      ['wallet', '/console/wallet', 'Ledger'],
      ['key', '/console/keys?new=1', 'Name'],
    ],
  },
  { person: client, look: small, pages: [['phone', '/console/', 'gpt-5.4-mini']] },
  {
    person: operator,
    look: wide,
    pages: [
      ['overview', '/console/admin/overview', 'Ada'],
      ['upstreams', '/console/admin/upstreams', 'openai'],
      ['prices', '/console/admin/prices', 'claude-opus-5'],
    ],
  },
  { person: operator, look: dark, pages: [['requests', '/console/admin/requests', 'claude-opus-5']] },
] as const;

for (const { person, look, pages } of galleries)
  test(`pages of ${person.name} for the gallery: ${pages.map(([name]) => name).join(', ')}`, async () => {
    const page = await openSignedIn(person, look);
    for (const [name, path, text] of pages) {
      await page.goto(path);
      await page.getByRole('main').getByText(text).first().waitFor();
      await take(page, name);
    }
    await page.close();
  });

test('the timeline of a request, for the gallery', async () => {
  const page = await openSignedIn(operator, dark);
  await page.goto('/console/admin/requests');
  await page
    .getByRole('row', { name: /claude-opus-5/ })
    .first()
    .click();
  await page.getByRole('dialog').getByText('claude-opus-5').first().waitFor();
  await take(page, 'request');
  await page.close();
});
