/** What the API answers operators about codes, prices, money, nodes, the audit log, tokens and the configuration, as JSON. */
import type { CatalogueEntry, Moment, PriceSheet, Role, Usd } from '../../api/types.ts';

export type Gift =
  | { readonly kind: 'balance'; readonly amount: Usd; readonly lastsDays: number | null }
  | { readonly kind: 'plan'; readonly plan: string }
  | { readonly kind: 'days'; readonly plan: string; readonly days: number };
export interface Code {
  readonly id: string;
  readonly prefix: string;
  readonly batch: string;
  readonly gift: Gift;
  readonly maxUses: number;
  readonly uses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: Moment | null;
  readonly revokedAt: Moment | null;
  readonly createdAt: Moment;
}
export interface Batch {
  readonly batch: string;
  readonly codes: number;
  readonly uses: number;
  readonly createdAt: Moment;
}
export interface MadeCodes {
  readonly batch: string;
  readonly codes: readonly string[];
}

export interface PricedModel extends CatalogueEntry {
  /** null: not sold. `yours`: with the ratio of the default plan. */
  readonly prices: PriceSheet | null;
  readonly cost: PriceSheet | null;
  /** When one of them changes next, as far as is written. */
  readonly changesAt: Moment | null;
  readonly multiplier: string | null;
  readonly source: string | null;
  readonly providers: readonly string[];
}
export interface PriceVersion {
  /** null: always. */
  readonly validFrom: Moment | null;
  readonly validUntil: Moment | null;
  readonly state: 'past' | 'now' | 'later';
  readonly sheet: PriceSheet;
}
/** The latest first. */
export interface PriceVersions {
  readonly prices: readonly PriceVersion[];
  readonly cost: readonly PriceVersion[];
}
export interface Quote {
  readonly cost: Usd;
  readonly ownCost: Usd | null;
  readonly ratio: string;
  readonly formula: string;
}

export interface MoneyTotals {
  readonly from: Moment;
  readonly until: Moment;
  readonly revenue: Usd;
  readonly ownCost: Usd;
  readonly margin: Usd;
  readonly absorbed: Usd;
  readonly credited: Usd;
  readonly sold: Usd;
  readonly refunded: Usd;
  readonly lapsed: Usd;
}
export interface Reconciliation {
  readonly checkedAt: Moment;
  readonly ok: boolean;
  readonly findings: readonly string[];
  readonly rows: number;
}
export interface NodeRow {
  readonly name: string;
  readonly self: boolean;
  readonly version: string | null;
  readonly startedAt: Moment | null;
  /** Its last sign of life, and how long ago that was when the gateway told. */
  readonly seenAt: Moment;
  readonly silentMs: number;
  readonly journalPending: number | null;
  readonly leases: number;
  readonly leased: Usd;
}
export interface AuditRow {
  readonly id: string;
  readonly at: Moment;
  readonly actor: string;
  readonly role: Role;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | null;
  readonly address: string;
  readonly result: string;
}
export interface Token {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly createdBy: string;
  readonly createdAt: Moment;
  readonly expiresAt: Moment | null;
  readonly lastUsedAt: Moment | null;
}
export interface ConfigFile {
  readonly name: string;
  readonly text: string;
  readonly writable: boolean;
}
export interface ConfigAnswer {
  readonly files: readonly ConfigFile[];
  readonly schema: Readonly<Record<string, unknown>>;
  readonly loadedAt: Moment;
  readonly generation: number;
}
export interface ConfigCheck {
  readonly problems: readonly { readonly where: string; readonly message: string }[];
  readonly notices: readonly { readonly level: 'info' | 'warning'; readonly text: string }[];
  readonly changes: readonly { readonly section: string; readonly restart: boolean }[];
}
export interface Handover {
  readonly mailed: boolean;
  readonly link: string | null;
}
