/** A page as a reader of text has it: rows of tables by their cells, all else by lines. What a check has not explained stays. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { until } from '../helpers/until.ts';

interface Row {
  readonly head: readonly string[];
  readonly cells: readonly string[];
}

interface Text {
  readonly lines: readonly string[];
  readonly rows: readonly Row[];
}

/** Charts and code are not text; tables are read by rows. */
const read = `(() => {
  const main = document.querySelector('main');
  if (main === null) return { lines: [], rows: [] };
  const clean = (text) => text.replace(/\\s+/g, ' ').trim();
  const texts = (cells) => [...cells].map((cell) => clean(cell.innerText));
  const rows = [...main.querySelectorAll('table')].flatMap((table) => {
    const head = texts(table.querySelectorAll('thead th'));
    return [...table.querySelectorAll('tbody tr, tfoot tr')].map((row) => ({ head, cells: texts(row.children) }));
  });
  const hidden = [...main.querySelectorAll('table, pre, [aria-hidden="true"], [role="img"]')];
  for (const one of hidden) one.style.setProperty('display', 'none');
  const lines = main.innerText.split('\\n').map(clean).filter((line) => line !== '');
  for (const one of hidden) one.style.removeProperty('display');
  return { lines, rows };
})()`;

type Expected = string | RegExp;

export class Reading {
  readonly lines: (string | undefined)[];
  readonly rows: (Row | undefined)[];

  constructor({ lines, rows }: Text) {
    this.lines = [...lines];
    this.rows = [...rows];
  }

  /** The lines behind a label are these. */
  tile(label: string, ...expected: Expected[]): void {
    const places = this.lines.flatMap((line, index) => (line === label ? [index] : []));
    const at = places.find((index) => expected.every((text, place) => isText(this.lines[index + 1 + place], text)));
    const near = places.map((index) => this.lines.slice(index + 1, index + 1 + expected.length).join(' | '));
    assert.ok(at !== undefined, `${label}: ${expected.join(' | ')}, not ${near.join(' or ')}`);
    this.lines.fill(undefined, at, at + 1 + expected.length);
  }

  line(...expected: Expected[]): void {
    for (const text of expected) {
      const at = this.lines.findIndex((line) => isText(line, text));
      assert.ok(at >= 0, `no line ${text} in ${this.lines.filter((line) => /\d/.test(line ?? '')).join(' | ')}`);
      this.lines[at] = undefined;
    }
  }

  /** The first row that is left whose cells begin with these, whatever their columns are called. */
  cells(...expected: Expected[]): void {
    const at = this.rows.findIndex(
      (row) => row !== undefined && expected.every((text, place) => isText(row.cells[place], text)),
    );
    assert.ok(
      at >= 0,
      `no row ${expected.join(' | ')} in ${this.rows.map((row) => row?.cells.join(' | ')).join('; ')}`,
    );
    this.rows[at] = undefined;
  }

  /** The first row that is left with this text in this column, by the names of its columns. */
  take(expected: Readonly<Record<string, Expected>>): Readonly<Record<string, string>> {
    const row = this.rows.find((one) => one !== undefined && has(one, expected));
    this.row(expected);
    return Object.fromEntries(row!.head.map((name, index) => [name, row!.cells[index]!]));
  }

  /** The first row that is left with these texts in the columns of these names. */
  row(expected: Readonly<Record<string, Expected>>): void {
    const at = this.rows.findIndex((row) => row !== undefined && has(row, expected));
    const alike = this.rows.filter(
      (row) => row !== undefined && has(row, Object.fromEntries(Object.entries(expected).slice(0, 1))),
    );
    const found = alike.map((row) => row!.cells.join(' | ')).join('; ');
    assert.ok(
      at >= 0,
      `no row ${JSON.stringify(Object.entries(expected).map(([name, text]) => `${name}: ${text}`))}, but ${found}`,
    );
    this.rows[at] = undefined;
  }

  /** Nothing that is left has a number, but what fits these. */
  rest(...known: RegExp[]): void {
    const all = [...known, ...always];
    const isOpen = (text: string | undefined) =>
      text !== undefined && /\d/.test(text) && !all.some((one) => one.test(text));
    const rows = this.rows.flatMap((row) => (row?.cells.some(isOpen) ? [row.cells.join(' | ')] : []));
    assert.deepEqual([...this.lines.filter(isOpen), ...rows], []);
  }
}

/** Choices of a time, moments, ages, and times that were measured. */
const always = [
  /^(?:15 minutes|1 hour|24 hours|7 days|30 days|90 days)$/,
  /^(?:[A-Z][a-z]{2} \d+(?:, \d\d:\d\d)?|\d\d:\d\d(?::\d\d)?)$/,
  /^\d+ (?:seconds?|minutes?|hours?|days?) ago$/,
  /^[\d.]+ m?s(?: · [\d.]+ m?s)?$/,
  /^p95 [\d.]+ m?s · p99 [\d.]+ m?s$/,
  /^95 of 100 within [\d.]+ m?s$/,
];

const isText = (found: string | undefined, text: Expected) =>
  found !== undefined && (typeof text === 'string' ? found === text : text.test(found));

const has = ({ head, cells }: Row, expected: Readonly<Record<string, Expected>>) =>
  Object.entries(expected).every(([name, text]) => isText(cells[head.indexOf(name)], text));

/** Goes to a page as by a link, and reads it until it is as expected. */
export async function readPage(page: Page, path: string, check: (reading: Reading) => void): Promise<void> {
  if (page.url() === 'about:blank') await page.goto(path);
  else await page.evaluate(`__TSR_ROUTER__.history.push(${JSON.stringify(path)})`);
  let failure: unknown;
  const isRight = async () => {
    try {
      check(new Reading((await page.evaluate(read)) as Text));
      return true;
    } catch (error) {
      failure = error;
      return false;
    }
  };
  await until(path, isRight).catch(() => {
    throw new Error(`${path}: ${failure instanceof Error ? failure.message : failure}`);
  });
}
