/** What the API answers on the client's side, as JSON: money is decimal USD text, times are ISO 8601, absent things are null. */

/** Decimal USD, exact. */
export type Usd = string;
/** ISO 8601. */
export type Moment = string;

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** `after` of the next page; null: this was the last. */
  readonly next: string | null;
}

export type Role = 'client' | 'auditor' | 'operator';
export type Feature =
  | 'accounts'
  | 'requests'
  | 'bodies'
  | 'money'
  | 'wallet'
  | 'shop'
  | 'codes'
  | 'tasks'
  | 'upstreams'
  | 'tests'
  | 'prices'
  | 'plans'
  | 'config'
  | 'payments';

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly emailVerified: boolean;
  readonly twoFactor: boolean;
}
export interface Me {
  readonly role: Role;
  /** null: a script with a token; never in a browser. */
  readonly person: Person | null;
  /** null: has no account of its own. */
  readonly account: {
    readonly id: string;
    readonly name: string;
    readonly plan: string;
    readonly planEndsAt: Moment | null;
    readonly disabled: boolean;
  } | null;
  /** `origin`: base address that clients are set up with, without a path. */
  readonly gateway: { readonly name: string; readonly origin: string };
  /** Which parts this gateway has. A page whose part is not there is not shown. */
  readonly features: Readonly<Record<Feature, boolean>>;
}

export interface Info {
  readonly gateway: string;
  readonly signUp: 'open' | 'invite' | 'closed';
  readonly providers: readonly { readonly id: string; readonly name: string }[];
  readonly firstOperatorMissing: boolean;
  /** Whether mails are sent; without, links come from the operator. */
  readonly mail: boolean;
  readonly languages: readonly string[];
}

// ------------------------------------------------------------------------------------------------------------------ money

export interface Grant {
  readonly id: string;
  readonly kind: string;
  readonly reason: string;
  readonly amount: Usd;
  readonly remaining: Usd;
  readonly createdAt: Moment;
  readonly expiresAt: Moment | null;
}
export type WindowName = '5h' | 'day' | 'week' | 'month';
export interface SpendWindow {
  readonly name: WindowName;
  readonly limit: Usd;
  readonly spent: Usd;
  readonly startsAt: Moment;
  readonly endsAt: Moment;
}
export interface Pool {
  readonly balance: Usd;
  readonly spendable: Usd;
  readonly held: Usd;
  readonly grants: readonly Grant[];
  readonly windows: readonly SpendWindow[];
  readonly term: { readonly plan: string; readonly startsAt: Moment; readonly endsAt: Moment | null } | null;
}
export interface LedgerRow {
  readonly seq: string;
  readonly at: Moment;
  readonly accountId: string;
  readonly kind: string;
  readonly requestId: string | null;
  readonly reference: string | null;
  readonly reason: string | null;
  readonly amount: Usd;
  readonly held: Usd;
  readonly balanceAfter: Usd;
}
export interface Plan {
  readonly name: string;
  /** null: cannot be bought. */
  readonly price: Usd | null;
  readonly lastsDays: number | null;
  readonly renew: boolean;
  readonly limits: Readonly<Record<'rpm' | 'rpd' | 'tpm' | 'concurrency', number | null>>;
  readonly models: readonly string[] | null;
  readonly multiplier: string | null;
  readonly grant: { readonly amount: Usd; readonly every: 'day' | 'week' | 'month' } | null;
  readonly windows: Readonly<Record<WindowName, Usd | null>>;
}
export interface Redemption {
  readonly amount: Usd | null;
  readonly plan: string | null;
  readonly endsAt: Moment | null;
  readonly balance: Usd;
}
export interface Purchase {
  readonly plan: string;
  readonly price: Usd;
  readonly endsAt: Moment | null;
  readonly balance: Usd;
}
export interface Payment {
  readonly id: string;
  readonly amount: Usd;
  readonly state: 'open' | 'paid' | 'refunded' | 'expired';
  readonly createdAt: Moment;
  readonly paidAt: Moment | null;
}
export interface PaymentPage extends Page<Payment> {
  readonly least: Usd;
  readonly most: Usd;
  /** To choose from; others between the bounds can be paid too. */
  readonly amounts: readonly Usd[];
}

// ------------------------------------------------------------------------------------------------------------------- keys

export type CapPeriod = 'day' | 'week' | 'month' | 'ever';
export interface KeyTerms {
  readonly name: string;
  readonly models: readonly string[] | null;
  readonly addresses: readonly string[] | null;
  readonly limits: {
    readonly rpm?: number | undefined;
    readonly rpd?: number | undefined;
    readonly tpm?: number | undefined;
    readonly concurrency?: number | undefined;
  } | null;
  readonly cap: { readonly amount: Usd; readonly every: CapPeriod } | null;
  readonly expiresAt: Moment | null;
}
export interface KeyRow extends KeyTerms {
  readonly id: string;
  readonly prefix: string;
  readonly createdAt: Moment;
  readonly lastUsedAt: Moment | null;
  readonly revokedAt: Moment | null;
  readonly spent30d: Usd | null;
}
export interface NewKey {
  readonly id: string;
  readonly key: string;
  readonly prefix: string;
}

// --------------------------------------------------------------------------------------------------------------- requests

export type RequestResult = 'ok' | 'client_error' | 'upstream_error' | 'left';
export interface RequestRow {
  readonly id: string;
  readonly receivedAt: Moment;
  readonly operation: string;
  readonly protocol: string | null;
  readonly keyId: string | null;
  readonly model: string | null;
  readonly streamed: boolean;
  readonly status: number;
  readonly outcome: 'complete' | 'client_left' | 'failed';
  readonly errorKind: string | null;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly firstByteMs: number | null;
  readonly totalMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly usage: Readonly<Record<string, number>> | null;
  readonly usageEstimated: boolean | null;
  readonly finish: string | null;
  readonly cost: Usd | null;
  readonly refunded: Usd | null;
}
export interface Charge {
  readonly at: Moment;
  readonly cost: Usd;
  readonly refunded: Usd;
  readonly held: Usd;
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated: boolean;
  readonly ratio: string;
  readonly priceVersion: string;
  readonly tier: string | null;
  readonly formula: string;
}
export interface Attempt {
  readonly number: number;
  readonly startedAt: Moment;
  readonly result: 'running' | 'not_sent' | 'refused' | 'unknown' | 'answered';
  readonly status: number | null;
  readonly durationMs: number | null;
}
export interface RequestStory {
  readonly request: RequestRow;
  readonly dropped: readonly string[];
  readonly charge: Charge | null;
  readonly attempts: readonly Attempt[];
}
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}
export interface RequestSums {
  readonly requests: number;
  readonly results: Readonly<Record<RequestResult, number>>;
  readonly firstByte: Percentiles;
  readonly total: Percentiles;
}
export interface UsageSums extends RequestSums {
  readonly cost: Usd | null;
  readonly from: Moment;
  readonly until: Moment;
}
export interface UsageSeries {
  readonly bucketMs: number;
  readonly rows: readonly (RequestSums & { readonly at: Moment; readonly cost: Usd | null })[];
}

export interface Home {
  readonly pool: Pool | null;
  readonly today: { readonly requests: number; readonly cost: Usd | null };
  readonly month: { readonly requests: number; readonly cost: Usd | null };
  readonly byDay: readonly { readonly at: Moment; readonly requests: number; readonly cost: Usd | null }[];
  readonly byModel: readonly { readonly model: string; readonly requests: number; readonly cost: Usd | null }[];
  readonly errors: readonly RequestRow[];
}

// --------------------------------------------------------------------------------------------------------- models and tasks

export interface PriceLine {
  readonly class: string;
  readonly per: 'million' | 'piece';
  readonly official: Usd;
  readonly yours: Usd;
}
export interface PriceSheet {
  readonly version: string;
  readonly ratio: string;
  readonly lines: readonly PriceLine[];
  readonly tiers: readonly { readonly name: string; readonly lines: readonly PriceLine[] }[];
}
export interface CatalogueEntry {
  readonly id: string;
  readonly ownedBy: string;
  readonly displayName: string;
  readonly kind: 'chat' | 'image' | 'video';
  readonly contextTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly modalities: readonly string[];
}
export interface ModelRow extends CatalogueEntry {
  readonly allowed: boolean;
  readonly prices: PriceSheet | null;
  readonly lastHour: {
    readonly requests: number;
    readonly succeeded: number;
    readonly upstreamErrors: number;
    readonly firstByteP50Ms: number | null;
  } | null;
}
export type TaskState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired';
export interface TaskRow {
  readonly id: string;
  readonly requestId: string;
  readonly kind: 'image' | 'video';
  readonly model: string;
  readonly state: TaskState;
  /** 0 to 100. */
  readonly progress: number;
  readonly prompt: string;
  readonly createdAt: Moment;
  readonly completedAt: Moment | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly results: readonly { readonly url: string; readonly mediaType: string }[];
  readonly cancellable: boolean;
}
export interface TaskDetail extends TaskRow {
  readonly cost: Usd | null;
}
