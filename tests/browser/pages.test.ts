/** Every page of a client, in light, dark and on a small screen: usable by everybody, and never wider than the screen. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { cannotRun, openStage, type Stage } from './stage.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const inside = ['/', '/keys', '/keys?new=1', '/usage', '/models', '/tasks', '/wallet', '/playground', '/profile'];
const outside = ['/sign-in', '/sign-up', '/forgot-password', '/reset-password?token=t', '/first?token=t', '/first'];
const looks: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  'small screen': { colorScheme: 'light', viewport: { width: 380, height: 780 } },
};

let stage: Stage;
before(async () => {
  if (cannotRun === false) stage = await openStage();
});
after(() => stage?.close());

for (const [look, options] of Object.entries(looks))
  test(`every page can be read and used by everybody, ${look}`, { skip: cannotRun }, async () => {
    const findings: string[] = [];
    for (const [paths, page] of [
      [inside, await stage.page(options)],
      [outside, await stage.stranger(options)],
    ] as const) {
      for (const path of paths) {
        await page.goto(`${stage.origin}/console${path}`);
        await settled(page);
        findings.push(...(await widthOf(page, path)), ...(await seriousOf(page, path)));
      }
      await page.context().close();
    }
    assert.equal([...findings, ...stage.complaints].join('\n'), '');
  });

/** Rows and numbers are there, and nothing moves any more. */
async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  const waiting = page.locator('.mantine-Loader-root, .mantine-Skeleton-root');
  while ((await waiting.count()) > 0) await page.waitForTimeout(50);
  await page.waitForTimeout(400);
}

async function widthOf(page: Page, path: string): Promise<string[]> {
  const over = Number(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  );
  return over > 0 ? [`${path} is ${over} pixels wider than the screen`] : [];
}

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

async function seriousOf(page: Page, path: string): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as {
    violations: Violation[];
  };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => {
      const [first] = nodes;
      return `${path}: ${id} (${nodes.length}): ${first?.html.slice(0, 200)} ${first?.failureSummary?.slice(0, 300)}`;
    });
}
