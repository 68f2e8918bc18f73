/** Markdown as the pages have it: written with every value escaped, and rendered as HTML that no text can break out of. */
import type { Token } from 'markdown-it';

// ---------------------------------------------------------------------------------------------------------------- writing

/** A text from elsewhere, such as a model's name, as plain words of a paragraph or a table. */
export function plain(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line
    .replace(/[\\`*_{}[\]<>#~&!]/g, '\\$&')
    .replace(/^(?:[-+=]|\d+[.)])/, (mark) => mark.replace(/.$/, '\\$&'));
}

/** The same as code, whatever backticks it has. */
export function code(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const longest = Math.max(0, ...Array.from(line.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = /^`|`$/.test(line) || line === '' ? ' ' : '';
  return `${fence}${pad}${line}${pad}${fence}`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => text.replaceAll('|', '\\|').replace(/\s*\n\s*/g, ' ');
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');
}

/** A block of code; `title`: where it is kept, or what it is for. */
export function fenced(text: string, language: string, title = ''): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/^\s*(`{3,})/gm), ([, run]) => run!.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}${title === '' ? '' : ` ${title.replace(/[`\s]+/g, ' ')}`}\n${text}\n${fence}`;
}

/** Part of an address that stands in Markdown too, where brackets would end a link and entities mean signs. Slashes stay. */
export const addressOf = (name: string): string =>
  encodeURI(name).replace(/[?#()'*!&]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** An argument of a POSIX shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

// -------------------------------------------------------------------------------------------------------------- rendering

export interface Section {
  /** The anchor to a heading, or to a table row that begins with a word of code; empty: the page's beginning. */
  readonly id: string;
  readonly title: string;
  readonly level: number;
  readonly text: string;
}

export interface Rendered {
  readonly html: string;
  readonly sections: readonly Section[];
}

export type Renderer = (markdown: string) => Rendered;

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** The library is loaded with the first page that somebody reads. */
export async function openRenderer(): Promise<Renderer> {
  const { default: Library } = await import('markdown-it');
  // No HTML of a text comes through, and the library refuses links that run something.
  const library = new Library({ html: false, linkify: false, typographer: false });
  const { rules } = library.renderer;
  rules.table_open = () => '<div class="wide" tabindex="0"><table>\n';
  rules.table_close = () => '</table></div>\n';
  rules.fence = (tokens, index) => codeBlock(tokens[index]!);
  rules.code_block = (tokens, index) => codeBlock(tokens[index]!);
  return (markdown) => {
    const tokens = library.parse(markdown, {});
    const sections = sectionsOf(tokens);
    for (const token of tokens) tidy(token);
    return { html: library.renderer.render(tokens, library.options, {}), sections };
  };
}

function codeBlock({ info, content }: Token): string {
  const [language = '', ...rest] = info.trim().split(/\s+/);
  const title = rest.join(' ');
  const caption = title === '' ? '' : `<figcaption>${escapeHtml(title)}</figcaption>`;
  const text = escapeHtml(content.replace(/\n$/, ''));
  return `<figure class="code">${caption}<pre tabindex="0"><code data-language="${escapeHtml(language)}">${text}</code></pre></figure>\n`;
}

/** The policy of the pages allows no style attributes; links that lead elsewhere say so. */
function tidy(token: Token): void {
  const style = token.attrGet('style');
  if (style !== null) {
    token.attrs = token.attrs!.filter(([name]) => name !== 'style');
    token.attrJoin('class', String(style).replace('text-align:', 'to-'));
  }
  if (token.type === 'link_open' && /^https?:/i.test(String(token.attrGet('href') ?? '')))
    token.attrSet('rel', 'noreferrer noopener');
  for (const child of token.children ?? []) tidy(child);
}

const textOf = (token: Token | undefined): string =>
  (token?.children ?? []).map(({ type, content }) => (/^(?:text|code_inline)$/.test(type) ? content : ' ')).join('');

type Open = { -readonly [Name in keyof Section]: Section[Name] };

/** Gives headings and rows their ids, and gathers what stands below each. */
function sectionsOf(tokens: readonly Token[]): Section[] {
  const used = new Set<string>();
  const sections: Open[] = [];
  let heading: Open = { id: '', title: '', level: 1, text: '' };
  let current = heading;
  for (const [index, token] of tokens.entries()) {
    const found = beginning(tokens, index);
    if (found === undefined) {
      if (token.type === 'table_close') current = heading;
      current.text += bodyText(tokens, index);
      continue;
    }
    const id = found.level === 1 ? '' : anchorOf(found.title, used);
    if (id !== '') token.attrSet('id', id);
    current = { id, ...found, text: '' };
    sections.push(current);
    if (token.type === 'heading_open') heading = current;
  }
  return sections.map((section) => ({ ...section, text: section.text.replace(/\s+/g, ' ').trim() }));
}

function bodyText(tokens: readonly Token[], index: number): string {
  const token = tokens[index]!;
  if (token.type === 'fence') return `${token.content} `;
  return token.type === 'inline' && tokens[index - 1]?.type !== 'heading_open' ? `${textOf(token)} ` : '';
}

/** Where a section begins: a heading, or a table row that begins with one word of code. */
function beginning(tokens: readonly Token[], index: number): Pick<Section, 'title' | 'level'> | undefined {
  const token = tokens[index]!;
  if (token.type === 'heading_open') return { title: textOf(tokens[index + 1]), level: Number(token.tag.slice(1)) };
  if (token.type !== 'tr_open') return undefined;
  const cell = tokens[index + 2]?.children ?? [];
  const isNamed = cell.length === 1 && cell[0]!.type === 'code_inline' && /^[\w.-]+$/.test(cell[0]!.content);
  return isNamed ? { title: cell[0]!.content, level: 7 } : undefined;
}

/** Letters and figures of any script; the second of two equal ones has a number. */
function anchorOf(title: string, used: Set<string>): string {
  const plainId =
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_]+/gu, '-')
      .replace(/^-|-$/g, '') || 'section';
  let id = plainId;
  for (let number = 2; used.has(id); number += 1) id = `${plainId}-${number}`;
  used.add(id);
  return id;
}
