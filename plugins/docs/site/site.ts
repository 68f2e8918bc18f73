/** Everything below `/docs/`, and `/llms.txt`: which page a request gets, in which form, language and view. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, ClientRequest } from '../../../core/contract/message.ts';
import { formatRatio } from '../../common/domain/money.ts';
import { type ConsoleLook, consoleSite } from '../../common/domain/pages/console-site.ts';
import { compressed } from '../../common/kit/pages/compress.ts';
import { commonHeaders } from '../../common/kit/pages/headers.ts';
import { originOf } from '../../common/kit/pages/origin.ts';
import { type DocsConfig, frameLanguages, type Language, type Readers } from '../config.ts';
import { Assets, connectProgram } from './assets.ts';
import { buyerOf, gatherFacts, type View } from './facts.ts';
import { type FrameParts, markdownAddress, pageHtml, resultsHtml, textsOf } from './frame.ts';
import { addressOf, escapeHtml, openRenderer, type Renderer } from './markdown.ts';
import { type OpenPage, PageSet } from './page-set.ts';
import { pagesOf } from './pages.ts';
import { type Reader, readerOf, readerView } from './readers.ts';
import { find } from './search.ts';

const mostSets = 24;
/** Prices may begin at a time, and models come and go with vendors' keys: pages are made again after so long. */
const keptMs = 30_000;
const languageCookie = 'docs-language';
const cookieSeconds = 31_536_000;

const html = 'text/html; charset=utf-8';
const markdown = 'text/markdown; charset=utf-8';

interface Asked {
  readonly request: ClientRequest;
  readonly reader: Reader | undefined;
  readonly look: ConsoleLook | undefined;
  readonly language: Language;
  readonly set: PageSet;
  readonly view: View;
}

export class DocsSite {
  readonly #host: Host;
  #config: DocsConfig;
  readonly #assets = new Assets();
  readonly #sets: LRUCache<string, PageSet>;
  #renderer: Promise<Renderer> | undefined;
  #program: string | undefined;

  constructor(host: Host, config: DocsConfig) {
    this.#host = host;
    this.#config = config;
    this.#sets = new LRUCache({ max: mostSets, ttl: keptMs, perf: { now: () => host.clock.monotonic() } });
  }

  /** Also where another section has changed: the pages are made of all of them. */
  use(config: DocsConfig): void {
    this.#config = config;
    this.#sets.clear();
  }

  /** undefined: the pages are off. */
  root(): string | undefined {
    return this.#config.access === 'off' ? undefined : '/docs/';
  }

  async answer({ request }: Exchange): Promise<Answer> {
    if (this.root() === undefined) throw unknownAddress();
    const look = this.#host.find(consoleSite)?.look();
    this.#assets.useShades(look?.shades ?? []);
    const answer = await this.#find(request, look);
    answer.headers = { ...commonHeaders(this.#address(request, look).startsWith('https:')), ...answer.headers };
    return finished(answer, request, policyOf(look));
  }

  async #find(request: ClientRequest, look: ConsoleLook | undefined): Promise<Answer> {
    const { path } = request;
    if (path === '/docs') return redirect('/docs/');
    const name = path === '/llms.txt' ? undefined : (request.params['*'] ?? '');
    if (name?.startsWith('assets/') === true) {
      const asset = this.#assets.answer(name.slice('assets/'.length), request.query.size > 0);
      if (asset === undefined) throw unknownAddress();
      return asset;
    }
    if (name === 'connect.cjs') return this.#connect();
    const reader = await readerOf(this.#host, request);
    if (this.#config.access === 'signed_in' && reader === undefined) return turnAway(look, request);
    const asked = await this.#ask(request, reader, look);
    const answer = name === undefined ? this.#overview(asked) : await this.#named(name, asked);
    answer.headers['cache-control'] = reader === undefined ? 'no-cache' : 'private, no-cache';
    answer.headers['vary'] = 'accept-language, cookie, authorization, x-api-key, x-goog-api-key';
    const chosen = request.query.get('lang');
    if (chosen === asked.language)
      return {
        ...answer,
        cookies: [`${languageCookie}=${chosen}; Path=/docs; Max-Age=${cookieSeconds}; SameSite=Lax`],
      };
    return answer;
  }

  /** For everybody, as the styles are: it asks for a key by itself. */
  #connect(): Answer {
    this.#program ??= connectProgram();
    if (this.#program === undefined)
      throw new GatewayError(
        'not_found',
        'This gateway was built without the program: its operator makes it by npm run build:connect.',
        { code: 'unknown_url' },
      );
    const headers = { 'content-type': 'text/javascript; charset=utf-8', 'cache-control': 'no-cache' };
    return { status: 200, headers, body: this.#program };
  }

  #address(request: ClientRequest, look: ConsoleLook | undefined): string {
    return originOf(this.#config.origin || (look?.origin ?? ''), request.headers['host']);
  }

  async #ask(request: ClientRequest, reader: Reader | undefined, look: ConsoleLook | undefined): Promise<Asked> {
    const language = languageOf(request);
    const isShown = (to: Readers) => to === 'all' || (to === 'signed_in' && reader !== undefined);
    const view: View = {
      name: this.#config.name || look?.name || this.#host.gateway,
      address: this.#address(request, look),
      buyer: await buyerOf(this.#host, reader?.accountId),
      isKnown: reader !== undefined,
      showsModels: reader !== undefined || look?.publishesModels !== false,
      showsPrices: isShown(this.#config.prices),
      hasConsole: look !== undefined,
    };
    const { plan, multiplier } = view.buyer;
    const key = JSON.stringify({ ...view, buyer: [plan, formatRatio(multiplier)], language });
    let set = this.#sets.get(key);
    if (set === undefined) {
      this.#renderer ??= openRenderer();
      const render = await this.#renderer;
      const facts = gatherFacts(this.#host, view);
      set = new PageSet({ facts, pages: pagesOf(facts, this.#config.pages, language), language, render });
      this.#sets.set(key, set);
    }
    return { request, reader, look, language, set, view };
  }

  async #named(name: string, asked: Asked): Promise<Answer> {
    const { set, request } = asked;
    if (name === 'search.json') return json(await set.entries());
    if (name === 'search') return this.#results(asked, request.query.get('q') ?? '');
    const path = addressOf(name);
    const page = set.open(path);
    if (page !== undefined) return ok(await this.#html(asked, { ...framed(page), path }), html);
    const ofMarkdown = name.endsWith('.md')
      ? set.open(name === 'index.md' ? '' : path.slice(0, -'.md'.length))
      : undefined;
    if (ofMarkdown !== undefined) return ok(withAddresses(ofMarkdown.markdown, asked.view.address), markdown);
    return this.#missing(asked);
  }

  async #html(
    { language, set, look, view, reader }: Asked,
    page: Pick<FrameParts, 'title' | 'html' | 'sections' | 'path' | 'textLanguage'> & { readonly searched?: string },
  ): Promise<string> {
    const mark = this.#assets.address('mark.svg');
    return pageHtml({
      ...page,
      language,
      gateway: view.name,
      nav: set.nav(),
      reader: reader && (await readerView(this.#host, reader)),
      look: {
        logo: look?.logo ?? mark,
        favicon: look?.favicon ?? mark,
        legal: look?.legal ?? {},
        styles: ['docs.css', 'brand.css'].map((name) => this.#assets.address(name)),
        scripts: { scheme: this.#assets.address('scheme.js'), page: this.#assets.address('docs.js') },
        hasConsole: look !== undefined,
      },
    });
  }

  async #results(asked: Asked, text: string): Promise<Answer> {
    const { language, set } = asked;
    const found = find(await set.entries(), text);
    const title = textsOf[language].search;
    const shown = resultsHtml(text, found, language);
    return ok(
      await this.#html(asked, {
        title,
        html: shown,
        sections: [],
        path: undefined,
        textLanguage: language,
        searched: text,
      }),
      html,
    );
  }

  async #missing(asked: Asked): Promise<Answer> {
    const { language } = asked;
    const { notFound: title, notFoundText } = textsOf[language];
    if (!/\btext\/html\b/.test(asked.request.headers['accept'] ?? '')) throw unknownAddress();
    const shown = `<h1>${escapeHtml(title)}</h1><p>${escapeHtml(notFoundText)}</p>`;
    const body = await this.#html(asked, { title, html: shown, sections: [], path: undefined, textLanguage: language });
    return { status: 404, headers: { 'content-type': html }, body };
  }

  /** https://llmstxt.org */
  #overview({ set, view }: Asked): Answer {
    const list = (groups: readonly string[]) =>
      set
        .nav()
        .filter(({ group }) => groups.includes(group))
        .map(({ path, title }) => `- [${title.replace(/[[\]\\]/g, '\\$&')}](${view.address}${markdownAddress(path)})`)
        .join('\n');
    const name = view.name.replace(/\s+/g, ' ');
    const parts = [
      `# ${name}`,
      `> One address and one key for many models, in the protocols of the official SDKs. Address: ${view.address}`,
      `## Pages\n\n${list(['begin', 'rules', 'own'])}`,
      `## Programs and libraries\n\n${list(['clients'])}`,
      `## Optional\n\n- [OpenAPI description](${view.address}/openapi.json)\n${list(['models'])}`,
    ];
    return ok(`${parts.join('\n\n').trim()}\n`, markdown);
  }
}

// --------------------------------------------------------------------------------------------------------------- answers

const ok = (body: string, type: string): Answer => ({ status: 200, headers: { 'content-type': type }, body });
const json = (value: unknown): Answer => ok(JSON.stringify(value), 'application/json');
const redirect = (location: string): Answer => ({ status: 308, headers: { location }, body: '' });
const unknownAddress = () => new GatewayError('not_found', 'There is no such page.', { code: 'unknown_url' });

function turnAway(look: ConsoleLook | undefined, { headers }: ClientRequest): Answer {
  if (look !== undefined && /\btext\/html\b/.test(headers['accept'] ?? ''))
    return { status: 302, headers: { location: '/console/sign-in', 'cache-control': 'no-store' }, body: '' };
  throw new GatewayError('unauthenticated', 'These pages are for clients: send a key, or sign in.', {
    code: 'invalid_api_key',
  });
}

const framed = (page: OpenPage) => ({
  title: page.title,
  html: page.html,
  sections: page.sections,
  textLanguage: page.page.language,
});

/** Links of the pages, for a reader that has the text alone. */
const withAddresses = (text: string, address: string): string =>
  text.replace(
    /\]\(\/docs\/([^\s()#]*)(#[^\s()]*)?\)/g,
    (_, path: string, anchor = '') => `](${address}${markdownAddress(path)}${anchor})`,
  );

function languageOf({ query, headers }: ClientRequest): Language {
  const isKnown = (name: string | undefined): name is Language => frameLanguages.some((one) => one === name);
  const asked = query.get('lang') ?? undefined;
  if (isKnown(asked)) return asked;
  const kept = new RegExp(`(?:^|;\\s*)${languageCookie}=(\\w+)`).exec(headers['cookie'] ?? '')?.[1];
  if (isKnown(kept)) return kept;
  const accepted = (headers['accept-language'] ?? '').split(',').map((one) => one.trim().slice(0, 2).toLowerCase());
  return accepted.find(isKnown) ?? 'en';
}

/** Own scripts and styles alone; pictures of the operator's brand from where it names them. */
function policyOf(look: ConsoleLook | undefined): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${["'self'", 'data:', ...(look?.pictureOrigins ?? [])].join(' ')}`,
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** With its tag, compressed, and without a body where the browser has it. */
async function finished(answer: Answer, request: ClientRequest, policy: string): Promise<Answer> {
  answer.headers['content-security-policy'] = policy;
  const body = answer.body as string;
  if (answer.status === 200) {
    const tag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    answer.headers['etag'] = tag;
    const known = (request.headers['if-none-match'] ?? '').split(',').map((one) => one.trim());
    if (known.includes(tag) || known.includes(tag.slice(2))) return { ...answer, status: 304, body: '' };
  }
  const small = await compressed(answer, request.headers['accept-encoding'] ?? '');
  return request.method === 'HEAD' ? { ...small, body: '' } : small;
}
