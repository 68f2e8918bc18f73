/** Quotes a usage by prices that are written but not configured yet, as the console's forms do before they are saved. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { ExampleQuote, PriceExample } from '../common/domain/admin/prices.ts';
import { formulaOf } from '../common/domain/formula.ts';
import { cost, formatRatio, parseRatio, type Ratio } from '../common/domain/money.ts';
import { ratioOf } from '../common/domain/price-ratio.ts';
import { type PriceBook, type PriceContext, versionAt } from '../common/domain/prices.ts';
import { readCount, type Usage, type UsageClass, usageClasses } from '../common/domain/usage.ts';
import { charged } from './price-commands.ts';
import { priceSchema } from './price-config.ts';

export function exampleQuote(example: PriceExample, at: number): ExampleQuote {
  const usage = usageOf(example.usage);
  const service = example.service?.toLowerCase();
  const context: PriceContext = service === undefined ? {} : { services: { tier: service } };
  const version = versionAt(bookOf(example.price, 'price'), at);
  if (version === undefined)
    throw new GatewayError('invalid_request', 'No version of this price holds now.', { field: 'price' });
  if (service !== undefined && !version.prices(service))
    throw new GatewayError('invalid_request', `There is no price for the service "${service.slice(0, 50)}".`, {
      field: 'service',
    });
  const priced = version.priced(at, usage, context);
  const model = example.multiplier === undefined ? undefined : readRatio(example.multiplier, 'multiplier');
  const ratio = ratioOf({ plan: readRatio(example.ratio, 'ratio'), model });
  const counted = charged(usage, priced);
  const own =
    example.cost === undefined ? undefined : versionAt(bookOf(example.cost, 'cost'), at)?.priced(at, usage, context);
  return {
    cost: cost(counted, priced.price, ratio),
    ownCost: own === undefined ? undefined : cost(charged(usage, own), own.price),
    ratio: formatRatio(ratio),
    tier: priced.tier,
    formula: formulaOf(counted, priced.price, ratio),
  };
}

function bookOf(written: unknown, field: 'price' | 'cost'): PriceBook {
  const parsed = priceSchema.safeParse(written);
  if (parsed.success) return parsed.data;
  const own = parsed.error.issues.find(({ code }) => code === 'custom');
  const message = own === undefined ? `The ${field} is not written like a price.` : `The ${field}: ${own.message}.`;
  throw new GatewayError('invalid_request', message, { field });
}

/** Throws invalid_request for an unknown class or a count that is not whole. */
export function usageOf(counts: Readonly<Record<string, number>>): Usage {
  const usage: { [name: string]: number } = {};
  for (const [name, value] of Object.entries(counts)) {
    const count = readCount(value);
    if (!usageClasses.includes(name as UsageClass) || count === undefined)
      throw new GatewayError('invalid_request', `"${name.slice(0, 40)}" is not a class with a whole number.`, {
        field: 'usage',
      });
    usage[name] = count;
  }
  return usage;
}

/** Throws invalid_request that names the field. */
export function readRatio(text: string, field = 'ratio'): Ratio {
  try {
    return parseRatio(text);
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field });
  }
}
