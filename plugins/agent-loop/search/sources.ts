/** The pages that a run has found, and where its answer cites them. Pure. */

import { markOf } from '../files/found.ts';
import type { NumberedHit } from '../files/nouns.ts';
import type { ToolDone } from '../talk.ts';
import type { Page } from './nouns.ts';

/** A link to a page that was found: its place in the text, in UTF-16 units, the end exclusive. */
export interface Cited {
  readonly start: number;
  readonly end: number;
  readonly page: Page;
}

/** A link of Markdown, or an address alone. */
const link = /\[[^\][\n]{0,400}\]\((https?:\/\/[^\s()<>]{1,2048})\)|https?:\/\/[^\s()<>[\]"'`]{1,2048}/g;

/** A mark of a text of a file: its place in the text, the end exclusive. */
export interface CitedFile {
  readonly start: number;
  readonly end: number;
  readonly hit: NumberedHit;
}

const mark = /【\d{1,6}†[^【】\n]{0,512}】/g;

export class Sources {
  readonly #pages = new Map<string, Page>();
  readonly #queries: string[] = [];
  /** Texts of files, by their marks. */
  readonly #hits = new Map<string, NumberedHit>();

  add(done: readonly ToolDone[]): void {
    for (const { found, files } of done) {
      for (const hit of files?.hits ?? []) this.#hits.set(markOf(hit), hit);
      if (found === undefined || found.error !== undefined) continue;
      this.#queries.push(found.query);
      for (const page of found.pages) if (!this.#pages.has(plain(page.url))) this.#pages.set(plain(page.url), page);
    }
  }

  get queries(): readonly string[] {
    return this.#queries;
  }

  get pages(): readonly Page[] {
    return [...this.#pages.values()];
  }

  /** Texts of files. */
  get hits(): readonly NumberedHit[] {
    return [...this.#hits.values()];
  }

  get isEmpty(): boolean {
    return this.#queries.length === 0 && this.#hits.size === 0;
  }

  /** In the order of the text. */
  cited(text: string): Cited[] {
    if (this.#pages.size === 0) return [];
    return [...text.matchAll(link)].flatMap((match): Cited[] => {
      const address = match[1] ?? match[0].replace(/[.,;:!?*]+$/, '');
      const page = this.#pages.get(plain(address));
      if (page === undefined) return [];
      return [{ start: match.index, end: match.index + (match[1] === undefined ? address : match[0]).length, page }];
    });
  }

  /** Marks of texts that were found, in the order of the text. */
  citedFiles(text: string): CitedFile[] {
    if (this.#hits.size === 0) return [];
    return [...text.matchAll(mark)].flatMap(({ 0: found, index }): CitedFile[] => {
      const hit = this.#hits.get(found);
      return hit === undefined ? [] : [{ start: index, end: index + found.length, hit }];
    });
  }
}

/** Models leave out or add the last slash. */
const plain = (url: string): string => url.replace(/\/$/, '');
