/** What the key form holds, and the terms that it means. */
import i18next from 'i18next';
import type { CapPeriod, KeyRow, KeyTerms } from '../../api/types.ts';
import { localDecimals, localMinute, typedAmount } from '../../parts/format.ts';

type Expiry = 'never' | '7' | '30' | '90' | '365' | 'date';

/** As the fields hold it. */
export interface KeyFields {
  readonly name: string;
  readonly project: string;
  readonly models: string[];
  readonly addresses: string[];
  readonly expiry: Expiry;
  /** `2026-12-24T18:00`, in the viewer's zone. */
  readonly date: string;
  readonly capAmount: string;
  readonly capEvery: CapPeriod;
  readonly rpm: number | '';
  readonly rpd: number | '';
  readonly tpm: number | '';
  readonly concurrency: number | '';
  readonly images: KeyRow['images'];
  readonly tags: string[];
  readonly regions: string[];
}

const limitNames = ['rpm', 'rpd', 'tpm', 'concurrency'] as const;
const dayMs = 86_400_000;

const listed = (list: readonly string[] | null | undefined) => [...(list ?? [])];

export function fieldsOf(row: KeyRow | undefined): KeyFields {
  return {
    name: row?.name ?? '',
    project: row?.project ?? '',
    models: listed(row?.models),
    addresses: listed(row?.addresses),
    expiry: row === undefined || row.expiresAt === null ? 'never' : 'date',
    date: row === undefined || row.expiresAt === null ? '' : localMinute(new Date(row.expiresAt)),
    capAmount: localDecimals(row?.cap?.amount ?? '', i18next.language ?? 'en'),
    capEvery: row?.cap?.every ?? 'month',
    rpm: row?.limits?.rpm ?? '',
    rpd: row?.limits?.rpd ?? '',
    tpm: row?.limits?.tpm ?? '',
    concurrency: row?.limits?.concurrency ?? '',
    images: row?.images ?? 'task',
    tags: listed(row?.tags),
    regions: listed(row?.regions),
  };
}

/** Empty fields mean no bound. */
export function termsOf(fields: KeyFields, now: number): KeyTerms {
  const given = limitNames.filter((name) => fields[name] !== '');
  const amount = typedAmount(fields.capAmount);
  return {
    name: fields.name.trim(),
    project: fields.project.trim() || null,
    models: fields.models.length === 0 ? null : fields.models,
    addresses: fields.addresses.length === 0 ? null : fields.addresses,
    limits: given.length === 0 ? null : Object.fromEntries(given.map((name) => [name, fields[name]])),
    cap: amount === '' ? null : { amount, every: fields.capEvery },
    expiresAt: expiryOf(fields, now),
    images: fields.images,
    tags: fields.tags.length === 0 ? null : fields.tags,
    regions: fields.regions.length === 0 ? null : fields.regions,
  };
}

function expiryOf({ expiry, date }: KeyFields, now: number): string | null {
  if (expiry === 'never') return null;
  if (expiry === 'date') return date === '' ? null : new Date(date).toISOString();
  return new Date(now + Number(expiry) * dayMs).toISOString();
}

export const isAmount = (text: string): boolean => /^\d{1,12}(\.\d{1,9})?$/.test(text) && /[1-9]/.test(text);
