/** Every page of a client, in light, dark and on a small screen: usable by everybody, and never wider than the screen. */
import assert from 'node:assert/strict';
import { test } from './browser-test.ts';
import { cutColumns, englishNumbers, findingsOf, firstLook } from './looks.ts';
import { sharedStage } from './stage.ts';

const inside = [
  '/',
  '/keys',
  '/keys?new=1',
  '/projects',
  '/usage',
  '/models',
  '/models?compare=1',
  '/tasks',
  '/files',
  '/batches',
  '/batches?new=1',
  '/wallet',
  '/members',
  '/members?show=log',
  '/connect?code=WDJB-MJHT',
  '/playground',
  '/profile',
];
const outside = [
  '/welcome',
  '/status',
  '/sign-in',
  '/sign-up',
  '/sign-up?join=fake',
  '/forgot-password',
  '/reset-password?token=t',
  '/first?token=t',
  '/first',
];

const stage = sharedStage();

test('every page in German is accessible, has all columns in sight and its numbers in German', async () => {
  const findings: string[] = [];
  for (const [paths, page] of [
    [inside, await stage.page({ ...firstLook, locale: 'de' })],
    [outside, await stage.stranger({ ...firstLook, locale: 'de' })],
  ] as const) {
    for (const path of paths) {
      findings.push(...(await findingsOf(page, `${stage.origin}/console${path}`)));
      findings.push(...(await englishNumbers(page)));
      if (!path.includes('?new=')) findings.push(...(await cutColumns(page)));
    }
    assert.equal(await page.evaluate('document.documentElement.lang'), 'de');
    await page.context().close();
  }
  assert.equal([...findings, ...stage.complaints].join('\n'), '');
});
