/** The notation of prices (classes, tiers, versions in time), parsed to a price book. Pure. */
import { createHash } from 'node:crypto';
import { count, z } from '../../core/contract/schema.ts';
import { type Ratio, zero } from '../common/domain/money.ts';
import { ratio, usd } from '../common/domain/money-schema.ts';
import {
  type Hours,
  type MediaTable,
  type PriceBook,
  type PriceTier,
  PriceVersion,
  type VersionOptions,
} from '../common/domain/prices.ts';
import { type Price, type UsageClass, usageClasses } from '../common/domain/usage.ts';
import { parseHours } from './hours.ts';

const perMillion = 'Unit: USD per million tokens.';
const classProse: Record<UsageClass, string> = {
  input: `Price of input text. Copy it from the vendor's price list. ${perMillion}`,
  cache_read: `Price of input that is read from a cache. Set it where the vendor has one. ${perMillion} Default: as input.`,
  cache_write_5m: `Price of input that is written to a cache for minutes. Set it where the vendor has one. ${perMillion} Default: as input.`,
  cache_write_1h: `Price of input that is written to a cache for an hour. Set it where the vendor has one. ${perMillion} Default: as cache_write_5m.`,
  input_audio: `Price of audio that goes in. Set it where the vendor has one. ${perMillion} Default: as input.`,
  input_image: `Price of images that go in. Set it where the vendor has one. ${perMillion} Default: as input.`,
  cache_read_audio: `Price of audio that is read from a cache. Set it where the vendor has one. ${perMillion} Default: as input_audio.`,
  cache_read_image: `Price of images that are read from a cache. Set it where the vendor has one. ${perMillion} Default: as input_image.`,
  output: `Price of output text. Copy it from the vendor's price list. ${perMillion}`,
  reasoning: `Price of reasoning. Set it where it differs from that of output. ${perMillion} Default: as output.`,
  output_audio: `Price of audio that comes out. Set it where the vendor has one. ${perMillion} Default: as output.`,
  output_image: `Price of images that come out. Set it where the vendor counts them in tokens. ${perMillion} Default: as output.`,
  image:
    'Price of an image, or prices by words of its size, quality and resolution: { 1k: 0.02, high 1024x1536: 0.25 }. Set it for models that are paid by the picture. Unit: USD each.',
  second:
    'Price of a second, or prices by words of size and resolution: { 480p: 0.05, 720p: 0.07 }. Set it for models that are paid by length. Unit: USD each.',
  request: 'Price of a call of the model, beside what it uses. Set it where the vendor has one. Unit: USD each.',
  call: "Price of a call of one of the vendor's own tools that has no price by its name. Set it to allow such tools. Unit: USD each.",
  web_search:
    'Price of a web search of the vendor. Set it to allow the tool; 0 is free. Unit: USD each. Default: as call.',
  web_fetch:
    'Price of a page that the vendor fetches. Set it to allow the tool; 0 is free. Unit: USD each. Default: as call.',
  code_execution:
    'Price of a run of code at the vendor. Set it to allow the tool; 0 is free. Unit: USD each. Default: as call.',
  file_search:
    'Price of a file search of the vendor. Set it to allow the tool; 0 is free. Unit: USD each. Default: as call.',
  search: 'Price of a search unit of a reranker. Set it for rerankers that are paid by it. Unit: USD each.',
  character: 'Price of characters of text that is spoken. Set it for models that speak. Unit: USD per million.',
  audio: 'Price of audio that is heard, counted in seconds. Set it for models that transcribe. Unit: USD per hour.',
};

const optionalUsd = () => usd().optional();
const classShape = Object.fromEntries(
  usageClasses.map((name) => [name, optionalUsd().describe(classProse[name])]),
) as Record<UsageClass, ReturnType<typeof optionalUsd>>;
const classes = z.strictObject(classShape);
type Classes = z.output<typeof classes>;

const pieceTable = z.union([usd(), z.record(z.string().min(1).max(100), usd())]).optional();

const levels = z
  .record(z.string(), classes)
  .optional()
  .describe(
    'Prices for prompts of more tokens than this: { 200k: { input: 2.5, output: 15 } }; the others stay. Set it where the vendor charges more for long prompts.',
  );

const instant = z.union([z.string(), z.number()]).transform((value, context) => {
  const at = typeof value === 'string' && /^\d{4}-\d\d-\d\d(T\S+)?$/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isFinite(at) && isOnCalendar(String(value))) return at;
  context.addIssue({
    code: 'custom',
    message: 'must be a date such as 2026-11-21, or a time such as 2026-11-21T16:00Z',
  });
  return z.NEVER;
});

/** `Date.parse` reads 31 February as 3 March. */
function isOnCalendar(text: string): boolean {
  const day = text.slice(0, 10);
  return new Date(`${day}T00:00Z`).toISOString().startsWith(day);
}

const versionSchema = z.strictObject({
  ...classShape,
  image: pieceTable.describe(classProse.image),
  second: pieceTable.describe(classProse.second),
  above: levels,
  service: z
    .record(z.string().min(1).max(50), z.union([ratio(), z.strictObject({ ...classShape, above: levels })]))
    .optional()
    .describe(
      'Services beyond the standard one by name: a ratio on all tokens, or prices: { priority: 2, flex: 0.5 }. Set it to allow them.',
    ),
  hours: z
    .record(z.string(), ratio())
    .optional()
    .describe(
      'Ratio on all tokens at times in UTC: { mon-fri 01:00-04:00 06:00-10:00: 2 }. Set it where the vendor has dear or cheap hours.',
    ),
  version: z
    .string()
    .regex(/^[\w.-]{1,40}$/, 'is no name of a version')
    .optional()
    .describe(
      "The version's name in rows, before the digest of its content. Set it to find calls of one price list. Default: the digest alone.",
    ),
  valid_from: instant
    .optional()
    .describe(
      'First moment at which this version holds; a date is its midnight, UTC. Set it to announce a price before it begins. Default: always.',
    ),
  valid_until: instant
    .optional()
    .describe('First moment at which this version holds no more. Set it for a promotion that ends. Default: never.'),
});
type Written = z.output<typeof versionSchema>;

/** Names every class with a price of zero, as an absent class would look like an omission. */
const freePrice: Price = { input: zero, output: zero, image: zero, second: zero, call: zero };

/** `'free'`, one version or several: a price book. */
export const priceSchema = z
  .union([z.literal('free'), versionSchema, z.array(versionSchema).min(1).max(100)])
  .transform((value, context): PriceBook => {
    if (value === 'free') return [versionOf({ base: freePrice })];
    const written = Array.isArray(value) ? value : [value];
    const book: PriceVersion[] = [];
    for (const [index, version] of written.entries()) {
      const path = Array.isArray(value) ? [index] : [];
      try {
        book.push(toVersion(version));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        context.addIssue({ code: 'custom', path, message: error.message });
      }
    }
    const starts = book.map(({ from }) => from);
    const duplicate = starts.findIndex((from, index) => starts.indexOf(from) !== index);
    if (duplicate > 0) {
      const message = 'begins when another version does: give each a valid_from of its own';
      context.addIssue({ code: 'custom', path: [duplicate, 'valid_from'], message });
    }
    return book;
  });

/** Throws a RangeError that names the inconsistency. */
function toVersion(written: Written): PriceVersion {
  const { image, second, above, service, hours, version, valid_from: from, valid_until: until, ...others } = written;
  if (from !== undefined && until !== undefined && until <= from) throw new RangeError('ends before it begins');
  for (const [name, one] of Object.entries(service ?? {})) checkServiceLevels(name, one, above);
  const base = named({ ...others, image: amountOf(image), second: amountOf(second) });
  const tiers = [
    ...levelTiers(above),
    ...Object.keys(service ?? {})
      .sort()
      .flatMap((name) => serviceTiers(name, service![name]!)),
    // After the services: the hour's ratio applies to their own prices too.
    ...hourTiers(hours ?? {}),
  ];
  return versionOf({ name: version, from, until, base, tiers, image: tableOf(image), second: tableOf(second) });
}

function levelTiers(above: Record<string, Classes> | undefined, service?: string): PriceTier[] {
  const tiers = Object.entries(above ?? {}).map(([text, price]): PriceTier & { above: number } => {
    const tokens = count().safeParse(text);
    if (!tokens.success || tokens.data < 1)
      throw new RangeError(`above: "${text}" is not a number of tokens such as 200k`);
    return { name: `>${text}`, above: tokens.data, price: named(price), ...(service === undefined ? {} : { service }) };
  });
  tiers.sort((left, right) => left.above - right.above);
  tiers.forEach(({ above, name }, index) => {
    const before = tiers[index - 1];
    if (before?.above === above) throw new RangeError(`above: "${before.name}" and "${name}" are one length`);
  });
  return tiers;
}

/** Hours must not overlap: it would be ambiguous whether their ratios multiply. */
function hourTiers(written: Record<string, Ratio>): PriceTier[] {
  const tiers = Object.entries(written).map(([name, times]) => ({ name, hours: parseHours(name), times }));
  for (const [index, { name, hours }] of tiers.entries()) {
    const other = tiers.slice(0, index).find((tier) => overlap(tier.hours, hours));
    if (other !== undefined) throw new RangeError(`hours: "${other.name}" and "${name}" overlap`);
  }
  return tiers;
}

function overlap(left: readonly Hours[], right: readonly Hours[]): boolean {
  return left.some((one) =>
    right.some(({ days, from, until }) => (one.days & days) !== 0 && one.from < until && from < one.until),
  );
}

type ServicePrice = Ratio | (Classes & { above?: Record<string, Classes> | undefined });

function serviceTiers(service: string, written: ServicePrice): PriceTier[] {
  if ('numerator' in written) return [{ name: service, service, times: written }];
  const { above, ...price } = written;
  return [{ name: service, service, price: named(price) }, ...levelTiers(above, service)];
}

/** A service's prices would replace those for long prompts, so it needs its own for those. */
function checkServiceLevels(service: string, written: ServicePrice, above: Record<string, Classes> | undefined): void {
  if ('numerator' in written) return;
  const own = new Set(Object.keys(written.above ?? {}));
  const missing = Object.keys(above ?? {}).find((level) => !own.has(level));
  if (missing !== undefined)
    throw new RangeError(`service ${service} has no prices above ${missing}: add them, or write a ratio`);
}

type Piece = z.output<typeof pieceTable>;

function amountOf(piece: Piece): bigint | undefined {
  return typeof piece === 'object' ? undefined : piece;
}

/** Keys are words in any order; `default` applies if no other entry matches. */
function tableOf(piece: Piece): MediaTable | undefined {
  if (typeof piece !== 'object') return undefined;
  const all = Object.entries(piece);
  if (all.length === 0) throw new RangeError('a table of prices has at least one entry');
  const entries = all
    .filter(([text]) => text !== 'default')
    .map(([text, amount]) => ({ words: text.toLowerCase().split(/\s+/), amount, text }));
  const keys = entries.map(({ words }) => [...words].sort().join(' '));
  const duplicate = keys.findIndex((key, index) => keys.indexOf(key) !== index);
  if (duplicate >= 0)
    throw new RangeError(
      `"${entries[keys.indexOf(keys[duplicate]!)]!.text}" and "${entries[duplicate]!.text}" are the same words`,
    );
  return { entries, otherwise: piece['default'] };
}

function named(price: { readonly [name: string]: bigint | undefined }): Price {
  return Object.fromEntries(Object.entries(price).filter((entry) => entry[1] !== undefined)) as Price;
}

interface Parts extends Omit<VersionOptions, 'name' | 'from' | 'until'> {
  readonly name?: string | undefined;
  readonly from?: number | undefined;
  readonly until?: number | undefined;
}

/** Named by its content: the same price has the same name, whatever the order of its members. */
function versionOf({ name, from, until, ...content }: Parts): PriceVersion {
  const digest = createHash('sha256').update(contentText(content)).digest('hex').slice(0, 12);
  return new PriceVersion({
    name: name === undefined ? digest : `${name}-${digest}`,
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
    ...content,
  });
}

const laterClasses: ReadonlySet<UsageClass> = new Set(['search', 'character', 'audio']);

function contentText({ base, tiers = [], image, second }: Parts): string {
  // Classes that came later are named where they have a price: names of earlier versions stay.
  const priceText = (price: Price) =>
    usageClasses
      .filter((name) => !laterClasses.has(name) || price[name] !== undefined)
      .map((name) => `${name}=${price[name] ?? ''}`)
      .join(';');
  const tableText = (table: MediaTable | undefined) => [
    ...(table?.entries ?? []).map(({ words, amount }) => `${[...words].sort().join(' ')}=${amount}`).sort(),
    `default=${table?.otherwise ?? ''}`,
  ];
  const tierTexts = tiers.map(({ name, service, price, times }) =>
    [
      name,
      service,
      price === undefined ? '' : priceText(price),
      times && `${times.numerator}/${times.denominator}`,
    ].join('|'),
  );
  return [priceText(base), ...tierTexts, ...tableText(image), ...tableText(second)].join('\n');
}

/** Whether some version has a price for none of these classes. */
export function lacks(book: PriceBook, names: readonly UsageClass[]): boolean {
  return book.some((version) => {
    const price = version.all()[0]!.price;
    return names.every((name) => price[name] === undefined);
  });
}
