/** Every language is taken from the browser, and its words fit on a screen of 380 pixels. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { findingsOf, firstLook, looksOfLanguage } from './looks.ts';
import { cannotRun, openStage, type Stage } from './stage.ts';

const texts = new URL('../../plugins/console/web/src/texts/', import.meta.url);
const languages = readdirSync(texts).filter((name) => /^\w\w$/.test(name) && name !== 'en');
const paths = ['/', '/keys?new=1', '/usage', '/wallet', '/playground', '/profile'];

let stage: Stage;
before(async () => {
  if (cannotRun === false) stage = await openStage();
});
after(() => stage?.close());

for (const language of languages)
  test(`the pages in ${language} are accessible and no wider than the window`, {
    skip: cannotRun,
  }, async () => {
    const page = await stage.page({ ...firstLook, locale: language });
    const findings: string[] = [];
    for (const path of paths)
      findings.push(...(await findingsOf(page, `${stage.origin}/console${path}`, looksOfLanguage)));
    assert.equal(await page.evaluate('document.documentElement.lang'), language);
    assert.equal([...findings, ...stage.complaints].join('\n'), '');
    await page.context().close();
  });

test("the operator's pages in each language are no wider than the window", { skip: cannotRun }, async () => {
  const findings: string[] = [];
  for (const language of languages) {
    const page = await stage.page({ ...firstLook, locale: language });
    await page.context().addCookies([{ name: 'fake', value: 'operator', url: stage.origin }]);
    for (const path of ['overview', 'upstreams', 'accounts', 'config', 'config?view=history&version=3', 'money'])
      findings.push(...(await findingsOf(page, `${stage.origin}/console/admin/${path}`, looksOfLanguage)));
    await page.context().close();
  }
  assert.deepEqual(findings, []);
});
