/** Text of HTML: without tags, scripts and styles, with lines where blocks end. One pass, whatever the input. Pure. */
import { table } from '../../../core/contract/table.ts';

const silent = new Set(['script', 'style', 'noscript', 'template', 'svg', 'head']);
const blocks =
  /^(?:address|article|aside|blockquote|br|dd|div|dl|dt|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|table|tr|ul)$/;
const cells = /^t[dh]$/;
const entities: Readonly<Record<string, string>> = table({
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
});

export function readHtml(html: string): string {
  const parts: string[] = [];
  // Small and large letters count the same in names, and texts must keep their places.
  const lower = lowered(html);
  for (let at = 0; at < html.length; ) {
    const tag = html.indexOf('<', at);
    if (tag === -1) {
      parts.push(withEntities(html.slice(at)));
      break;
    }
    parts.push(withEntities(html.slice(at, tag)));
    at = afterTag(lower, tag, parts);
  }
  return parts
    .join('')
    .replaceAll(/[ \t\f\v\u00a0]+/g, ' ')
    .replaceAll(/ ?\n ?/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n');
}

/** Where the text behind a tag begins; what a reader sees of the tag is added to `parts`. */
function afterTag(lower: string, tag: number, parts: string[]): number {
  if (lower.startsWith('<!--', tag)) return behind(lower, '-->', tag + 4);
  const name = /^<\/?([a-z][a-z0-9]*)/.exec(lower.slice(tag, tag + 24))?.[1];
  if (name === undefined && lower[tag + 1] !== '!' && lower[tag + 1] !== '/' && lower[tag + 1] !== '?') {
    parts.push('<');
    return tag + 1;
  }
  if (name !== undefined && blocks.test(name)) parts.push('\n');
  else if (name !== undefined && cells.test(name)) parts.push(' ');
  const end = behind(lower, '>', tag + 1);
  const isOpening = lower[tag + 1] !== '/';
  if (name === undefined || !isOpening || !silent.has(name)) return end;
  return behind(lower, '>', behind(lower, `</${name}`, end));
}

/** Behind the next such word; the end of the text where there is none. */
function behind(text: string, word: string, from: number): number {
  const found = text.indexOf(word, from);
  return found === -1 ? text.length : found + word.length;
}

/** A to Z alone: other letters can become longer. */
const lowered = (text: string): string => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());

function withEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal, hexadecimal, name) => {
    if (name !== undefined) return entities[String(name).toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(String(hexadecimal), 16) : Number(decimal);
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : whole;
  });
}
