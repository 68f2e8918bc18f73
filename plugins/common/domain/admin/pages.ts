/** The console's contract: pages and time spans of long lists. */

/** A part of a long list, newest first unless said otherwise. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Where the next page begins; undefined: this was the last. */
  readonly next: string | undefined;
}

export interface PageRequest {
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
