/** The built pages: one page for every address, files beside it, compressed beforehand. */

import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Clock, Random } from '../../core/contract/host-tools.ts';
import type { Answer, Headers } from '../../core/contract/message.ts';
import { table } from '../../core/contract/table.ts';
import { accepts } from '../common/kit/pages/compress.ts';
import { pagePolicy } from '../common/kit/pages/headers.ts';
import type { Brand } from './brand/brand.ts';

const mediaTypes: Readonly<Record<string, string>> = table({
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
});
const nonceMark = '__CSP_NONCE__';
const lookAgainMs = 1_000;
const mostFiles = 2_000;

const notBuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Console</title>
<p>The pages of this console are not built. Run <code>npm ci</code>, or <code>npm run build</code>, and come back.</p>
<p>The API stands at <code>/console/api</code>.</p></html>
`;

export interface FilesOptions {
  /** Folder of the build, with a slash at its end. */
  readonly folder: URL;
  readonly mediaOrigins: readonly string[];
  readonly brand: Brand;
  readonly clock: Clock;
  readonly random: Random;
}

export class Files {
  readonly #options: FilesOptions;
  #names: ReadonlySet<string> = new Set();
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  /** `path` begins behind `/console/`. */
  async answer(path: string, acceptEncoding: string | undefined): Promise<Answer> {
    const own = this.#options.brand.answer(path);
    if (own !== undefined) return own;
    const isFile = path.includes('.');
    if (isFile && (await this.#has(path)) && !path.endsWith('.html')) return this.#file(path, acceptEncoding);
    if (isFile) return { status: 404, headers: { 'content-type': 'text/plain' }, body: 'There is no such file.\n' };
    return this.#page();
  }

  async #page(): Promise<Answer> {
    const { folder, random, brand } = this.#options;
    const mediaOrigins = [...this.#options.mediaOrigins, ...brand.origins];
    const headers: Headers = { 'content-type': mediaTypes['.html']!, 'cache-control': 'no-store' };
    if (!(await this.#has('index.html'))) {
      const policy = pagePolicy(undefined, mediaOrigins);
      return { status: 503, headers: { ...headers, 'content-security-policy': policy }, body: notBuilt };
    }
    const text = await readFile(new URL('index.html', folder), 'utf8');
    const nonce = text.includes(nonceMark) ? random.bytes(16).toString('base64url') : undefined;
    headers['content-security-policy'] = pagePolicy(nonce, mediaOrigins);
    return {
      status: 200,
      headers,
      body: branded(nonce === undefined ? text : text.replaceAll(nonceMark, nonce), brand, nonce),
    };
  }

  async #file(path: string, acceptEncoding = ''): Promise<Answer> {
    const { folder } = this.#options;
    const encoding = [
      { name: 'br', ending: '.br' },
      { name: 'gzip', ending: '.gz' },
    ].find(({ name, ending }) => accepts(acceptEncoding, name) && this.#names.has(path + ending));
    const body = await readFile(new URL(path + (encoding?.ending ?? ''), folder));
    return {
      status: 200,
      headers: {
        'content-type': mediaTypes[extname(path)] ?? 'application/octet-stream',
        // The build puts a hash of the content into names under assets/.
        'cache-control': path.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'public, max-age=300',
        vary: 'accept-encoding',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding.name }),
      },
      body,
    };
  }

  /** Names are looked up in a list of existing files: no other can be requested. */
  async #has(name: string): Promise<boolean> {
    if (this.#names.has(name)) return true;
    const now = this.#options.clock.monotonic();
    if (now - this.#lookedAt < lookAgainMs) return false;
    this.#lookedAt = now;
    const found = await readdir(this.#options.folder, { recursive: true }).catch(() => []);
    this.#names = new Set(found.slice(0, mostFiles).map((file) => file.replaceAll('\\', '/')));
    return this.#names.has(name);
  }
}

/** The operator's colours are there before the first paint. */
function branded(page: string, { css, favicon }: Brand, nonce: string | undefined): string {
  const style = css === '' ? '' : `<style${nonce === undefined ? '' : ` nonce="${nonce}"`}>${css}</style>`;
  const icon = favicon === undefined ? '' : `<link rel="icon" href="${escaped(favicon)}" />`;
  const head = icon === '' ? page : page.replace(/<link rel="icon"[^>]*>/, () => icon);
  return style === '' ? head : head.replace('</head>', () => `${style}</head>`);
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
