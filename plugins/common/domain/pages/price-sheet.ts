/** The prices of a model as a person reads them: by class, and under conditions. Pure. */
import { cost, formatRatio, formatUsd, one, type Ratio } from '../money.ts';
import { type PriceBook, type PriceVersion, versionAt } from '../prices.ts';
import { type Price, tokenClasses, type UsageClass, usageClasses } from '../usage.ts';

/** What a price is for: a million tokens or characters, an hour of audio, or one piece. */
export const priceUnits = ['million', 'image', 'second', 'request', 'call', 'search', 'characters', 'hour'] as const;

interface PriceLine {
  readonly class: UsageClass;
  readonly per: (typeof priceUnits)[number];
  readonly official: string;
  /** After the ratio. */
  readonly yours: string;
  /** After the ratio, over all sizes, qualities and resolutions; null: they do not matter. */
  readonly range: { readonly least: string; readonly most: string } | null;
}

export interface PriceSheet {
  readonly version: string;
  readonly ratio: string;
  readonly lines: PriceLine[];
  /** Other prices under conditions: long prompts, services, hours, sizes. */
  readonly tiers: { readonly name: string; readonly lines: PriceLine[] }[];
}

const mostTiers = 24;
const perMillion = 1_000_000;
const secondsPerHour = 3_600;

/** undefined: it is not sold now. */
export function sheetOf(book: PriceBook | undefined, at: number, ratio: Ratio): PriceSheet | undefined {
  const version = book === undefined ? undefined : versionAt(book, at);
  return version === undefined ? undefined : sheetOfVersion(version, ratio);
}

/** One version, whenever it holds. */
export function sheetOfVersion(version: PriceVersion, ratio: Ratio): PriceSheet {
  const { standard } = version;
  const tiers = version
    .all()
    .filter((priced) => priced !== standard)
    .slice(0, mostTiers)
    .map(({ tier, price }) => ({ name: tier, lines: linesOf(price, ratio) }));
  const lines = linesOf(standard.price, ratio).map((one) => ({ ...one, range: rangeOf(version, one.class, ratio) }));
  return { version: version.name, ratio: formatRatio(ratio), lines, tiers };
}

/** What a million tokens or characters, an hour, or one piece cost by themselves. */
function linesOf(price: Price, ratio: Ratio): PriceSheet['lines'] {
  return usageClasses
    .filter((name) => price[name] !== undefined)
    .map((name) => {
      const { per, count } = unitOf(name);
      const unit = { [name]: count };
      return {
        class: name,
        per,
        official: formatUsd(cost(unit, price, one)),
        yours: formatUsd(cost(unit, price, ratio)),
        range: null,
      };
    });
}

function unitOf(name: UsageClass): { per: PriceSheet['lines'][number]['per']; count: number } {
  if ((tokenClasses as readonly UsageClass[]).includes(name)) return { per: 'million', count: perMillion };
  if (name === 'character') return { per: 'characters', count: perMillion };
  if (name === 'audio') return { per: 'hour', count: secondsPerHour };
  const isOwn = name === 'image' || name === 'second' || name === 'request' || name === 'search';
  return { per: isOwn ? name : 'call', count: 1 };
}

/** The lowest and highest price of an image or a second. */
function rangeOf(version: PriceVersion, name: string, ratio: Ratio): PriceSheet['lines'][number]['range'] {
  if (name !== 'image' && name !== 'second') return null;
  const amounts = (version[name]?.entries ?? []).map(({ amount }) => amount);
  const otherwise = version.standard.price[name]!;
  const [least, most] = [otherwise, ...amounts].reduce(
    ([low, high], amount) => [amount < low ? amount : low, amount > high ? amount : high],
    [otherwise, otherwise],
  );
  if (least === most) return null;
  const text = (amount: bigint) => formatUsd(cost({ [name]: 1 }, { [name]: amount }, ratio));
  return { least: text(least), most: text(most) };
}
