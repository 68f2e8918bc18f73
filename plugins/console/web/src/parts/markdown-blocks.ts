/** The part of Markdown that models write, as blocks: headings, lists, code, quotes, tables, paragraphs. Pure; no HTML comes through. */

export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'list'; readonly ordered: boolean; readonly items: readonly string[] }
  | { readonly kind: 'quote'; readonly text: string }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'rule' }
  | { readonly kind: 'paragraph'; readonly text: string };

// No form goes over a line more than once, however long it is: an answer is read again with each piece that arrives.
const fence = /^\s{0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const fenceEnd = /^\s*(`{3,}|~{3,})\s*$/;
const heading = /^(#{1,6})\s+(\S.*)$/;
const item = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const quote = /^\s{0,3}>\s?(.*)$/;
const rule = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const divider = /^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$/;

/** A block that is still being written is as whole as it is: a fence without an end is code to the end. */
export function blocksOf(text: string): readonly Block[] {
  const lines = text.split(/\r?\n/);
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const [block, next] = blockAt(lines, at);
    if (block !== undefined) blocks.push(block);
    at = next;
  }
  return blocks;
}

type Found = readonly [block: Block | undefined, next: number];

function blockAt(lines: readonly string[], at: number): Found {
  const line = lines[at]!;
  if (line.trim() === '') return [undefined, at + 1];
  const opening = fence.exec(line);
  if (opening !== null) return codeAt(lines, at, opening[1]!, opening[2]!.trim());
  const titled = heading.exec(line);
  if (titled !== null) return [{ kind: 'heading', level: titled[1]!.length, text: titleOf(titled[2]!) }, at + 1];
  if (rule.test(line)) return [{ kind: 'rule' }, at + 1];
  if (quote.test(line)) {
    const end = endOf(lines, at, (each) => quote.test(each));
    const text = lines.slice(at, end).map((each) => quote.exec(each)![1]!);
    return [{ kind: 'quote', text: text.join('\n') }, end];
  }
  if (item.test(line)) return listAt(lines, at);
  if (line.includes('|') && divider.test((lines[at + 1] ?? '').trim())) return tableAt(lines, at);
  const end = endOf(lines, at + 1, (each) => each.trim() !== '' && !starts(each));
  return [{ kind: 'paragraph', text: lines.slice(at, end).join('\n') }, end];
}

/** Without the marks that may close a heading. */
function titleOf(text: string): string {
  let end = text.length;
  while (text[end - 1] === '#') end--;
  return text.slice(0, end).trimEnd() || text;
}

const starts = (line: string) => [fence, heading, item, quote, rule].some((form) => form.test(line));

function endOf(lines: readonly string[], from: number, goesOn: (line: string) => boolean): number {
  let end = from;
  while (end < lines.length && goesOn(lines[end]!)) end++;
  return end;
}

function codeAt(lines: readonly string[], at: number, mark: string, language: string): Found {
  const end = endOf(lines, at + 1, (each) => !(fenceEnd.test(each) && each.trim().startsWith(mark)));
  return [{ kind: 'code', language, text: lines.slice(at + 1, end).join('\n') }, end + 1];
}

function listAt(lines: readonly string[], at: number): Found {
  const ordered = item.exec(lines[at]!)![1] !== undefined;
  const items: string[] = [];
  let next = at;
  for (; next < lines.length; next++) {
    const line = lines[next]!;
    const found = item.exec(line);
    if (found !== null) items.push(found[2]!);
    else if (/^\s{2,}\S/.test(line)) items[items.length - 1] += `\n${line.trim()}`;
    else break;
  }
  return [{ kind: 'list', ordered, items }, next];
}

function tableAt(lines: readonly string[], at: number): Found {
  const end = endOf(lines, at + 2, (each) => each.includes('|') && each.trim() !== '');
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => cell.trim());
  return [{ kind: 'table', head: cells(lines[at]!), rows: lines.slice(at + 2, end).map(cells) }, end];
}

export interface Span {
  readonly kind: 'text' | 'code' | 'strong' | 'em' | 'link';
  readonly text: string;
  readonly href?: string;
}

const inline = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^[\]\n]+)\]\((https?:\/\/[^\s)]{1,2000})\)/g;

/** Code, bold, italics and links to web pages; everything else is text. */
export function spansOf(text: string): readonly Span[] {
  const spans: Span[] = [];
  let end = 0;
  for (const match of text.matchAll(inline)) {
    if (match.index > end) spans.push({ kind: 'text', text: text.slice(end, match.index) });
    const [whole, code, strong, em, label, href] = match;
    if (code !== undefined) spans.push({ kind: 'code', text: code });
    else if (strong !== undefined) spans.push({ kind: 'strong', text: strong });
    else if (em !== undefined) spans.push({ kind: 'em', text: em });
    else spans.push({ kind: 'link', text: label!, href: href! });
    end = match.index + whole.length;
  }
  if (end < text.length) spans.push({ kind: 'text', text: text.slice(end) });
  return spans;
}
