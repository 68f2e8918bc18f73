/** The operator's own look as the pages get it: pictures with addresses, a style element, links, and the foot of mails. */
import { createHash } from 'node:crypto';
import type { Answer } from '../../../core/contract/message.ts';
import { type BrandConfig, imageKind, legalText } from './config.ts';
import { paletteOf } from './palette.ts';

const legalNames = ['terms', 'imprint'] as const;
export type LegalName = (typeof legalNames)[number];

export interface Brand {
  /** Address of the logo; undefined: the product's own mark. */
  readonly logo: string | undefined;
  readonly favicon: string | undefined;
  /** Origins that pictures come from. */
  readonly origins: readonly string[];
  /** Ten shades of the operator's colour; none: the product's own. */
  readonly shades: readonly string[];
  /** Rules of a style element; empty: the product's own colours. */
  readonly css: string;
  /** What each legal text is: an address, or Markdown that a page shows. */
  readonly legal: { readonly [Name in LegalName]: ReturnType<typeof legalText> };
  /** Answers `brand/logo` and `brand/favicon`. */
  answer(name: string): Answer | undefined;
}

interface Picture {
  readonly type: string;
  readonly body: Uint8Array;
}

export function brandOf(config: BrandConfig): Brand {
  const given = { logo: config.logo, favicon: config.favicon || config.logo };
  const kept = new Map<string, Picture>();
  const place = (name: keyof typeof given): string | undefined => {
    const kind = imageKind(given[name]);
    if (kind === undefined || kind === 'address') return given[name] || undefined;
    const picture = pictureOf(given[name], kind);
    kept.set(`brand/${name}`, picture);
    // A changed picture has another address, so that browsers may keep each.
    return `/console/brand/${name}?${createHash('sha256').update(picture.body).digest('hex').slice(0, 12)}`;
  };
  const [logo, favicon] = [place('logo'), place('favicon')];
  const shades = config.accent === '' ? [] : paletteOf(config.accent);
  return {
    logo,
    favicon,
    origins: [logo, favicon].flatMap((url) => (url?.startsWith('http') ? [new URL(url).origin] : [])),
    shades,
    css: cssOf(shades),
    legal: { terms: legalText(config.terms), imprint: legalText(config.imprint) },
    answer(name) {
      const found = kept.get(name);
      return found && { status: 200, headers: headersOf(found), body: found.body };
    },
  };
}

function pictureOf(text: string, kind: 'svg' | 'data'): Picture {
  if (kind === 'svg') return { type: 'image/svg+xml', body: Buffer.from(text.trim()) };
  const [head, data] = text.split(';base64,') as [string, string];
  return { type: head.slice('data:'.length), body: Buffer.from(data, 'base64') };
}

/** A picture that is opened by itself runs nothing. */
const headersOf = ({ type }: Picture) => ({
  'content-type': type,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'cache-control': 'public, max-age=31536000, immutable',
});

/** More exact than the library's own selectors, whichever comes first. */
function cssOf(shades: readonly string[]): string {
  if (shades.length === 0) return '';
  const rules = shades.map((shade, index) => `--mantine-color-iris-${index}:${shade}`);
  return `html:root[data-mantine-color-scheme]{${rules.join(';')}}`;
}

/** Where each legal text is, that there is. */
export function legalAddresses(legal: Brand['legal'], origin: string): { readonly [Name in LegalName]?: string } {
  const named = legalNames.flatMap((page) => {
    const text = legal[page];
    return text === undefined ? [] : [[page, 'url' in text ? text.url : `${origin}/console/legal/${page}`] as const];
  });
  return Object.fromEntries(named);
}

/** Below every mail: who sends it, and where the rest stands. */
export function mailFoot(name: string, origin: string, { legal }: Pick<Brand, 'legal'>): string {
  const links = Object.values(legalAddresses(legal, origin));
  return `\n-- \n${[name, ...(origin === '' ? [] : [origin]), ...links].join('\n')}\n`;
}
