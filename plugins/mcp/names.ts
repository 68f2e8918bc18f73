/** Names of tools as clients see them, and which tools a request may use. Pure. */
import { hash } from 'node:crypto';
import { isLike } from '../../core/tools/wildcard.ts';
import type { Who } from './connect/owner.ts';

const longestName = 64;
const hashLength = 8;

/** `server__tool`, in the characters and the length that every model's vendor takes; a changed name ends with a digest of the tool's own. */
export function shownName(server: string, name: string): string {
  const plain = `${server}__${name}`;
  const clean = plain.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (clean === plain && plain.length <= longestName) return plain;
  const digest = hash('sha256', plain).slice(0, hashLength);
  return `${clean.slice(0, longestName - hashLength - 1)}_${digest}`;
}

/** One list of what may be used. */
export class Allowed {
  readonly #patterns: readonly (readonly [server: string, tool: string])[];
  readonly #names: ReadonlySet<string>;

  /** Words: `server/pattern`, the name of a bundle or a server, or a tool's whole name. */
  constructor(words: Iterable<string>, bundles: Readonly<Record<string, readonly string[]>>) {
    const all = [...words].flatMap((word) => (Object.hasOwn(bundles, word) ? bundles[word]! : [word]));
    this.#patterns = all.map((word) => {
      const slash = word.indexOf('/');
      return slash < 0 ? [word, '*'] : [word.slice(0, slash), word.slice(slash + 1)];
    });
    this.#names = new Set(all);
  }

  tool(server: string, name: string): boolean {
    if (this.#names.has(shownName(server, name))) return true;
    return this.#patterns.some(([of, tool]) => isLike(of, server) && isLike(tool, name));
  }

  /** All that the server has: where this is so, its resources are offered too. */
  whole(server: string): boolean {
    return this.#patterns.some(([of, tool]) => tool === '*' && isLike(of, server));
  }
}

/** What every one of several lists allows. */
export class View {
  /** For whom. */
  readonly who: Who;
  readonly #lists: readonly Allowed[];

  constructor(lists: readonly Allowed[], who: Who) {
    this.#lists = lists;
    this.who = who;
  }

  tool(server: string, name: string): boolean {
    return this.#lists.every((list) => list.tool(server, name));
  }

  whole(server: string): boolean {
    return this.#lists.every((list) => list.whole(server));
  }
}

/** `server+uri`: an address of a resource that names its server, and is still a URI. */
export const shownUri = (server: string, uri: string): string => `${server}+${uri}`;

/** The parts of such an address. */
export function uriParts(uri: string): readonly [server: string, uri: string] | undefined {
  const plus = uri.indexOf('+');
  return plus <= 0 ? undefined : [uri.slice(0, plus), uri.slice(plus + 1)];
}
