/** Styles, scripts and the mark of the pages, at addresses that change with what they hold. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type { Answer } from '../../../core/contract/message.ts';

interface Asset {
  readonly type: string;
  readonly body: string;
}

const css = 'text/css; charset=utf-8';
const script = 'text/javascript; charset=utf-8';
const read = (name: string) => readFileSync(new URL(`../assets/${name}`, import.meta.url), 'utf8');

/** The same as the gateway itself searches by; in a package the types are gone already. */
function searchScript(): string {
  const source = new URL('search.ts', import.meta.url);
  if (existsSync(source)) return stripTypeScriptTypes(readFileSync(source, 'utf8'));
  return readFileSync(new URL(import.meta.url.replace(/assets\.js$/, 'search.js')), 'utf8');
}

/** The command `connect` as one file (connect/build.ts), for machines without a checkout; undefined: it was not built. */
export function connectProgram(): string | undefined {
  const file = new URL('../dist/connect.cjs', import.meta.url);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

const readFiles = () =>
  new Map<string, Asset>([
    ['docs.css', { type: css, body: read('docs.css') }],
    ['docs.js', { type: script, body: read('docs.js') }],
    ['scheme.js', { type: script, body: read('scheme.js') }],
    ['search.js', { type: script, body: searchScript() }],
    ['mark.svg', { type: 'image/svg+xml', body: read('mark.svg') }],
  ]);

export class Assets {
  #files: ReadonlyMap<string, Asset> | undefined;
  #brand: Asset = { type: css, body: '' };

  /** The operator's colour; none: the product's own. */
  useShades(shades: readonly string[]): void {
    const rules = shades.length === 0 ? '' : `:root{--brand-fill:${shades[6]};--brand-link:${shades[4]}}`;
    this.#brand = { type: css, body: rules };
  }

  /** Files are read with the first page that somebody reads. */
  #find(name: string): Asset | undefined {
    if (name === 'brand.css') return this.#brand;
    this.#files ??= readFiles();
    return this.#files.get(name);
  }

  address(name: string): string {
    const { body } = this.#find(name)!;
    return `/docs/assets/${name}?${createHash('sha256').update(body).digest('hex').slice(0, 12)}`;
  }

  answer(name: string, isVersioned: boolean): Answer | undefined {
    const found = this.#find(name);
    return (
      found && {
        status: 200,
        headers: {
          'content-type': found.type,
          'cache-control': isVersioned ? 'public, max-age=31536000, immutable' : 'no-cache',
        },
        body: found.body,
      }
    );
  }
}
