/** The section `brand`: what makes the pages look like the operator's own. */
import { z } from '../../../core/contract/schema.ts';

const mostImage = 96 * 1024;
const mostText = 64 * 1024;

const isWebAddress = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** What a picture is given as, by how it begins. */
export function imageKind(text: string): 'svg' | 'data' | 'address' | undefined {
  if (/^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/i.test(text)) return 'svg';
  if (/^data:image\/(?:svg\+xml|png|jpeg|webp|x-icon);base64,[A-Za-z0-9+/]+={0,2}$/.test(text)) return 'data';
  return isWebAddress(text) ? 'address' : undefined;
}

const image = z
  .string()
  .max(mostImage, 'must be at most 96 KiB: name an address of it, or a smaller picture')
  .refine(
    (text) => text === '' || imageKind(text) !== undefined,
    'must be an https address, data:image/…;base64,…, or SVG such as ${file:logo.svg}',
  )
  .default('');

const legal = z.string().max(mostText, 'must be at most 64 KiB: name an address of it').default('');

export const brand = z
  .strictObject({
    logo: image.describe(
      'Picture beside the name: an https address, data:image/…;base64,…, or `${file:logo.svg}`. Set it to your own.',
    ),
    favicon: image.describe(
      'Picture of the browser tab, written like `logo`; empty: the logo. Set it where the logo is too wide.',
    ),
    accent: z
      .string()
      .regex(/^(?:#[0-9a-fA-F]{6})?$/, 'must be a colour such as #0a7d55')
      .default('')
      .describe(
        'Colour of buttons and links, such as #0a7d55; darker or paler where words could not be read. Set it to the colour of your brand.',
      ),
    terms: legal.describe(
      'Terms of use: an https address, or Markdown such as `${file:terms.md}`. Set it before strangers sign up.',
    ),
    imprint: legal.describe('Imprint, written like `terms`. Set it where the law asks for one.'),
  })
  .prefault({})
  .describe('Logo, colour and legal pages of the operator, on all pages and in mails.');

export type BrandConfig = z.output<typeof brand>;

/** An address to go to, or words to show; undefined: there is none. */
export function legalText(text: string): { readonly url: string } | { readonly markdown: string } | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  return isWebAddress(trimmed) ? { url: trimmed } : { markdown: trimmed };
}
