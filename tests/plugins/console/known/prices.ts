/** What calls must cost, worked out from the price list and from what the client's own answer says: shares nothing with the product. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export type Units = Readonly<Record<string, number>>;
type Prices = Readonly<Record<string, number>>;

interface Listed {
  readonly display_name: string;
  readonly price: Prices;
}

export const catalogue = (parse(readFileSync('config/models.yaml', 'utf8')) as { models: Record<string, Listed> })
  .models;
/** The operator's own cost, as the gateway's file says it. */
export const ownCosts: Readonly<Record<string, Prices>> = {
  'gpt-5.4-mini': { input: 0.3, cache_read: 0.03, output: 1.7 },
  'claude-sonnet-5': { input: 1.1, cache_read: 0.1, cache_write_5m: 1.3, cache_write_1h: 2, output: 6 },
};
const piecewise = ['image', 'search'];

/** Decimal dollars as whole nano-dollars. */
export function nano(text: string): bigint {
  const [units = '', decimals = ''] = text.replace('-', '').split('.');
  const amount = BigInt(units) * 1_000_000_000n + BigInt(decimals.padEnd(9, '0'));
  return text.startsWith('-') ? -amount : amount;
}

/** Whole nano-dollars as the API writes them. */
export function usd(amount: bigint): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(10, '0');
  const decimals = digits.slice(-9).replace(/0+$/, '').padEnd(2, '0');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -9)}.${decimals}`;
}

export const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

function priced(units: Units, prices: Prices, ratio: string): bigint {
  const millionths = Object.entries(units).map(([name, count]) => {
    if (count > 0 && prices[name] === undefined) throw new Error(`the list has no price of ${name}`);
    return BigInt(count) * nano(String(prices[name] ?? 0)) * (piecewise.includes(name) ? 1_000_000n : 1n);
  });
  const [whole = '', decimals = ''] = ratio.split('.');
  const divisor = 1_000_000n * 10n ** BigInt(decimals.length);
  return (2n * sum(millionths) * BigInt(whole + decimals) + divisor) / (2n * divisor);
}

/** By the list, times the plan's ratio, half up. */
export const chargeOf = (model: string, units: Units, ratio: string) => priced(units, catalogue[model]!.price, ratio);

/** undefined: not known. */
export const ownCostOf = (model: string, units: Units) =>
  ownCosts[model] === undefined ? undefined : priced(units, ownCosts[model], '1');

interface Counts {
  readonly [name: string]: number | Counts | undefined;
}

/** What an answer of each protocol says it used, in the classes of the price list. */
export const unitsIn: Readonly<Record<string, (answer: { [name: string]: Counts }) => Units>> = {
  chat: ({ usage }) => tokens(usage!, 'prompt_tokens', 'completion_tokens'),
  responses: ({ usage }) => tokens(usage!, 'input_tokens', 'output_tokens'),
  messages: ({ usage }) => ({
    input: usage!['input_tokens'] as number,
    cache_read: (usage!['cache_read_input_tokens'] as number) ?? 0,
    cache_write_5m: (usage!['cache_creation_input_tokens'] as number) ?? 0,
    output: usage!['output_tokens'] as number,
  }),
  'generate-content': ({ usageMetadata: counts }) => ({
    input: (counts!['promptTokenCount'] as number) - ((counts!['cachedContentTokenCount'] as number) ?? 0),
    cache_read: (counts!['cachedContentTokenCount'] as number) ?? 0,
    output: (counts!['candidatesTokenCount'] as number) + ((counts!['thoughtsTokenCount'] as number) ?? 0),
  }),
  embeddings: ({ usage }) => ({ input: usage!['prompt_tokens'] as number }),
};

function tokens(usage: Counts, input: string, output: string): Units {
  const details = usage[`${input}_details`] as Counts | undefined;
  const cached = Number(details?.['cached_tokens'] ?? 0);
  return { input: Number(usage[input]) - cached, cache_read: cached, output: Number(usage[output]) };
}
