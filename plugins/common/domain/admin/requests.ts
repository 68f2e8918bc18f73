/** The console's contract: the service that queries the request log. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { FindingFilter } from '../../guardrails/verdicts.ts';
import type { RebuildOptions } from '../../rollups/rebuild.ts';
import type { EventValue } from '../timeline.ts';
import type { KeySet } from './accounts.ts';
import type { Page, PageRequest, Span } from './pages.ts';

export interface RequestView {
  readonly id: string;
  readonly receivedAt: number;
  readonly operation: string;
  readonly protocol: string | undefined;
  readonly accountId: string | undefined;
  readonly keyId: string | undefined;
  /** The project that it was for; absent: none, or not known, as of rows of earlier versions. */
  readonly projectId?: string | undefined;
  readonly model: string | undefined;
  /** These three are for operators only. */
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
  /** Parameters that a translation dropped, by the client's names. */
  readonly dropped: readonly string[];
  /** Decisions in their order, for people: limit, price, route, conversion. */
  readonly story: readonly TimelineEntry[];
  /** Vendors' messages about failed attempts; for operators only. */
  readonly vendorWords?: readonly VendorWords[];
}

export interface VendorWords {
  /** Number of the attempt. */
  readonly attempt: number;
  readonly message: string | null;
  /** The vendor's own id of the request. */
  readonly requestId: string | null;
}

export interface TimelineEntry {
  /** Milliseconds from arrival. */
  readonly atMs: number;
  /** Name of the plugin that recorded it. */
  readonly by: string;
  /** In English. */
  readonly text: string;
  /** The id of its kind and its values, for texts in other languages. */
  readonly kind: string;
  readonly values: readonly EventValue[];
  /** It names a provider or one of its keys, so it is not shown to clients. */
  readonly operator?: true | undefined;
}

export interface RequestFilter extends Span {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly keys?: KeySet | undefined;
  readonly personId?: string | undefined;
  /** Only requests for these projects; an empty text stands for none, or not known, as of rows of earlier versions. */
  readonly projectIds?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly operation?: string | undefined;
  /** Leaves these operations out. */
  readonly withoutOperations?: readonly string[] | undefined;
  /** Leaves out failures with these causes. */
  readonly withoutCauses?: readonly string[] | undefined;
  /** `ok`: 2xx and 3xx to the end; `client_error`: 4xx; `upstream_error`: 5xx or broken off; `left`: the client disconnected. */
  readonly result?: RequestResult | undefined;
  /** Only failures with this cause. */
  readonly cause?: string | undefined;
  /** Only calls of the account with this tag, `NAME=VALUE`. Lists know it, sums do not. */
  readonly tag?: string | undefined;
  /** Only requests with such a finding, of the newest 50,000 of the span. Lists know it, sums do not. */
  readonly finding?: FindingFilter | undefined;
}

/** Causes of failures of the gateway itself, such as those of its own stores: no failures of a model or a provider. */
export const ownCauses: readonly string[] = [
  'store_unavailable',
  'balance_unavailable',
  'key_spend_unavailable',
  'keys_unavailable',
  'journal_unavailable',
  'idempotency_unavailable',
  'storage_failed',
  'storage_full',
  'restore_not_accepted',
  'internal',
];

/** Causes of calls that are refused before they could be served: with a wrong key, or for a model that there is not. */
export const noiseCauses: readonly string[] = ['invalid_api_key', 'model_not_found'];

export interface RequestListFilter extends RequestFilter {
  /** Newest first without it. */
  readonly sort?: RequestSort | undefined;
}

export const requestSorts = ['time', 'cost', 'tokens', 'firstByte', 'duration'] as const;

export interface RequestSort {
  readonly by: (typeof requestSorts)[number];
  readonly order: 'asc' | 'desc';
}

export interface RequestPage extends Page<RequestView> {
  /** Only the newest so many requests of the span were sorted: there may be more. Never of a list by time. */
  readonly sortedOf?: number | undefined;
}

export type RequestResult = 'ok' | 'client_error' | 'upstream_error' | 'left';

/** Percentiles in milliseconds; undefined: nothing was measured. */
export interface Percentiles {
  readonly p50: number | undefined;
  readonly p95: number | undefined;
  readonly p99: number | undefined;
}

export interface RequestCounts {
  readonly requests: number;
  readonly results: Readonly<Record<RequestResult, number>>;
}

export interface RequestTimes {
  readonly firstByte: Percentiles;
  readonly total: Percentiles;
}

export interface RequestSums extends RequestCounts, RequestTimes {}

export type RequestBucket = RequestSums & { readonly at: number };

/** Counts of requests by duration, from each edge to the next and beyond the last; edges are milliseconds in order, the first is 0. */
export interface DurationCounts {
  readonly edges: readonly number[];
  readonly firstByte: readonly number[];
  readonly total: readonly number[];
}

export type FailureResult = 'client_error' | 'upstream_error';

/** Failures with one cause: the code of their error, else its kind, else the status of the answer. */
export interface FailureCause {
  readonly result: FailureResult;
  readonly cause: string;
  readonly requests: number;
}

export type RequestGroup = 'model' | 'provider' | 'operation' | 'account' | 'key' | 'person' | 'project';

export type RecentGroup = RequestCounts & Pick<RequestTimes, 'firstByte'> & { readonly group: string };
export type RecentGroups = { readonly [By in 'model' | 'provider']: readonly RecentGroup[] };

/** Rows of the request log; written within a second after the answer's end. */
export interface RequestQueries {
  /** The same for pages and exports, which may lack what happened in the last seconds; absent: there is no replica to read. */
  readonly pages?: RequestQueries;
  list(filter: RequestListFilter, page: PageRequest): Promise<RequestPage>;
  find(id: string, accountId: string | undefined): Promise<RequestView | undefined>;
  sums(filter: RequestFilter): Promise<RequestSums>;
  durations(filter: RequestFilter): Promise<DurationCounts>;
  /** The most frequent first; `among`: of these causes alone. */
  causes(filter: RequestFilter, limit: number, among?: readonly string[]): Promise<readonly FailureCause[]>;
  /** From each of the instants to the next, such as the days of a time zone, empty ones too; at most 1,500. */
  seriesBetween(filter: Omit<RequestFilter, keyof Span>, bounds: readonly number[]): Promise<readonly RequestBucket[]>;
  /** The largest groups first. */
  groups(
    filter: RequestFilter,
    by: RequestGroup,
    limit: number,
  ): Promise<readonly (RequestSums & { readonly group: string })[]>;
  /** The same without times, which are most of the work. */
  groupCounts(
    filter: RequestFilter,
    by: RequestGroup,
    limit: number,
  ): Promise<readonly (RequestCounts & { readonly group: string })[]>;
  /** Times of each of these groups, to be read beside what else is asked of them. */
  groupTimes(
    filter: RequestFilter,
    by: RequestGroup,
    groups: readonly string[],
  ): Promise<(group: string) => RequestTimes>;
  /**
   * Groups by model and groups by provider, computed in one pass over the rows. Meant for spans of minutes. Only the `limit` most
   * frequent pairs of model and provider are counted. The largest groups come first.
   */
  recentGroups(filter: RequestFilter, limit: number): Promise<RecentGroups>;
  /** `seriesBetween` for each of these groups, without empty buckets. */
  seriesOfGroups(
    filter: Omit<RequestFilter, keyof Span>,
    bounds: readonly number[],
    by: RequestGroup,
    groups: readonly string[],
  ): Promise<readonly (RequestBucket & { readonly group: string })[]>;
  /** How many requests this process has recorded since its start; grows while there is traffic. */
  written(): number;
}

export const requestQueries = defineService<RequestQueries>('request queries');

/** For the command `audit`: whether the sums that the request log keeps are those of its rows. */
export interface RequestSumsAudit {
  /** Names sums that are not; `days`: of so many days, by chance, instead of all. */
  check(days: number | undefined): Promise<{ readonly subject: string }[]>;
  rebuild(options: RebuildOptions): Promise<void>;
}

export const requestSumsAudit = defineService<RequestSumsAudit>('request sums audit');
