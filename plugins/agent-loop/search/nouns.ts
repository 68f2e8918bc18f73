/** What a run asks of a search, and what it has found. Types. */

export interface WantedSearch {
  readonly field: string;
  /** As `POST /v1/search` takes it: `-` leaves a domain out. */
  readonly domains: readonly string[];
  readonly country: string | undefined;
  /** "Oslo, NO". */
  readonly place: string | undefined;
  readonly zone: string | undefined;
  readonly results: number | undefined;
  /** Searches of the whole run. */
  readonly most: number;
}

export interface Page {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
  readonly date: string | null;
}

/** What a search has found. */
export interface Found {
  readonly query: string;
  readonly pages: readonly Page[];
  /** Why it found nothing, by the words of the protocol of messages; absent: it has searched. */
  readonly error?: 'too_many_requests' | 'invalid_tool_input' | 'max_uses_exceeded' | 'query_too_long' | 'unavailable';
}
