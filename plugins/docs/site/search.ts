/** Search over the pages: runs here and, without its types, in the browser. Pure; imports nothing. */

/** Address, title of the page, heading, text. */
export type Entry = readonly [address: string, page: string, heading: string, text: string];

const weights = { heading: 12, page: 6, text: 1 };
const mostResults = 20;

/** Small letters without accents. */
const folded = (text: string): string => text.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '');

/** Every word must begin a word of the entry; entries where it stands in a heading come first. */
export function find(entries: readonly Entry[], text: string): Entry[] {
  const words = folded(text)
    .split(/[\s/]+/u)
    .filter((word) => word !== '');
  if (words.length === 0) return [];
  return entries
    .map((entry) => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, mostResults)
    .map(({ entry }) => entry);
}

function scoreOf([, page, heading, body]: Entry, words: readonly string[]): number {
  const parts = [
    [folded(heading), weights.heading],
    [folded(page), weights.page],
    [folded(body), weights.text],
  ] as const;
  const scores = words.map((word) => Math.max(...parts.map(([part, weight]) => weight * placeOf(part, word))));
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score);
}

/** 3: the whole text, 2: the beginning of a word, 1: within one, 0: nowhere. */
function placeOf(text: string, word: string): number {
  if (text === word) return 3;
  let found = 0;
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!)) return 2;
    found = 1;
  }
  return found;
}
