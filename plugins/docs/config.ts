/** The section `docs`: who may read the pages, and the operator's own ones. */
import { z } from '../../core/contract/schema.ts';

const mostText = 256 * 1024;
const languages = ['en', 'de', 'ja', 'zh'] as const;
/** Languages of the frame; texts are English where no other one is given. */
export type Language = (typeof languages)[number];
export const frameLanguages: readonly Language[] = languages;

const readers = ['all', 'signed_in', 'off'] as const;
const text = z.string().min(1).max(mostText, 'must be at most 256 KiB');

const page = z.strictObject({
  title: z
    .string()
    .max(80)
    .default('')
    .describe(
      'What lists of pages call it; empty: the first heading of the text. Set it where the heading is too long.',
    ),
  text: z
    .union([text, z.partialRecord(z.enum(languages), text)])
    .describe(
      'Markdown, such as `${file:support.md}`, or one text for each language. Write {{address}} and {{model}} for what the gateway fills in.',
    ),
});

export const config = z.strictObject({
  access: z
    .enum(readers)
    .default('all')
    .describe(
      "Who reads the pages: all, signed_in (people in the console, and programs with a key), or off: no one. Change it for a company's own gateway.",
    ),
  prices: z
    .enum(readers)
    .default('all')
    .describe(
      'Who sees prices, written like `access`; without them models are listed all the same. Change it where prices are agreed one by one.',
    ),
  name: z
    .string()
    .max(60)
    .default('')
    .describe(
      "What the pages call this gateway; empty: as the console does, else its name. Set it to your product's name.",
    ),
  origin: z
    .string()
    .refine(
      (address) => address === '' || (URL.canParse(address) && new URL(address).origin === address),
      'must be scheme and host, such as https://gateway.example',
    )
    .default('')
    .describe(
      'Address that the examples name, such as https://gateway.example; empty: that of the console, else as each request says. Set it behind TLS where there is no console.',
    ),
  pages: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9-]{0,40}$/, 'must be a short name of small letters, as in an address'),
      page,
    )
    .default({})
    .describe(
      'Your own pages by the last part of their address, such as `support`; one with the name of a shipped page replaces it, also in one language alone. Add what your clients ask you.',
    ),
});

export type DocsConfig = z.output<typeof config>;
export type Readers = (typeof readers)[number];
