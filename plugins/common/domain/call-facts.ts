/** What the request log knows of a call. It is kept in the call's own row, so that a charged call is one row for both plugins. */
import type { SQL } from 'drizzle-orm';
import { defineContextKey, defineService, type Outcome } from '../../../core/contract/contract.ts';
import type { SumTable } from '../rollups/table.ts';

/** The facts of a request that the row of its call lacks, as the journal keeps them. Texts are bounded and can be stored. */
export interface CallFacts {
  readonly kind: 'FACTS';
  /** The request's. */
  readonly id: string;
  readonly operation: string;
  /** The client's. */
  readonly protocol: string | undefined;
  /** As the client named it. */
  readonly asked: string | undefined;
  /** Provider of the last attempt, which may never have been sent. */
  readonly provider: string | undefined;
  readonly target: string | undefined;
  readonly streamed: boolean;
  readonly status: number;
  readonly outcome: Outcome['kind'];
  readonly errorKind: string | undefined;
  readonly errorCode: string | undefined;
  /** Attempts, with those that were not sent. */
  readonly tries: number;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly dropped: readonly string[] | undefined;
  /** The timeline, as JSON. */
  readonly story: string | undefined;
}

/** Columns of `requests` in JSON types, without the timeline, which is not part of the log line. */
export interface RequestRow {
  request_id: string;
  received_at: string;
  operation: string;
  protocol: string | undefined;
  account_id: string | undefined;
  key_id: string | undefined;
  person: string | undefined;
  project: string | undefined;
  model: string | undefined;
  provider: string | undefined;
  upstream_model: string | undefined;
  streamed: boolean;
  status: number;
  outcome: Outcome['kind'];
  error_kind: string | undefined;
  error_code: string | undefined;
  attempts: number;
  first_byte_ms: number | undefined;
  total_ms: number;
  bytes_in: number;
  bytes_out: number;
  usage: object | undefined;
  usage_estimated: boolean | undefined;
  finish: string | undefined;
  upstream_id: string | undefined;
  dropped: readonly string[] | undefined;
  /** Only in the log line, as the tags. */
  trace_id: string | undefined;
  tags?: string | undefined;
}

/** The row that the call of an exchange will have, or has. Set by billing. */
export interface CallRow {
  /** Adds the request's facts and its timeline, a text, once it has ended. False: there is no such row, or no room to wait for it. */
  complete(row: RequestRow, story: string | undefined): boolean;
}

export const callRow = defineContextKey<CallRow>('call row');

/** The rows of calls that have facts, as the request log reads them. */
export interface CallRows {
  /** A view with the columns of the table `requests`, but text in `account_id` and `key_id`. Its key is in the order of arrival. */
  readonly view: SQL;
  /** The ids of an account's calls with this tag, from `first` to below `end`. */
  tagged(accountId: string, tag: string, first: string, end: string): SQL;
  /** What the request with this id costs, in nano-USD; null without a settled call. */
  costOf(id: SQL): SQL;
  /** Removes the facts of requests that arrived before `before` (wall-clock milliseconds); money stays. */
  forgetFacts(before: number): Promise<void>;
}

export const callRows = defineService<CallRows>('call rows');

/** The sums that are kept of requests: billing adds what it writes the facts of. Its rows have the columns of the view. */
export const requestSumTable = defineService<SumTable>('sums of requests');
