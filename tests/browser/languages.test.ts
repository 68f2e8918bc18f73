/** Every language is taken from the browser, and its words fit on a screen of 380 pixels and into tables. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from './browser-test.ts';
import { cutTables, findingsOf, firstLook, looksOfLanguage } from './looks.ts';
import { sharedStage } from './stage.ts';

const texts = new URL('../../plugins/console/web/src/texts/', import.meta.url);
// All pages in German, in which words are longest, are looked at by `pages.test.ts` and `operator-pages.test.ts`.
const languages = readdirSync(texts).filter((name) => /^\w\w$/.test(name) && name !== 'en' && name !== 'de');
const paths = ['/', '/keys?new=1', '/usage', '/wallet', '/projects', '/members', '/playground', '/profile'];

const stage = sharedStage();

for (const language of languages)
  test(`the pages in ${language} are accessible and no wider than the window`, async () => {
    const page = await stage.page({ ...firstLook, locale: language });
    const findings: string[] = [];
    for (const path of paths)
      findings.push(...(await findingsOf(page, `${stage.origin}/console${path}`, looksOfLanguage)));
    assert.equal(await page.evaluate('document.documentElement.lang'), language);
    assert.equal([...findings, ...stage.complaints].join('\n'), '');
    await page.context().close();
  });

test('lists have all their columns in sight at 1,280 and 1,440 pixels, and the monitor is one screen high, in each language', async () => {
  const findings: string[] = [];
  for (const locale of ['en', 'de', ...languages]) {
    const page = await stage.page({ ...firstLook, locale });
    const lists = (names: string[]) => (locale === 'de' ? [] : names);
    for (const path of lists(['usage', 'models']))
      findings.push(...(await cutTables(page, `${stage.origin}/console/${path}`)));
    await page.context().addCookies([{ name: 'fake', value: 'operator', url: stage.origin }]);
    await page.goto('about:blank');
    for (const path of lists(['admin/requests', 'admin/prices', 'admin/money']))
      findings.push(...(await cutTables(page, `${stage.origin}/console/${path}`)));
    for (const span of ['1h', '30d'])
      findings.push(
        ...(await cutTables(page, `${stage.origin}/console/admin/monitor?span=${span}`, { oneScreen: true })),
      );
    await page.context().close();
  }
  assert.deepEqual(findings, []);
});
