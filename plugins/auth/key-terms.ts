/** The terms of a key: parsed from requests, stored in its row, and rendered. Pure. */

import { invalid } from '../../core/json/request-body.ts';
import { imageAnswers, type KeyCap } from '../common/domain/accounts.ts';
import { type KeyTerms, noProject } from '../common/domain/admin/accounts.ts';
import { money } from '../common/domain/money.ts';
import { mostRegions, regionName } from '../common/domain/organizations/placement.ts';
import type { Limits } from '../common/domain/plans.ts';
import { addressProblem } from './addresses.ts';
import { validTags } from './tags.ts';

const maxNameLength = 100;
const maxModels = 1_000;
/** The largest values that the limiter counts exactly. */
const maxLimits = { rpm: 1_000_000_000, rpd: 100_000_000, tpm: 1_000_000_000, concurrency: 1_000_000 } as const;
const limitNames = Object.keys(maxLimits) as (keyof Limits)[];
const capPeriods: readonly KeyCap['every'][] = ['day', 'week', 'month', 'ever'];
/** A billion USD: sums of caps and charges stay far below the limit of a `bigint` column. */
const maxCap = 1_000_000_000_000_000_000n;

/** The terms in a key's row. */
export interface TermsRow {
  name: string;
  models: string[] | null;
  expiresAt: Date | null;
  addresses: string[] | null;
  limits: Limits | null;
  capAmount: bigint | null;
  capEvery: string | null;
  project: string | null;
  /** null: `task`. */
  images: string | null;
  tags: string[] | null;
  /** null: anywhere. */
  regions: string[] | null;
}

/** Validates terms and converts them to a row. Throws invalid_request that names the field. */
export function rowOfTerms(terms: KeyTerms): TermsRow {
  const { models, expiresAt, addresses, cap, images } = terms;
  if (expiresAt !== undefined && Number.isNaN(new Date(expiresAt).getTime()))
    throw invalid('A key expires at a time.', 'expiresAt');
  if (cap !== undefined) checkCap(cap);
  if (images !== undefined && !imageAnswers.includes(images))
    throw invalid(`A key answers orders of images by ${imageAnswers.join(' or ')}.`, 'images');
  return {
    name: validName(terms.name, 'name'),
    models: models === undefined ? null : validModels(models, 'key'),
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt),
    addresses: addresses === undefined ? null : validAddresses(addresses),
    limits: validLimits(terms.limits),
    capAmount: cap?.amount ?? null,
    capEvery: cap?.every ?? null,
    project: validProject(terms.project),
    images: images === 'wait' ? images : null,
    tags: validTags(terms.tags),
    regions: validRegions(terms.regions, 'key'),
  };
}

/** The terms of a row, for views. */
export function termsOfRow(row: TermsRow): KeyTerms {
  const { name, models, expiresAt, addresses, limits, project, images, tags, regions } = row;
  return {
    name,
    ...(project === null ? {} : { project }),
    ...(models === null ? {} : { models }),
    ...(expiresAt === null ? {} : { expiresAt: expiresAt.getTime() }),
    ...(addresses === null ? {} : { addresses }),
    ...(limits === null ? {} : { limits }),
    ...given(capOf(row)),
    ...(images === 'wait' ? { images } : {}),
    ...(tags === null ? {} : { tags }),
    ...(regions === null ? {} : { regions }),
  };
}

/** The row's spend cap. */
export function capOf({ capAmount, capEvery }: Pick<TermsRow, 'capAmount' | 'capEvery'>): KeyCap | undefined {
  const every = capPeriods.find((period) => period === capEvery);
  return capAmount === null || every === undefined ? undefined : { amount: money(capAmount), every };
}

function given(cap: KeyCap | undefined): { cap?: KeyCap } {
  return cap === undefined ? {} : { cap };
}

/** A display name, trimmed. Throws invalid_request. */
export function validName(text: string, field: string): string {
  const name = text.trim();
  if (name === '' || name.length > maxNameLength || /\p{Cc}/u.test(name))
    throw invalid(`A ${field} has 1 to ${maxNameLength} characters and none that control the terminal.`, field);
  return name;
}

/** Throws invalid_request. */
export function validProject(text: string | undefined): string | null {
  if (text === undefined) return null;
  const project = validName(text, 'project');
  if (project === noProject) throw invalid(`"${noProject}" stands for keys without a project.`, 'project');
  return project;
}

export function validModels(models: readonly string[], owner: 'key' | 'project'): string[] {
  if (models.length === 0 || models.length > maxModels)
    throw invalid(`A ${owner} that is bound to models names 1 to ${maxModels} of them.`, 'models');
  return models.map((model) => validName(model, 'models'));
}

export function validRegions(regions: readonly string[] | undefined, owner: 'key' | 'project'): string[] | null {
  if (regions === undefined) return null;
  const named = [...new Set(regions.map((region) => region.trim()))].sort();
  if (named.length > 0 && named.length <= mostRegions && named.every((region) => regionName.test(region))) return named;
  throw invalid(
    `A ${owner} that is bound to regions names 1 to ${mostRegions} of them, in small letters, such as eu.`,
    'regions',
  );
}

function validAddresses(addresses: readonly string[]): string[] {
  const trimmed = addresses.map((address) => address.trim());
  const problem = addressProblem(trimmed);
  if (problem === undefined) return trimmed;
  throw invalid(`A key that is bound to addresses ${problem}.`, 'addresses');
}

/** The limits that are set; null: none is. */
function validLimits(limits: Limits | undefined): Limits | null {
  const set = limitNames.flatMap((name) => {
    const value = limits?.[name];
    if (value === undefined) return [];
    if (Number.isSafeInteger(value) && value >= 1 && value <= maxLimits[name]) return [[name, value] as const];
    throw invalid(`The limit ${name} of a key is a whole number from 1 to ${maxLimits[name]}.`, `limits.${name}`);
  });
  return set.length === 0 ? null : Object.fromEntries(set);
}

function checkCap({ amount, every }: KeyCap): void {
  if (!capPeriods.includes(every)) throw invalid(`A spend cap is for ${capPeriods.join(', ')}.`, 'cap.every');
  if (amount <= 0n || amount > maxCap)
    throw invalid('A spend cap is above 0 and at most 1,000,000,000 USD.', 'cap.amount');
}
