/** Finds prices and costs that are valid and probably not meant: per thousand where it is per million, nothing where it should say so. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Notice } from '../../../core/contract/contract.ts';
import { formatUsd, isLess, type Ratio } from '../../common/domain/money.ts';
import { doubtfulRatio } from '../../common/domain/price-ratio.ts';
import { type PriceBook, type PriceVersion, versionAt } from '../../common/domain/prices.ts';
import { type Price, type UsageClass, usageClasses } from '../../common/domain/usage.ts';
import type { ModelConfig, ModelsConfig } from '../config.ts';
import { priceSchema } from '../price-config.ts';
import { pricePoints } from './floors.ts';

const mostTimes = 10n;

/** The models that the program is shipped with: their public list prices by each of their names. */
export type ShippedPrices = ReadonlyMap<string, PriceBook>;

interface ShippedModel {
  readonly price?: unknown;
  readonly price_source?: unknown;
  readonly aliases?: readonly string[];
}

let shipped: ShippedPrices | undefined;
let shippedModels: ReadonlyMap<string, ShippedModel> = new Map();

/** A model as the program is shipped with it. */
export function shippedModel(id: string): ShippedModel | undefined {
  shippedPrices();
  return shippedModels.get(id);
}

/** Reads `config/models.yaml`, once: that takes a third of a second, which a start does not wait for. */
export function shippedPrices(): ShippedPrices {
  shipped ??= readShipped();
  return shipped;
}

function readShipped(): ShippedPrices {
  const found = new Map<string, PriceBook>();
  let text: string;
  try {
    text = readFileSync(new URL('../../../config/models.yaml', import.meta.url), 'utf8');
  } catch {
    return found; // An image of one's own may lack it.
  }
  const { models } = parse(text) as { models: Record<string, ShippedModel> };
  shippedModels = new Map(Object.entries(models));
  for (const [id, { price, aliases = [] }] of shippedModels) {
    const book = price === undefined ? undefined : priceSchema.safeParse(price).data;
    if (book !== undefined) for (const name of [id, ...aliases]) found.set(name, book);
  }
  return found;
}

/** `list`: public prices to compare with; undefined: none are known. */
export function doubtfulPrices(config: ModelsConfig, list: ShippedPrices | undefined, at: number): Notice[] {
  return Object.entries(config)
    .flatMap(([id, model]): string[] => [
      ...unsaidFree(id, model, at),
      ...farOff(id, model, list, at),
      ...oddRatios(id, model),
    ])
    .map((text): Notice => ({ level: 'warning', text }));
}

const freeName = priceSchema.parse('free')[0]!.name;

function unsaidFree(id: string, { price }: ModelConfig, at: number): string[] {
  const version = price && versionAt(price, at);
  if (version === undefined || version.name === freeName) return [];
  return isFree(version) ? [`models.${id}.price is 0 for everything: write "price: free" if that is meant`] : [];
}

function isFree(version: PriceVersion): boolean {
  return version.all().every(({ price }) => Object.values(price).every((amount) => amount === 0n));
}

/** One sentence for each price and cost, about its class that is furthest off. */
function farOff(id: string, model: ModelConfig, list: ShippedPrices | undefined, at: number): string[] {
  const { price, cost, targets } = model;
  const listed = list && publicPrice(id, model, list);
  const costs = [
    ...(cost === undefined ? [] : [{ name: `models.${id}.cost`, book: cost }]),
    ...targets.flatMap((target, index) =>
      target.cost === undefined ? [] : [{ name: `models.${id}.targets.${index}.cost`, book: target.cost }],
    ),
  ];
  const own = price === undefined ? [] : [{ name: `models.${id}.price`, book: price }];
  const toList = [...own, ...costs].flatMap(({ name, book }) =>
    sentence(name, furthest(book, listed, at), 'the public price that the gateway is shipped with'),
  );
  // A distance from the list is reported once.
  if (toList.length > 0) return toList;
  return own.flatMap(({ name, book }) =>
    costs.flatMap((one) => sentence(name, furthest(book, one.book, at), one.name)).slice(0, 1),
  );
}

/** By the model's names here, then by those at its providers, which clouds write with a prefix. */
function publicPrice(id: string, { aliases, targets }: ModelConfig, list: ShippedPrices): PriceBook | undefined {
  const names = [id, ...aliases, ...targets.flatMap(({ model }) => model ?? [])];
  const found = names.find((name) => list.has(name)) ?? names.map(lastPart).find((name) => list.has(name));
  return found === undefined ? undefined : list.get(found);
}

const lastPart = (name: string) => name.slice(name.lastIndexOf('/') + 1);

interface Distance {
  readonly name: UsageClass;
  readonly written: bigint;
  readonly other: bigint;
}

function sentence(name: string, found: Distance | undefined, other: string): string[] {
  if (found === undefined) return [];
  const { written, other: usual } = found;
  if (written === 0n) return [`${name}: ${found.name} costs nothing, and ${formatUsd(usual)} USD is ${other}`];
  const [times, direction] = written > usual ? [written / usual, 'more'] : [usual / written, 'less'];
  return [
    `${name}: ${found.name} is ${formatUsd(written)} USD, ${times} times ${direction} than ${formatUsd(usual)}, ${other}: ${unitOf(found.name)}`,
  ];
}

const perMillion: ReadonlySet<UsageClass> = new Set(['character']);
const pieces: ReadonlySet<UsageClass> = new Set(['image', 'second', 'request', 'call', 'search']);

function unitOf(name: UsageClass): string {
  if (name === 'audio') return 'it is priced per hour';
  if (pieces.has(name)) return `it is priced per ${name}`;
  return perMillion.has(name) ? 'it is priced per million characters' : 'it is priced per million tokens';
}

/** The class, among those that both sides name, with the largest distance. */
function furthest(book: PriceBook, other: PriceBook | undefined, at: number): Distance | undefined {
  let found: Distance | undefined;
  for (const version of book.filter((one) => one.until > at && !isFree(one))) {
    const time = Math.max(at, version.from);
    const usual = other && versionAt(other, time);
    if (usual === undefined) continue;
    for (const one of distances(version, usual, time)) if (found === undefined || isFurther(one, found)) found = one;
  }
  return found;
}

function distances(version: PriceVersion, publicVersion: PriceVersion, at: number): Distance[] {
  return pricePoints(version, version, at).flatMap(({ time, usage, context }) => {
    const own = version.priced(time, usage, context).price;
    const other = publicVersion.priced(time, usage, context).price;
    // Where something else is priced, such as pictures instead of their tokens, nothing is said of what costs nothing.
    const isAlike = usageClasses.every((name) => !isPriced(own, name) || isPriced(other, name));
    return usageClasses.flatMap((name) => {
      const [written, usual] = [own[name], other[name]];
      if (written === undefined || usual === undefined || usual === 0n) return [];
      if (written === 0n && (!isAlike || !mainClasses.has(name))) return [];
      const one = { name, written, other: usual };
      return isFar(one) ? [one] : [];
    });
  });
}

/** Classes of generated and read content; the others are often free. */
const mainClasses: ReadonlySet<UsageClass> = new Set(['input', 'output', 'image', 'second', 'character', 'audio']);

const isPriced = (price: Price, name: UsageClass) => (price[name] ?? 0n) > 0n;

const isFar = ({ written, other }: Distance) => written > mostTimes * other || other > mostTimes * written;

function isFurther(one: Distance, than: Distance): boolean {
  return isLess(distanceOf(than), distanceOf(one));
}

function distanceOf({ written, other }: Distance): Ratio {
  return written > other ? { numerator: written, denominator: other } : { numerator: other, denominator: written };
}

function oddRatios(id: string, { multiplier, batch }: ModelConfig): string[] {
  return [...doubtfulRatio(`models.${id}.multiplier`, multiplier), ...doubtfulRatio(`models.${id}.batch`, batch)];
}
