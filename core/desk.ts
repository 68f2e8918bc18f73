/** Services by which people look at a gateway and steer it: what the console and its API stand on. Types alone. */
import { defineService } from './contract.ts';
import type { Money } from './money.ts';
import type { Limits, PlanOffer } from './pool.ts';
import type { PriceBook } from './prices.ts';
import type { KeyCap } from './vocabulary.ts';

export * from './desk-bodies.ts';
export * from './desk-money.ts';
export * from './desk-upstreams.ts';

// All times are wall-clock milliseconds. Whoever asks says for which account; undefined: for all of them.

/** A part of a long list, newest first unless said otherwise. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Where the next page begins; undefined: this was the last. */
  readonly next: string | undefined;
}
export interface PageAsk {
  /** 1 to 500. */
  readonly limit: number;
  /** `next` of the page before. One that is not readable is an invalid_request of the field `after`. */
  readonly after?: string | undefined;
}
/** From inclusive, until exclusive. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

// ------------------------------------------------------------------------------------------------------------- accounts

export interface AccountView {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly planEndsAt: number | undefined;
  readonly multiplier: string | undefined;
  readonly disabled: boolean;
  readonly createdAt: number;
}
/** What a key may do; absent members: no such bound. */
export interface KeyTerms {
  readonly name: string;
  readonly models?: readonly string[] | undefined;
  readonly expiresAt?: number | undefined;
  /** Addresses and CIDR ranges it may be used from. */
  readonly addresses?: readonly string[] | undefined;
  /** Beside those of the plan. */
  readonly limits?: Limits | undefined;
  /** What it may spend in each calendar period (UTC); `ever`: altogether. */
  readonly cap?: KeyCap | undefined;
}
export interface KeyView extends KeyTerms {
  readonly id: string;
  readonly accountId: string;
  /** Its first characters. */
  readonly prefix: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
  readonly revokedAt: number | undefined;
}

/** Accounts and keys, kept by whoever admits callers. `not_found` for a key that is not this account's. */
export interface AccountDesk {
  /** Part of a name, or an id; ordered by name. */
  search(
    filter: {
      readonly text?: string | undefined;
      readonly plan?: string | undefined;
      readonly disabled?: boolean | undefined;
    },
    page: PageAsk,
  ): Promise<Page<AccountView>>;
  find(accountId: string): Promise<AccountView | undefined>;
  rename(accountId: string, name: string): Promise<void>;
  setDisabled(accountId: string, disabled: boolean): Promise<void>;
  /** Decimal text; undefined: 1. */
  setMultiplier(accountId: string, multiplier: string | undefined): Promise<void>;
  keys(accountId: string | undefined, page: PageAsk): Promise<Page<KeyView>>;
  /** `key` is told this once. */
  createKey(
    accountId: string,
    terms: KeyTerms,
  ): Promise<{ readonly id: string; readonly key: string; readonly prefix: string }>;
  updateKey(accountId: string, keyId: string, terms: KeyTerms): Promise<KeyView>;
  revokeKey(accountId: string, keyId: string): Promise<KeyView>;
}
export const accountDesk = defineService<AccountDesk>('account desk');

// ------------------------------------------------------------------------------------------------------------- requests

export interface RequestView {
  readonly id: string;
  readonly receivedAt: number;
  readonly operation: string;
  readonly protocol: string | undefined;
  readonly accountId: string | undefined;
  readonly keyId: string | undefined;
  readonly model: string | undefined;
  /** Operators alone are told these three. */
  readonly provider: string | undefined;
  readonly upstreamModel: string | undefined;
  readonly upstreamId: string | undefined;
  readonly streamed: boolean;
  readonly status: number;
  readonly outcome: 'complete' | 'client_left' | 'failed';
  readonly errorKind: string | undefined;
  readonly errorCode: string | undefined;
  readonly attempts: number;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly usage: Readonly<Record<string, number>> | undefined;
  readonly usageEstimated: boolean | undefined;
  readonly finish: string | undefined;
  /** What a translation left out, by the client's names. */
  readonly dropped: readonly string[];
  /** Decisions in their order, for people: limit, price, route, conversion. */
  readonly story: readonly StoryLine[];
}
export interface StoryLine {
  /** Milliseconds from arrival. */
  readonly atMs: number;
  /** Name of the plugin that tells it. */
  readonly by: string;
  readonly text: string;
  /** It names a provider or one of its keys: clients are not told it. */
  readonly operator?: true | undefined;
}
export interface RequestFilter extends Span {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly operation?: string | undefined;
  /** `ok`: 2xx and 3xx to the end; `client_error`: 4xx; `upstream_error`: 5xx or broken off; `left`: the client did. */
  readonly result?: RequestResult | undefined;
}
export type RequestResult = 'ok' | 'client_error' | 'upstream_error' | 'left';
/** Percentiles in milliseconds; undefined: nothing was measured. */
export interface Percentiles {
  readonly p50: number | undefined;
  readonly p95: number | undefined;
  readonly p99: number | undefined;
}
export interface RequestSums {
  readonly requests: number;
  readonly results: Readonly<Record<RequestResult, number>>;
  readonly firstByte: Percentiles;
  readonly total: Percentiles;
}
/** Rows of the request log; written within a second after the answer's end. */
export interface RequestDesk {
  list(filter: RequestFilter, page: PageAsk): Promise<Page<RequestView>>;
  find(id: string, accountId: string | undefined): Promise<RequestView | undefined>;
  sums(filter: RequestFilter): Promise<RequestSums>;
  /** Buckets that begin in the span, oldest first, empty ones too; at most 1,500. */
  series(filter: RequestFilter, bucketMs: number): Promise<readonly (RequestSums & { readonly at: number })[]>;
  /** The largest groups first. */
  groups(
    filter: RequestFilter,
    by: 'model' | 'provider' | 'operation' | 'account' | 'key',
    limit: number,
  ): Promise<readonly (RequestSums & { readonly group: string })[]>;
}
export const requestDesk = defineService<RequestDesk>('request desk');

// ----------------------------------------------------------------------------------------------------------------- shop

export type CodeGift =
  | { readonly kind: 'balance'; readonly amount: Money; readonly lastsMs: number | undefined }
  | { readonly kind: 'plan'; readonly plan: string }
  | { readonly kind: 'days'; readonly plan: string; readonly days: number };
export interface CodeView {
  readonly id: string;
  readonly prefix: string;
  readonly batch: string;
  readonly gift: CodeGift;
  readonly maxUses: number;
  readonly uses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  readonly revokedAt: number | undefined;
  readonly createdAt: number;
}
export interface ShopDesk {
  /** Plans that can be bought. */
  offers(): readonly PlanOffer[];
  codes(filter: { readonly batch?: string | undefined }, page: PageAsk): Promise<Page<CodeView>>;
  batches(): Promise<
    readonly { readonly batch: string; readonly codes: number; readonly uses: number; readonly createdAt: number }[]
  >;
  /** The codes are told this once. */
  createCodes(wanted: {
    readonly batch: string | undefined;
    readonly gift: CodeGift;
    readonly count: number;
    readonly maxUses: number;
    readonly oncePerAccount: boolean;
    readonly expiresAt: number | undefined;
  }): Promise<{ readonly batch: string; readonly codes: readonly string[] }>;
  /** An id or a batch. Resolves with how many were revoked. */
  revokeCodes(named: string): Promise<number>;
}
export const shopDesk = defineService<ShopDesk>('shop desk');

// ---------------------------------------------------------------------------------------------------------------- tasks

export interface TaskView {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly kind: 'image' | 'video';
  readonly model: string;
  readonly state: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired';
  readonly progress: number;
  readonly prompt: string;
  readonly createdAt: number;
  readonly completedAt: number | undefined;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Signed addresses that expire. */
  readonly results: readonly { readonly url: string; readonly mediaType: string }[];
  readonly cancellable: boolean;
}
export interface TaskDesk {
  list(
    filter: {
      readonly accountId?: string | undefined;
      readonly kind?: 'image' | 'video' | undefined;
      readonly states?: readonly TaskView['state'][] | undefined;
    },
    page: PageAsk,
    host: string | undefined,
  ): Promise<Page<TaskView>>;
  find(id: string, accountId: string | undefined, host: string | undefined): Promise<TaskView | undefined>;
  /** 409 for what has begun, not_found for what is not this account's. */
  cancel(id: string, accountId: string | undefined, signal: AbortSignal): Promise<void>;
}
export const taskDesk = defineService<TaskDesk>('task desk');

// --------------------------------------------------------------------------------------------------------------- prices

export interface PricedModel {
  readonly id: string;
  readonly ownedBy: string;
  readonly displayName: string;
  readonly kind: 'chat' | 'image' | 'video';
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly modalities: readonly string[];
  /** undefined: not sold. */
  readonly prices: PriceBook | undefined;
  readonly cost: PriceBook | undefined;
  readonly multiplier: string | undefined;
  readonly source: string | undefined;
  readonly providers: readonly string[];
}
export interface PriceDesk {
  list(): readonly PricedModel[];
  /** What a request would cost now, in the words of the formula; `ratio` on top of the model's own. */
  quote(
    model: string,
    usage: Readonly<Record<string, number>>,
    ratio: string,
  ): { readonly cost: Money; readonly ownCost: Money | undefined; readonly formula: string };
}
export const priceDesk = defineService<PriceDesk>('price desk');

// --------------------------------------------------------------------------------------------------------------- config

export interface ConfigProblem {
  /** `file.yaml:12`, or the file alone. */
  readonly where: string;
  readonly message: string;
}
export interface ConfigView {
  /** Files that the gateway was read from, the file itself first, with their text. */
  readonly files: readonly { readonly name: string; readonly text: string; readonly writable: boolean }[];
  /** JSON Schema of a gateway file. */
  readonly schema: object;
  readonly loadedAt: number;
  /** Counts reloads. */
  readonly generation: number;
}
export interface ConfigCheck {
  readonly problems: readonly ConfigProblem[];
  readonly notices: readonly { readonly level: 'info' | 'warning'; readonly text: string }[];
  /** Sections that would change, and those that take effect only after a restart. */
  readonly changes: readonly { readonly section: string; readonly restart: boolean }[];
}
/** The gateway's own file. Provided by the core; nobody else need be there. */
export interface ConfigDesk {
  view(): Promise<ConfigView>;
  /** What a file's new text would mean; nothing changes. */
  check(file: string, text: string): Promise<ConfigCheck>;
  /** Checks, writes and takes it up at once; throws invalid_request with the first problem, conflict where the file has changed meanwhile. */
  save(file: string, text: string, previous: string): Promise<ConfigCheck>;
  /** Reads the files again. */
  reload(): Promise<ConfigCheck>;
}
export const configDesk = defineService<ConfigDesk>('config desk');
