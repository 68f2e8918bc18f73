/** All pages as one kind of reader sees them, each rendered when it is first read. */
import type { Language } from '../config.ts';
import type { Facts } from './facts.ts';
import { type NavEntry, textsOf } from './frame.ts';
import type { Rendered, Renderer } from './markdown.ts';
import type { Page } from './pages.ts';
import type { Entry } from './search.ts';

export interface OpenPage extends Rendered {
  readonly page: Page;
  readonly title: string;
  readonly markdown: string;
}

export interface PageSetParts {
  readonly facts: Facts;
  readonly pages: readonly Page[];
  readonly language: Language;
  readonly render: Renderer;
}

export class PageSet {
  readonly #parts: PageSetParts;
  readonly #byPath: ReadonlyMap<string, Page>;
  readonly #open = new Map<string, OpenPage | undefined>();
  #nav: NavEntry[] | undefined;
  #entries: Promise<Entry[]> | undefined;

  constructor(parts: PageSetParts) {
    this.#parts = parts;
    this.#byPath = new Map(parts.pages.map((page) => [page.path, page]));
  }

  open(path: string): OpenPage | undefined {
    if (!this.#open.has(path)) this.#open.set(path, this.#render(path));
    return this.#open.get(path);
  }

  #render(path: string): OpenPage | undefined {
    const page = this.#byPath.get(path);
    const text = page?.markdown();
    if (page === undefined || text === undefined) return undefined;
    const markdown = `${text.trim()}\n`;
    const rendered = this.#parts.render(markdown);
    const own = rendered.sections.find(({ level }) => level === 1)?.title;
    return { page, markdown, ...rendered, title: page.title ?? own ?? page.path };
  }

  /** What the lists call a page. */
  #titleOf(page: Page): string | undefined {
    const words = textsOf[this.#parts.language].pages as Readonly<Record<string, string>>;
    return page.title ?? (page.name === undefined ? this.open(page.path)?.title : words[page.name]);
  }

  nav(): readonly NavEntry[] {
    this.#nav ??= this.#parts.pages.flatMap((page) => {
      const title = this.#titleOf(page);
      return title === undefined ? [] : [{ path: page.path, title, group: page.group }];
    });
    return this.#nav;
  }

  /** Made once; other work of the process comes between the pages. */
  entries(): Promise<Entry[]> {
    this.#entries ??= this.#makeEntries();
    return this.#entries;
  }

  async #makeEntries(): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (const page of this.#parts.pages) {
      // Models are many and short: their facts stand for their pages.
      if (page.group === 'models') continue;
      await new Promise((resolve) => setImmediate(resolve));
      entries.push(...this.#entriesOf(page));
    }
    const models = this.#parts.pages.filter(({ group }) => group === 'models');
    const facts = this.#parts.facts.models;
    return entries.concat(
      models.map(({ path }, index) => {
        const { displayName, id, ownedBy, kind } = facts[index]!;
        return [`/docs/${path}`, displayName, '', `${id} ${ownedBy} ${kind}`];
      }),
    );
  }

  #entriesOf(page: Page): Entry[] {
    const title = this.#titleOf(page) ?? '';
    return (this.open(page.path)?.sections ?? []).map((section) => [
      `/docs/${page.path}${section.id === '' ? '' : `#${encodeURIComponent(section.id)}`}`,
      title,
      section.id === '' ? '' : section.title,
      // The list of models is found by their pages.
      page.name === 'models' ? '' : section.text,
    ]);
  }
}
