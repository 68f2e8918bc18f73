/** Texts that attack the pages: a model's answer, and names of all kinds. They stay text, reach no other host, and fit the window. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { catalog } from '../../plugins/common/domain/models.ts';
import { clientAccount } from '../plugins/console/fakes/world.ts';
import { after, before, test } from './browser-test.ts';
import { findingsOf, firstLook } from './looks.ts';
import { type Stage, startStage } from './operator-stage.ts';

const evil = 'http://evil.example';
const attack = (what: string) => `window.ran = [...(window.ran ?? []), '${what}']; alert(1)`;
const tags = (what: string) =>
  `<script>${attack(what)}</script><img src="${evil}/${what}" onerror="${attack(what)}"><svg onload="${attack(what)}"></svg>` +
  `<iframe src="javascript:${attack(what)}"></iframe><style>@import "${evil}/${what}.css"; * { display: none }</style>`;
/** A name as long as the API lets one be, with nowhere to break, and with marks that turn the direction of what follows. */
const nameOf = (what: string) => `${what}\u202e<img src=x onerror=alert(1)>"'{{t}}\u2066${'W'.repeat(60)}`;

const targets = [
  ...[
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\tscript:alert(1)',
    ' javascript:alert(1)',
    '&#106;avascript:alert(1)',
  ],
  ...[
    'vbscript:x',
    'data:text/html,<script>alert(1)</script>',
    'data:image/svg+xml,<svg onload=alert(1)>',
    'file:///etc/passwd',
  ],
  ...['//evil.example/x', 'blob:http://evil.example/1', 'https://evil.example/"onmouseover="alert(1)', `${evil}/page`],
];
const answer = [
  tags('answer'),
  ...targets.map((target) => `[a link](${target}) ![a picture](${target}) <${target}> [ref]`),
  `[![inside](${evil}/pixel)](javascript:alert(1)) [label <b onclick=alert(1)>](${evil}/label)`,
  `![](${evil}/pixel) ![x][p]\n\n[p]: ${evil}/pixel\n[ref]: javascript:alert(1)`,
  `\`\`\`html"><img src=x onerror=alert(1)>\n${tags('code')}${'w'.repeat(2_000)}\n\`\`\``,
  `# ${tags('heading')}${'W'.repeat(500)}`,
  `${'> '.repeat(300)}deep quote`,
  `${Array.from({ length: 200 }, (_, depth) => `${' '.repeat(depth * 2)}- item ${depth} ${tags('item')}`).join('\n')}`,
  `|${Array.from({ length: 60 }, (_, column) => ` ${tags('cell')}${column} `).join('|')}|\n|${'---|'.repeat(60)}\n|${'W'.repeat(300)}|`,
  `${'**'.repeat(3_000)}${'['.repeat(3_000)}${'`'.repeat(3_001)} ${'a'.repeat(5_000)}`,
  `\u202eevil\u202c \u2067rtl \u05d0\u05d1\u05d2 ${'\u0301'.repeat(500)} \u0000\ufeff\ud800`,
  'The end of it.',
].join('\n\n');

let stage: Stage;
const foreign: string[] = [];
const dialogs: string[] = [];
before(async () => {
  stage = await startStage();
  fill(stage);
});
after(() => stage?.stop());

/** Each name and text that somebody else can choose. */
function fill({ testbed }: Stage): void {
  const { world } = testbed;
  const rename = <Row extends { id: string; name: string }>(rows: Row[], what: string) =>
    rows.splice(0, rows.length, ...rows.map((row, index) => ({ ...row, name: nameOf(`${what}${index}`) })));
  rename(world.accounts, 'account');
  world.keys.splice(
    0,
    world.keys.length,
    ...world.keys.map((key, index) => ({ ...key, name: nameOf(`key${index}`), project: nameOf('project') })),
  );
  const ofModel = { model: nameOf('model'), upstreamModel: nameOf('real'), provider: nameOf('provider') };
  const facts = { errorCode: nameOf('code'), dropped: [nameOf('field')], upstreamId: nameOf('id') };
  const timeline = [{ atMs: 1, by: nameOf('plugin'), text: tags('timeline'), kind: 'other.kind', values: [] }];
  const rows = world.requests.map((row, index) =>
    index % 2 === 0 ? row : { ...row, ...ofModel, ...facts, accountId: clientAccount, story: timeline },
  );
  world.requests.splice(0, rows.length, ...rows);
  const charges = world.charges.map((row) => ({
    ...{ ...row, model: nameOf('model'), provider: nameOf('provider') },
    attempts: row.attempts.map((attempt) => ({ ...attempt, provider: nameOf('provider'), error: tags('refusal') })),
  }));
  world.charges.splice(0, charges.length, ...charges);
  const entries = world.ledger.map((row) => ({ ...row, reason: tags('reason'), reference: nameOf('reference') }));
  world.ledger.splice(0, entries.length, ...entries);
  rename(testbed.people.rows as never, 'person');
  const models = testbed.find(catalog)!;
  const [first] = models.list();
  const listed = [
    ...models.list(),
    { ...first!, id: nameOf('model'), displayName: nameOf('shown'), ownedBy: nameOf('owner') },
  ];
  testbed.host.provide(catalog, { ...models, list: () => listed });
}

async function open(role: 'client' | 'operator'): Promise<Page> {
  const page = await stage.page(role, firstLook);
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.context().on('request', (request) => {
    const url = request.url();
    if (!/^(?:data|blob):/.test(url) && new URL(url).origin !== stage.origin) foreign.push(url);
  });
  return page;
}

/** What of it has become more than text; empty: nothing. */
async function ranIn(page: Page): Promise<unknown[]> {
  const found = (await page.evaluate(`[
    ...(window.ran ?? []),
    ...Array.from(document.querySelectorAll('[onerror], [onload], [onclick], [onmouseover], iframe, object, embed, base'), (one) => one.outerHTML),
    ...Array.from(document.querySelectorAll('main img, main script, main style:not([data-mantine-styles]), main form[action]'))
      .map((one) => one.outerHTML).filter((html) => /evil|alert|src="?x/.test(html)),
    ...Array.from(document.querySelectorAll('a[href]'))
      .filter((link) => !/^(https?|mailto):$/.test(link.protocol) || (link.host !== location.host && !/noopener/.test(link.rel)))
      .map((link) => link.outerHTML),
  ]`)) as unknown[];
  return [...found, ...dialogs, ...foreign, ...stage.complaints];
}

const looks = [
  { name: 'at 1280 pixels', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'at 380 pixels', viewport: { width: 380, height: 780 }, colorScheme: 'light' },
] as const;

test('an answer that contains an attack is shown as text, loads nothing, and fits the window', async () => {
  const page = await open('client');
  await page.route('**/v1/chat/completions', (route) => {
    const half = answer.length / 2;
    const events = [
      ...[
        { reasoning_content: tags('thought') },
        { content: answer.slice(0, half) },
        { content: answer.slice(half) },
      ].map((delta) => ({ choices: [{ delta }] })),
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 4 } },
    ];
    const body = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
    return route.fulfill({ contentType: 'text/event-stream', body });
  });
  await page.goto('/console/playground');
  await page.getByRole('textbox', { name: 'Key', exact: true }).fill('sk-any');
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(tags('question'));
  await page.keyboard.press('Control+Enter');
  await page.getByText('The end of it.').waitFor();
  await page.getByText('7 / 4').waitFor();
  const said = page.locator('.said[data-role=assistant]');
  assert.match((await said.textContent())!, /<img src="http:\/\/evil\.example\/answer" onerror=/);
  assert.deepEqual(await ranIn(page), []);
  const links = (await page.evaluate(
    `Array.from(document.querySelectorAll('.said[data-role=assistant] a'), (one) => [one.protocol, one.rel, one.target])`,
  )) as string[][];
  assert(links.length >= 3, `${links.length} links`);
  for (const link of links)
    assert.deepEqual(link, [link[0] === 'https:' ? 'https:' : 'http:', 'noreferrer noopener', '_blank']);
  const wide = [];
  for (const { name, viewport } of looks) {
    await page.setViewportSize(viewport);
    const over = Number(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    );
    if (over > 0) wide.push(`${name}: ${over} pixels too wide`);
  }
  if (process.env['SHOTS']) await page.screenshot({ path: `${process.env['SHOTS']}/hostile.png`, fullPage: true });
  assert.deepEqual(wide, []);
});

test('names and texts that contain an attack are shown as text, and the pages fit the window', async () => {
  const findings: unknown[] = [];
  const { world } = stage.testbed;
  const request = world.requests.findLast(
    ({ accountId, story: timeline }) => accountId === clientAccount && timeline?.[0]?.text.includes('alert'),
  )!;
  const paths = {
    client: ['keys', 'wallet', 'usage', `usage?request=${request.id}`, 'models'],
    operator: ['accounts', `accounts/${clientAccount}`, 'requests', `requests/${request.id}`].map(
      (path) => `admin/${path}`,
    ),
  };
  for (const role of ['client', 'operator'] as const) {
    const page = await open(role);
    for (const path of paths[role]) {
      findings.push(...(await findingsOf(page, `/console/${path}`, looks)));
      const text = String(await page.evaluate('document.body.innerText'));
      if (!/<img src=|<script>/.test(text)) findings.push(`${path} shows none of it`);
      findings.push(...(await ranIn(page)).map((one) => `${path}: ${one}`));
      if (process.env['SHOTS'])
        await page.screenshot({
          path: `${process.env['SHOTS']}/hostile-${path.replaceAll(/\W/g, '-')}.png`,
          fullPage: true,
        });
    }
    await page.context().close();
  }
  assert.deepEqual(findings, []);
});
