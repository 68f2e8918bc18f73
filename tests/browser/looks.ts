/** What every page must stand: readers of all kinds, a dark room, a small screen. The app is loaded once for many pages. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContextOptions, Page } from 'playwright-core';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const wide = { width: 1280, height: 900 };
const small = { width: 380, height: 780 };
export const firstLook: BrowserContextOptions = { viewport: wide, colorScheme: 'light', reducedMotion: 'reduce' };

interface Look {
  readonly name: string;
  readonly viewport: typeof wide;
  readonly colorScheme: 'light' | 'dark';
  /** Options of axe. Undefined: axe is not run. */
  readonly rules?: object;
}
const withoutContrast = { rules: { 'color-contrast': { enabled: false } } };
/** Contrast takes most of axe's time and does not depend on the width, so it is checked at one width. */
const allLooks: readonly Look[] = [
  { name: 'in light', viewport: wide, colorScheme: 'light', rules: {} },
  {
    name: 'in dark',
    viewport: wide,
    colorScheme: 'dark',
    rules: { runOnly: { type: 'rule', values: ['color-contrast'] } },
  },
  { name: 'at 380 pixels', viewport: small, colorScheme: 'light', rules: withoutContrast },
];
/** For further languages: only labels and the length of words differ, so colours are not checked again. */
export const looksOfLanguage: readonly Look[] = [
  { name: 'in light', viewport: wide, colorScheme: 'light' },
  { name: 'at 380 pixels', viewport: small, colorScheme: 'light', rules: withoutContrast },
];

/** Opens a page and looks at it in each way: serious findings of axe, and pixels that it is wider than its window. */
export async function findingsOf(page: Page, address: string, looks = allLooks): Promise<string[]> {
  const findings: string[] = [];
  await see(page, looks[0]!);
  await visit(page, address);
  await settled(page);
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  for (const look of looks) {
    await see(page, look);
    const tooWide = await overflow(page);
    if (tooWide > 0) findings.push(`${address} ${look.name}: ${tooWide} pixels too wide`);
    if (look.rules === undefined) continue;
    for (const finding of await seriousOf(page, look.rules)) findings.push(`${address} ${look.name}: ${finding}`);
  }
  return findings;
}

/** The same of a page that is no part of the app: loaded by itself, in light, in dark and narrow. */
export async function findingsOfPlainPage(page: Page, address: string): Promise<string[]> {
  const findings: string[] = [];
  await page.goto(address);
  await page.evaluate(axeSource);
  for (const { name, viewport, colorScheme, rules } of allLooks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    const tooWide = await overflow(page);
    if (tooWide > 0) findings.push(`${address} ${name}: ${tooWide} pixels too wide`);
    for (const finding of await seriousOf(page, rules!)) findings.push(`${address} ${name}: ${finding}`);
  }
  return findings;
}

/** Loading the app takes longer than most of what is looked at: where it is open, its router (TanStack's) goes to the address, as by a link. */
export async function visit(page: Page, address: string): Promise<void> {
  if (page.url() === 'about:blank') return void (await page.goto(address));
  const { pathname, search } = new URL(address, page.url());
  await page.evaluate(`new Promise((done) => {
    const look = () => {
      const { status, location, resolvedLocation } = __TSR_ROUTER__.state;
      if (status === 'idle' && location === resolvedLocation) done();
      else requestAnimationFrame(look);
    };
    __TSR_ROUTER__.history.push(${JSON.stringify(pathname + search)});
    requestAnimationFrame(look);
  })`);
}

/** Nothing moves afterwards: a colour on its way to another one is neither. */
async function see(page: Page, { viewport, colorScheme }: Pick<Look, 'viewport' | 'colorScheme'>): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
  if (page.url() === 'about:blank') return;
  await page.locator(`html[data-mantine-color-scheme='${colorScheme}']`).waitFor();
  await page.evaluate(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => {
    for (const running of document.getAnimations())
      if (running.effect.getComputedTiming().endTime !== Infinity) running.finish();
  })`);
}

/** Rows and numbers are there, and nothing moves any more. */
async function settled(page: Page): Promise<void> {
  await filled(page);
  await page.waitForTimeout(300);
}

/** No part is waited for. */
async function filled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).or(page.getByRole('dialog')).first().waitFor();
  const waiting = page.locator('.mantine-Loader-root, .mantine-Skeleton-root');
  while ((await waiting.count()) > 0) {
    // Some parts are loaded when they are scrolled to; this one may be gone by now.
    await waiting
      .first()
      .scrollIntoViewIfNeeded({ timeout: 1_000 })
      .catch(() => undefined);
    await page.waitForTimeout(50);
  }
}

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** A line each. */
async function seriousOf(page: Page, rules: object): Promise<string[]> {
  const options = JSON.stringify({ ...rules, resultTypes: ['violations'], preload: false });
  const { violations } = (await page.evaluate(`axe.run(${options})`)) as { violations: Violation[] };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => {
      const [first] = nodes;
      return `${id} (${nodes.length}): ${first?.html.slice(0, 200)} ${first?.failureSummary?.slice(0, 300)}`;
    });
}

/** How many pixels the page is wider than its window. */
async function overflow(page: Page): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'));
}

/** The columns of a page's tables that lie outside of what is seen, at the widths of common screens; and the page where it is to be one screen high. */
export async function cutTables(page: Page, address: string, { oneScreen = false } = {}): Promise<string[]> {
  await visit(page, address);
  await filled(page);
  return cutColumns(page, { oneScreen });
}

/** The same of the page that is shown. */
export async function cutColumns(page: Page, { oneScreen = false } = {}): Promise<string[]> {
  const findings: string[] = [];
  const { pathname, search } = new URL(page.url());
  for (const viewport of screens) {
    await see(page, { viewport, colorScheme: 'light' });
    const at = `${pathname}${search} at ${viewport.width}`;
    const cut = (await page.evaluate(`[...document.querySelectorAll('.table-box')].flatMap((box) => {
      const edge = box.getBoundingClientRect().right + 1;
      const heads = [...box.querySelectorAll('thead th')];
      return heads.filter((one) => one.getBoundingClientRect().right > edge).map((one) => one.textContent);
    })`)) as string[];
    findings.push(...cut.map((title) => `${at}: the column ${title}`));
    const below = Number(await page.evaluate('document.documentElement.scrollHeight')) - viewport.height;
    if (oneScreen && below > 0) findings.push(`${at}: ${below} pixels too high`);
  }
  return findings;
}
const screens = [
  { width: 1440, height: 900 },
  { width: 1280, height: 800 },
];

/** What a German page writes as English does; names, code, what is typed, and reasons that were stored in English are not looked at. */
export async function englishNumbers(page: Page): Promise<string[]> {
  const [texts, names] = (await page.evaluate(`(async () => {
    const namesAt = (path) => fetch('/console/api/' + path).then((answer) => answer.json())
      .then(({ rows = [] }) => rows.flatMap(({ id, displayName }) => [displayName, id]));
    window.modelNames ??= Promise.all([namesAt('models'), namesAt('public/models')]).then((all) => all.flat());
    const skipped = 'style, script, code, pre, .mono, textarea, .cm-editor, svg';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode())
      if (walker.currentNode.parentElement.closest(skipped) === null) texts.push(walker.currentNode.data);
    return [texts, await window.modelNames];
  })()`)) as [string[], string[]];
  return texts.flatMap((text) => {
    const rest = names.reduce((left, name) => left.replaceAll(name, ' '), text.replace(/^[\d.]+ USD: /, ''));
    return isEnglish(rest) ? [`${page.url()}: ${text}`] : [];
  });
}

/** `0.85`, `1,234.5`, `12345`, `$3`; not `1.234`, `0,85`, `2026`, `127.0.0.1`, `gpt-5.5`. */
const isEnglish = (text: string) =>
  text.split(/[\s()/„“·×=;:]+/).some((word) => {
    const [, dollar, digits = ''] = /^[+−-]?(\$?)(\d[\d.,]*?)[.,]?(?:%|[a-zA-Z]{1,2})?$/.exec(word) ?? [];
    if (dollar === undefined) return false;
    const isDecimal = /^\d+\.\d+$/.test(digits) && !/^\d{1,3}\.\d{3}$/.test(digits);
    const isGrouped = /^\d{1,3}(?:,\d{3})+\.\d/.test(digits) || /^(?!20\d\d$)\d{4,}$/.test(digits);
    return dollar === '$' || isDecimal || isGrouped;
  });
