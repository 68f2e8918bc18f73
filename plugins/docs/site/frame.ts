/** The frame of the pages, in four languages: name, search, list of pages, foot. Pure. */

import { frameLanguages, type Language } from '../config.ts';
import de from '../texts/de.json' with { type: 'json' };
import en from '../texts/en.json' with { type: 'json' };
import ja from '../texts/ja.json' with { type: 'json' };
import zh from '../texts/zh.json' with { type: 'json' };
import { escapeHtml as esc, type Section } from './markdown.ts';
import type { Entry } from './search.ts';

export type Texts = typeof en;
export const textsOf: Readonly<Record<Language, Texts>> = { en, de, ja, zh };

export interface NavEntry {
  readonly path: string;
  readonly title: string;
  readonly group: 'begin' | 'rules' | 'own' | 'clients' | 'models';
}

interface Look {
  readonly logo: string;
  readonly favicon: string;
  readonly legal: { readonly terms?: string; readonly imprint?: string };
  /** Addresses of the style sheets and scripts. */
  readonly styles: readonly string[];
  readonly scripts: { readonly scheme: string; readonly page: string };
  readonly hasConsole: boolean;
}

/** Who reads, as the head of the page shows it. */
export interface ReaderView {
  readonly name: string;
  readonly balance: string | undefined;
  /** Name and first characters of the key that was used last. */
  readonly key: { readonly name: string; readonly prefix: string } | undefined;
}

export interface FrameParts {
  readonly language: Language;
  /** Language of the text. */
  readonly textLanguage: Language;
  readonly gateway: string;
  readonly look: Look;
  readonly title: string;
  /** The page's address below `/docs/`; undefined: an answer that is no page, such as results. */
  readonly path: string | undefined;
  readonly html: string;
  readonly sections: readonly Section[];
  readonly nav: readonly NavEntry[];
  readonly reader: ReaderView | undefined;
  readonly searched?: string;
}

const inWords = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);

export function pageHtml(parts: FrameParts): string {
  const { language, gateway, look, title, path, reader } = parts;
  const texts = textsOf[language];
  const shown = path === '' ? gateway : `${title} · ${gateway}`;
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${esc(shown)}</title>
<link rel="icon" href="${esc(look.favicon)}">
${look.styles.map((style) => `<link rel="stylesheet" href="${esc(style)}">`).join('\n')}
${path === undefined ? '' : `<link rel="alternate" type="text/markdown" href="${esc(markdownAddress(path))}">`}
<script src="${esc(look.scripts.scheme)}"></script>
<script type="module" src="${esc(look.scripts.page)}"></script>
</head>
<body data-copy="${esc(texts.copy)}" data-copied="${esc(texts.copied)}" data-none="${esc(texts.noResults)}">
<a class="skip" href="#content">${esc(texts.toContent)}</a>
${header(parts, texts)}
${reader === undefined ? '' : readerBar(reader, texts)}
<div class="columns">
${navigation(parts, texts)}
<main id="content" tabindex="-1" lang="${parts.textLanguage}">
${parts.html}
${path === undefined ? '' : pageFoot(parts, texts)}
</main>
${contents(parts, texts)}
</div>
${footer(look, texts)}
</body>
</html>
`;
}

const address = (path: string) => `/docs/${path}`;
export const markdownAddress = (path: string): string => address(path === '' ? 'index.md' : `${path}.md`);

function header({ gateway, look, searched = '', language, path, reader }: FrameParts, texts: Texts): string {
  const languages = frameLanguages
    .map((one) => {
      const name = new Intl.DisplayNames([one], { type: 'language' }).of(one) ?? one;
      const current = one === language ? ' aria-current="true"' : '';
      return `<a href="${esc(address(path ?? ''))}?lang=${one}" lang="${one}" hreflang="${one}"${current}>${esc(name)}</a>`;
    })
    .join('');
  const wayIn = reader === undefined ? ['/console/sign-in', texts.signIn] : ['/console/', texts.console];
  return `<header>
<a class="brand" href="/docs/"><img src="${esc(look.logo)}" alt="" height="26"><span>${esc(gateway)}</span></a>
<form class="search" role="search" action="/docs/search"><input type="search" name="q" value="${esc(searched)}" placeholder="${esc(texts.search)}" aria-label="${esc(texts.search)}" autocomplete="off"><div class="results" role="status" hidden></div></form>
<details class="menu"><summary>${esc(texts.language)}</summary><div>${languages}</div></details>
<button class="scheme" type="button" hidden aria-label="${esc(texts.colours)}" title="${esc(texts.colours)}">◐</button>
${look.hasConsole ? `<a class="in" href="${wayIn[0]}">${esc(wayIn[1]!)}</a>` : ''}
</header>`;
}

function readerBar({ name, balance, key }: ReaderView, texts: Texts): string {
  const facts = [
    `<span>${esc(inWords(texts.signedInAs, { name }))}</span>`,
    ...(balance === undefined ? [] : [`<span>${esc(texts.balance)}: <b>$${esc(balance)}</b></span>`]),
    ...(key === undefined
      ? []
      : [`<span>${esc(texts.yourKey)}: <b>${esc(key.name)}</b> <code>${esc(key.prefix)}…</code></span>`]),
  ];
  return `<p class="reader">${facts.join('')}</p>`;
}

function navigation({ nav, path, language }: FrameParts, texts: Texts): string {
  const groups = (['begin', 'rules', 'own'] as const).map((group) => {
    const entries = nav.filter((entry) => entry.group === group);
    if (entries.length === 0) return '';
    const items = entries.map((entry) => {
      const current = entry.path === path ? ' aria-current="page"' : '';
      const inner = innerItems(entry, path, nav);
      return `<li><a href="${esc(address(entry.path))}"${current}>${esc(entry.title)}</a>${inner}</li>`;
    });
    return `<p>${esc(texts.groups[group])}</p><ul>${items.join('')}</ul>`;
  });
  return `<nav tabindex="0" lang="${language}" aria-label="${esc(texts.menu)}"><details class="pages"><summary>${esc(texts.menu)}</summary>${groups.join('')}</details></nav>`;
}

/** Below the lists of programs and models, while one of them is open. */
function innerItems({ path: list }: NavEntry, path: string | undefined, nav: readonly NavEntry[]): string {
  if (list === '' || path === undefined || !(path === list || path.startsWith(`${list}/`))) return '';
  const inner = nav.filter((entry) => entry.path.startsWith(`${list}/`));
  // There may be hundreds of models: only the open one is shown.
  const shown = list === 'models' ? inner.filter((entry) => entry.path === path) : inner;
  if (shown.length === 0) return '';
  const items = shown.map((entry) => {
    const current = entry.path === path ? ' aria-current="page"' : '';
    return `<li><a href="${esc(address(entry.path))}"${current}>${esc(entry.title)}</a></li>`;
  });
  return `<ul>${items.join('')}</ul>`;
}

function contents({ sections, language }: FrameParts, texts: Texts): string {
  const shown = sections.filter(({ level }) => level === 2);
  if (shown.length < 2) return '';
  const items = shown.map(({ id, title }) => `<li><a href="#${esc(encodeURIComponent(id))}">${esc(title)}</a></li>`);
  return `<aside lang="${language}"><p>${esc(texts.onThisPage)}</p><ul>${items.join('')}</ul></aside>`;
}

function pageFoot({ nav, path, language }: FrameParts, texts: Texts): string {
  const row = nav.filter(({ group }) => group !== 'clients' && group !== 'models');
  const at = row.findIndex((entry) => entry.path === path);
  const link = (entry: NavEntry | undefined, word: string, rel: string) =>
    entry === undefined
      ? ''
      : `<a rel="${rel}" href="${esc(address(entry.path))}">${esc(word)}: ${esc(entry.title)}</a>`;
  const ways = at === -1 ? '' : link(row[at - 1], texts.previous, 'prev') + link(row[at + 1], texts.next, 'next');
  return `<p class="foot" lang="${language}">${ways}<a href="${esc(markdownAddress(path!))}">${esc(texts.asMarkdown)}</a></p>`;
}

function footer({ legal }: Look, texts: Texts): string {
  const links = (['terms', 'imprint'] as const).flatMap((name) =>
    legal[name] === undefined ? [] : [`<a href="${esc(legal[name])}">${esc(texts[name])}</a>`],
  );
  return `<footer>${[...links, '<a href="/llms.txt">llms.txt</a>'].join('')}</footer>`;
}

export function resultsHtml(text: string, found: readonly Entry[], language: Language): string {
  const texts = textsOf[language];
  if (found.length === 0) return `<h1>${esc(texts.search)}</h1><p>${esc(inWords(texts.noResults, { text }))}</p>`;
  const items = found.map(
    ([link, page, heading, body]) =>
      `<li><a href="${esc(link)}">${esc(heading || page)}</a><small>${esc(page)}</small><p>${esc(body.slice(0, 160))}</p></li>`,
  );
  return `<h1>${esc(inWords(texts.searchResults, { text }))}</h1><ul class="found">${items.join('')}</ul>`;
}
