/** Which price holds: versions in time, and in each of them tiers by prompt length, service, hour and medium. Pure. */
import { type Ratio, timesExactly, unitPrice } from './money.ts';
import { type Price, promptTokens, tokenClasses, type Usage, usageClasses } from './usage.ts';

/** Conditions of a price beside time and usage. */
export interface PriceContext {
  /** Requested services beyond the standard one, by kind: `{ tier: 'priority' }`, `{ speed: 'fast' }`. */
  readonly services?: Services;
  /** Size, quality and resolution of the generated media, in lower case; undefined: not known yet. */
  readonly media?: readonly string[];
}
export type Services = Readonly<Record<string, string>>;

/** The price of one call's usage, and what to call it in its row. Always the same object for the same combination. */
export interface Priced {
  readonly price: Price;
  readonly version: string;
  /** The tiers that hold, such as `>200k + priority`; empty: the list price itself. */
  readonly tier: string;
}

/** Weekly times in UTC: days (bit 0 is Sunday), and minutes of the day `from` ≤ … < `until`. */
export interface Hours {
  readonly days: number;
  readonly from: number;
  readonly until: number;
}

/** Holds where all of its conditions do. Later tiers are laid over earlier ones, class by class. */
export interface PriceTier {
  readonly name: string;
  /** Holds for prompts of more tokens than this. */
  readonly above?: number;
  readonly service?: string;
  readonly hours?: readonly Hours[];
  /** Classes that it prices again. */
  readonly price?: Price;
  /** Multiplies every token class as it stands below this tier. */
  readonly times?: Ratio;
}

/** Prices of one piece by its known properties: the entry with the most words that are all known wins. */
export interface MediaTable {
  readonly entries: readonly { readonly words: readonly string[]; readonly amount: bigint }[];
  /** Price of pieces that no entry fits; undefined: that of the dearest entry. */
  readonly otherwise?: bigint | undefined;
}

export interface VersionOptions {
  /** Kept in every row that was charged by it. */
  readonly name: string;
  /** Milliseconds: `from` ≤ time < `until`. */
  readonly from?: number;
  readonly until?: number;
  readonly base: Price;
  readonly tiers?: readonly PriceTier[];
  readonly image?: MediaTable | undefined;
  readonly second?: MediaTable | undefined;
  /** Name of the base in rows; for a price that was chosen before. */
  readonly label?: string;
}

/** The versions of one model's price. */
export type PriceBook = readonly PriceVersion[];

/** The version in force: of those that hold at `at` the one that began last, the later one in the book where two began together. */
export function versionAt(book: PriceBook, at: number): PriceVersion | undefined {
  let current: PriceVersion | undefined;
  for (const version of book) {
    if (version.from > at || at >= version.until) continue;
    if (current === undefined || version.from >= current.from) current = version;
  }
  return current;
}

/** The one question to a price book: what this usage is charged by. undefined: there is no price at that time. */
export function priceFor(book: PriceBook, at: number, usage: Usage, context: PriceContext = {}): Priced | undefined {
  return versionAt(book, at)?.priced(at, usage, context);
}

/** The times from `at` on at which the book changes, `at` itself first. */
export function changesFrom(book: PriceBook, at: number): number[] {
  const edges = book.flatMap(({ from, until }) => [from, until]).filter((edge) => edge > at && Number.isFinite(edge));
  return [at, ...new Set(edges.sort((left, right) => left - right))];
}

/** A book of one version without tiers. */
export function flatBook(price: Price, name: string): PriceBook {
  return [new PriceVersion({ name, base: price })];
}

const tierLimit = 24;
const mediaLimit = 62;
const lastCombination = 4_096;
/** Place of a media index that stands for all of them. */
const anyMedia = mediaLimit + 1;

/** One version of a price. Its combinations of tiers are worked out once each. */
export class PriceVersion {
  readonly name: string;
  readonly from: number;
  readonly until: number;
  readonly tiers: readonly PriceTier[];
  readonly image: MediaTable | undefined;
  readonly second: MediaTable | undefined;
  readonly base: Price;
  readonly #flat: Priced | undefined;
  readonly #priced = new Map<number, Priced>();
  readonly #bounds = new Map<number, Price>();
  readonly #label: string;
  /** The tiers that depend on the hour alone: between hold and settlement they do not change. */
  readonly #timed: number;

  /** Throws a RangeError where there are too many tiers, or where a multiplied price would not be exact. */
  constructor(options: VersionOptions) {
    const { name, base, tiers = [], image, second, label = '' } = options;
    if (tiers.length > tierLimit) throw new RangeError(`a price has at most ${tierLimit} tiers`);
    for (const table of [image, second]) {
      if (table === undefined) continue;
      if (table.entries.length > mediaLimit) throw new RangeError(`a price table has at most ${mediaLimit} entries`);
    }
    this.name = name;
    this.from = options.from ?? Number.NEGATIVE_INFINITY;
    this.until = options.until ?? Number.POSITIVE_INFINITY;
    this.tiers = tiers;
    this.image = image;
    this.second = second;
    this.base = base;
    this.#label = label;
    this.#timed = tiers.reduce((mask, { hours, above, service }, index) => {
      const alone = hours !== undefined && above === undefined && service === undefined;
      return alone ? mask | (1 << index) : mask;
    }, 0);
    const isFlat = tiers.length === 0 && image === undefined && second === undefined;
    for (const mask of this.#masks()) this.#combined(mask, 0, 0);
    this.#flat = isFlat ? this.#combined(0, 0, 0) : undefined;
  }

  /** Whether this service has a price of its own; where everything is free, every service is. */
  prices(service: string): boolean {
    if (this.#flat !== undefined) return Object.values(this.base).every((amount) => amount === 0n);
    return this.tiers.some((tier) => tier.service === service);
  }

  /** The services beyond the standard one that have a price, each once. */
  get services(): readonly string[] {
    return [...new Set(this.tiers.flatMap(({ service }) => service ?? []))];
  }

  /** What this usage is charged by, at a time within the version. */
  priced(at: number, usage: Usage, context: PriceContext = {}): Priced {
    if (this.#flat !== undefined) return this.#flat;
    const mask = this.#mask(at, promptTokens(usage), context.services);
    const { media = [] } = context;
    return this.#combined(mask, chosen(this.image, media), chosen(this.second, media));
  }

  /**
   * A price that is at least as dear, class by class, as that of any usage with a prompt of at most `inputTokens`, whichever
   * of the asked services are granted, and, while the media are not known, whatever is made.
   */
  bound(at: number, inputTokens: number, { services, media }: PriceContext = {}): Price {
    if (this.#flat !== undefined) return this.#flat.price;
    const mask = this.#mask(at, inputTokens, services);
    const image = media === undefined ? anyMedia : chosen(this.image, media);
    const second = media === undefined ? anyMedia : chosen(this.second, media);
    const key = keyOf(mask, image, second);
    let bound = this.#bounds.get(key);
    if (bound === undefined) {
      bound = this.#boundOf(mask, image, second);
      this.#bounds.set(key, bound);
    }
    return bound;
  }

  /** The charge where no tier applies and no size, quality or resolution is requested. */
  get standard(): Priced {
    return this.#combined(0, 0, 0);
  }

  /** Every price that a call can be charged by, once each. */
  all(): Priced[] {
    const indexes = (table: MediaTable | undefined) =>
      Array.from({ length: (table?.entries.length ?? 0) + 1 }, (_, at) => at);
    return this.#masks().flatMap((mask) =>
      indexes(this.image).flatMap((image) => indexes(this.second).map((second) => this.#combined(mask, image, second))),
    );
  }

  /** The tiers that hold, a bit each. */
  #mask(at: number, inputTokens: number, services: Services | undefined): number {
    const { tiers } = this;
    let mask = 0;
    for (let index = 0; index < tiers.length; index++) {
      const { above, service, hours } = tiers[index]!;
      if (above !== undefined && inputTokens <= above) continue;
      if (service !== undefined && !requestedServices(services, service)) continue;
      if (hours !== undefined && !within(hours, at)) continue;
      mask |= 1 << index;
    }
    return mask;
  }

  /** Every combination of tiers that can hold at once. Throws a RangeError when there are absurdly many. */
  #masks(): number[] {
    const levels = [0, ...this.tiers.flatMap(({ above }) => (above === undefined ? [] : [above + 1]))];
    // Hours and services hold or do not, whatever else does.
    const free = [
      ...new Set(this.tiers.flatMap(({ service, hours }) => [service, hours].filter((one) => one !== undefined))),
    ];
    if (levels.length * 2 ** free.length > lastCombination)
      throw new RangeError('a price has too many combinations of tiers');
    const masks = new Set<number>();
    for (const level of levels)
      for (let choice = 0; choice < 2 ** free.length; choice++) {
        const holding = new Set(free.filter((_, index) => (choice & (1 << index)) !== 0));
        masks.add(this.#maskOf(level, holding));
      }
    return [...masks];
  }

  /** The tiers that hold for this many tokens and for these services and hours. */
  #maskOf(inputTokens: number, holding: ReadonlySet<string | readonly Hours[]>): number {
    const holds = (one: string | readonly Hours[] | undefined) => one === undefined || holding.has(one);
    let mask = 0;
    for (const [index, { above, service, hours }] of this.tiers.entries())
      if ((above === undefined || inputTokens > above) && holds(service) && holds(hours)) mask |= 1 << index;
    return mask;
  }

  #combined(mask: number, image: number, second: number): Priced {
    const key = keyOf(mask, image, second);
    let priced = this.#priced.get(key);
    if (priced === undefined) {
      priced = this.#combine(mask, image, second);
      this.#priced.set(key, priced);
    }
    return priced;
  }

  #combine(mask: number, image: number, second: number): Priced {
    let price: Price = this.base;
    const names = this.#label === '' ? [] : [this.#label];
    this.tiers.forEach((tier, index) => {
      if ((mask & (1 << index)) === 0) return;
      if (tier.price !== undefined) price = { ...price, ...tier.price };
      if (tier.times !== undefined) price = multiplied(price, tier.times);
      if (!names.includes(tier.name)) names.push(tier.name);
    });
    for (const [name, table, index] of [
      ['image', this.image, image],
      ['second', this.second, second],
    ] as const) {
      if (table === undefined) continue;
      price = { ...price, [name]: amountOf(table, index) };
      if (index > 0) names.push(table.entries[index - 1]!.words.join(' '));
    }
    return { price, version: this.name, tier: names.join(' + ') };
  }

  /** A usage has the tiers of `mask`, or fewer: a shorter prompt, a service that was not granted. */
  #boundOf(mask: number, image: number, second: number): Price {
    const choices = (table: MediaTable | undefined, index: number) =>
      index === anyMedia ? [0, ...(table?.entries.keys() ?? [])].map((_, at) => at) : [index];
    const bound: { [name: string]: bigint } = {};
    for (const other of this.#masks()) {
      if ((other & ~mask) !== 0 || ((other ^ mask) & this.#timed) !== 0) continue;
      for (const at of choices(this.image, image)) {
        for (const then of choices(this.second, second)) raise(bound, this.#combined(other, at, then).price);
      }
    }
    return bound;
  }
}

function raise(bound: { [name: string]: bigint }, price: Price): void {
  for (const name of usageClasses) {
    const unit = unitPrice(price, name);
    if (unit > (bound[name] ?? -1n)) bound[name] = unit;
  }
}

/** One number for a combination: 24 bits of tiers, then six for each medium. */
function keyOf(mask: number, image: number, second: number): number {
  return mask + 2 ** tierLimit * (image + (mediaLimit + 2) * second);
}

function requestedServices(services: Services | undefined, service: string): boolean {
  for (const kind in services) if (services[kind] === service) return true;
  return false;
}

const minuteMs = 60_000;
const dayMinutes = 1_440;

function within(hours: readonly Hours[], at: number): boolean {
  const minutes = Math.floor(at / minuteMs);
  const minute = ((minutes % dayMinutes) + dayMinutes) % dayMinutes;
  // 1 January 1970 was a Thursday.
  const day = (((Math.floor(minutes / dayMinutes) + 4) % 7) + 7) % 7;
  return hours.some(({ days, from, until }) => (days & (1 << day)) !== 0 && from <= minute && minute < until);
}

/** 1 and more: the entry; 0: none fits. */
function chosen(table: MediaTable | undefined, media: readonly string[]): number {
  if (table === undefined) return 0;
  let best = 0;
  let most = 0;
  table.entries.forEach(({ words }, index) => {
    if (words.length <= most || !words.every((word) => media.includes(word))) return;
    most = words.length;
    best = index + 1;
  });
  return best;
}

function amountOf({ entries, otherwise }: MediaTable, index: number): bigint {
  if (index > 0) return entries[index - 1]!.amount;
  return otherwise ?? entries.reduce((highest, { amount }) => (amount > highest ? amount : highest), 0n);
}

function multiplied(price: Price, times: Ratio): Price {
  const product: { [name: string]: bigint } = { ...price };
  for (const name of tokenClasses) {
    const amount = price[name];
    if (amount === undefined) continue;
    const exact = timesExactly(amount, times);
    if (exact === undefined) {
      throw new RangeError(
        `${name} × ${times.numerator}/${times.denominator} is not exact to a nano-dollar: write the prices out`,
      );
    }
    product[name] = exact;
  }
  return product;
}
