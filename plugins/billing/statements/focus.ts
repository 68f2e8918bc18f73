/**
 * What calls cost, in the columns of FOCUS 1.3 (FinOps Open Cost and Usage Specification): the newest version that still has all columns of 1.0,
 * so that older tools read the same file. Payments, plans and what expires move the balance and are no costs, so they are no rows here. Pure.
 */
import { table } from '../../../core/contract/table.ts';
import { isObject } from '../../../core/json/json.ts';
import { cost, formatUsd } from '../../common/domain/money.ts';
import { tokenClasses, type Usage } from '../../common/domain/usage.ts';
import { decodePrice } from '../model/records.ts';
import type { Due, Head, Row } from './format.ts';

/** By name, as FOCUS asks for. Those that begin with x_ are the gateway's own. */
export const focusColumns = [
  ...['AvailabilityZone', 'BilledCost', 'BillingAccountId', 'BillingAccountName', 'BillingAccountType'],
  ...['BillingCurrency', 'BillingPeriodEnd', 'BillingPeriodStart', 'ChargeCategory', 'ChargeClass'],
  ...['ChargeDescription', 'ChargeFrequency', 'ChargePeriodEnd', 'ChargePeriodStart', 'CommitmentDiscountCategory'],
  ...['CommitmentDiscountId', 'CommitmentDiscountName', 'CommitmentDiscountStatus', 'CommitmentDiscountType'],
  ...['ConsumedQuantity', 'ConsumedUnit', 'ContractedCost', 'ContractedUnitPrice', 'EffectiveCost', 'HostProviderName'],
  ...['InvoiceIssuerName', 'ListCost', 'ListUnitPrice', 'PricingCategory', 'PricingQuantity', 'PricingUnit'],
  ...['ProviderName', 'PublisherName', 'RegionId', 'RegionName', 'ResourceId', 'ResourceName', 'ResourceType'],
  ...['ServiceCategory', 'ServiceName', 'ServiceProviderName', 'ServiceSubcategory', 'SkuId', 'SkuMeter'],
  ...['SkuPriceDetails', 'SkuPriceId', 'SubAccountId', 'SubAccountName', 'SubAccountType', 'Tags'],
  ...['x_Corrects', 'x_Due', 'x_DueAt', 'x_DueMonth', 'x_Reference', 'x_RequestId', 'x_Seq', 'x_Statement', 'x_Usage'],
] as const;

type Cells = Partial<Record<(typeof focusColumns)[number], string | number>>;

const hourMs = 3_600_000;
const categories = table<Record<string, string>>({ CHARGE: 'Usage', REFUND: 'Credit', DEBIT: 'Adjustment' });

/** Undefined: it is no cost. */
export function focusRow(head: Head, row: Row, issuer: string): unknown[] | undefined {
  const category = categories[row.kind];
  if (category === undefined) return undefined;
  const cells: Cells = {
    ...common(head, row, issuer),
    ChargeCategory: category,
    ...(category === 'Usage' && call(row)),
  };
  return focusColumns.map((name) => cells[name]);
}

/** Costs nothing: the calls that it is to be paid for are rows of their own. */
export function focusDue(head: Head, { month, due, due_at: dueAt }: Due, issuer: string): unknown[] {
  const at = instant(Date.parse(head.until) - hourMs);
  const cells: Cells = {
    ...common(head, { seq: '', at, kind: 'DUE', amount: '0' }, issuer),
    ChargeCategory: 'Adjustment',
    ChargeDescription: `To be paid of the credit line of ${month}`,
    ...{ x_Due: formatUsd(BigInt(due)), x_DueAt: instant(Date.parse(dueAt)), x_DueMonth: month },
  };
  return focusColumns.map((name) => cells[name]);
}

function common(head: Head, row: Row, issuer: string): Cells {
  const billed = formatUsd(-BigInt(row.amount));
  const hour = Math.floor(Date.parse(row.at) / hourMs) * hourMs;
  const { project, person, corrects } = row;
  const tags = { ...(project && { project }), ...(person && { person }) };
  return {
    BilledCost: billed,
    EffectiveCost: billed,
    ContractedCost: billed,
    ListCost: billed,
    BillingAccountId: head.account,
    BillingAccountName: head.account,
    BillingAccountType: 'Account',
    BillingCurrency: 'USD',
    BillingPeriodStart: instant(Date.parse(head.from)),
    BillingPeriodEnd: instant(Date.parse(head.until)),
    ChargePeriodStart: instant(hour),
    ChargePeriodEnd: instant(hour + hourMs),
    ...(corrects === undefined ? {} : { ChargeClass: 'Correction', x_Corrects: corrects }),
    ChargeDescription: descriptionOf(row),
    ChargeFrequency: row.kind === 'CHARGE' ? 'Usage-Based' : 'One-Time',
    HostProviderName: issuer,
    InvoiceIssuerName: issuer,
    ProviderName: issuer,
    PublisherName: issuer,
    ServiceProviderName: issuer,
    ServiceCategory: 'AI and Machine Learning',
    ServiceName: 'Model calls',
    ServiceSubcategory: 'Generative AI',
    ...(project ? { SubAccountId: project, SubAccountName: project, SubAccountType: 'Project' } : {}),
    ...(Object.keys(tags).length > 0 && { Tags: JSON.stringify(tags) }),
    ...{ x_Seq: row.seq, x_Statement: head.number },
    ...(row.request === undefined ? {} : { x_RequestId: row.request }),
    ...(row.reference === undefined ? {} : { x_Reference: row.reference }),
  };
}

/** A call is the unit that is priced, since a charge is rounded once: so many tokens at their prices do not come to it one by one. */
function call({ model = '', amount, usage, price, price_version: version, tier }: Row): Cells {
  const list = formatUsd(listOf(usage, price) ?? -BigInt(amount));
  const charged = formatUsd(-BigInt(amount));
  const tokens = tokenClasses.reduce((sum, name) => sum + (usage?.[name] ?? 0), 0);
  const details = Object.entries(price ?? {}).map(([name, amount]) => [`x_${name}`, formatUsd(BigInt(amount))]);
  return {
    ...{ ListCost: list, ListUnitPrice: list, ContractedUnitPrice: charged },
    ...{ PricingCategory: 'Standard', PricingQuantity: 1, PricingUnit: 'Requests' },
    ...{ ConsumedQuantity: tokens, ConsumedUnit: 'Tokens' },
    ...{ ResourceId: model, ResourceName: model, ResourceType: 'Model' },
    ...{ SkuId: model, SkuMeter: 'Calls', SkuPriceId: [model, version, tier].filter(Boolean).join('/') },
    ...(details.length > 0 && { SkuPriceDetails: JSON.stringify(Object.fromEntries(details)) }),
    ...(usage === undefined ? {} : { x_Usage: JSON.stringify(usage) }),
  };
}

/** By its prices alone, without the account's ratio. */
function listOf(usage: Row['usage'], price: Row['price']): bigint | undefined {
  try {
    return isObject(usage) && isObject(price) ? cost(usage as Usage, decodePrice(price)) : undefined;
  } catch {
    return undefined;
  }
}

function descriptionOf({ kind, model = '', reason, reference }: Row): string {
  if (kind === 'CHARGE') return `Call of ${model}${reason === undefined ? '' : ` (${reason})`}`;
  const what = kind === 'REFUND' ? 'Refund' : 'Debit';
  return reference === undefined ? what : `${what} ${reference}`;
}

/** Without fractions of a second. */
const instant = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;
