/** A deposit's terms as text, so that whoever ends it months and releases later charges by what was agreed. Pure. */
import { type PriceContext, PriceVersion, type VersionOptions } from '../../core/prices.ts';
import type { Allowance } from './charge.ts';
import { planNamed, type Terms } from './hold.ts';
import { decodeRatio, encodeRatio } from './records.ts';

/** Terms without what the deposit's row says itself. */
export type KeptTerms = Omit<Terms, 'id' | 'accountId'>;

interface Written {
  readonly key: string;
  readonly model: string;
  readonly at: number;
  readonly ratio: string;
  readonly input: number;
  readonly output: number;
  readonly allowance: Allowance;
  readonly context: PriceContext;
  readonly version: VersionOptions;
  /** The plan's name. */
  readonly plan?: string | undefined;
}

export function encodeTerms(terms: Terms): string {
  const { name, base, tiers, image, second } = terms.prices;
  const written: Written = {
    key: terms.keyId,
    model: terms.model,
    at: terms.at,
    ratio: encodeRatio(terms.ratio),
    input: terms.inputTokens,
    output: terms.outputTokens,
    allowance: terms.allowance,
    context: terms.context,
    version: { name, base, tiers, image, second },
    plan: terms.plan?.terms.name,
  };
  return JSON.stringify(written, (_name, value) => (typeof value === 'bigint' ? { bigint: value.toString() } : value));
}

export function decodeTerms(text: string): KeptTerms {
  const written = JSON.parse(text, revive) as Written;
  return {
    keyId: written.key,
    model: written.model,
    prices: new PriceVersion(written.version),
    at: written.at,
    context: written.context,
    ratio: decodeRatio(written.ratio),
    inputTokens: written.input,
    outputTokens: written.output,
    allowance: written.allowance,
    entry: undefined,
    plan: written.plan === undefined ? undefined : planNamed(written.plan, written.at),
  };
}

function revive(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('bigint' in value)) return value;
  return typeof value.bigint === 'string' ? BigInt(value.bigint) : value;
}
