/** The terms of an authorization as text, so that a later release can end it on the agreed terms. Pure. */
import type { Attribution } from '../../common/domain/accounts.ts';
import { type PriceContext, PriceVersion, type VersionOptions } from '../../common/domain/prices.ts';
import { decodeRatio, encodeRatio } from '../model/records.ts';
import { planNamed } from '../reservations/hold.ts';
import type { Allowance, Terms } from '../reservations/terms.ts';

/** Terms without the columns of the authorization's row. */
export type StoredTerms = Omit<Terms, 'id' | 'accountId'>;

interface EncodedTerms {
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
  readonly attribution?: Attribution | undefined;
  readonly tags?: string | undefined;
}

export function encodeTerms(terms: Terms): string {
  const { name, base, tiers, image, second } = terms.prices;
  const written: EncodedTerms = {
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
    attribution: terms.attribution,
    tags: terms.tags,
  };
  return JSON.stringify(written, (_name, value) => (typeof value === 'bigint' ? { bigint: value.toString() } : value));
}

export function decodeTerms(text: string): StoredTerms {
  const written = JSON.parse(text, revive) as EncodedTerms;
  return {
    keyId: written.key,
    attribution: written.attribution,
    tags: written.tags,
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
