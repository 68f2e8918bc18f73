/** How full the limits are, in the words of the client's protocol. Pure. */
import type { Headers } from '../../core/contract.ts';
import type { Standing } from './limiter.ts';

type Resource = 'requests' | 'tokens';
type Dialect = (headers: Headers, resource: Resource, standing: Standing, now: number) => void;

/** Reset as a Go duration: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers */
const prefixed: Dialect = (headers, resource, { limit, remaining, resetMs }) => {
  headers[`x-ratelimit-limit-${resource}`] = String(limit);
  headers[`x-ratelimit-remaining-${resource}`] = String(remaining);
  headers[`x-ratelimit-reset-${resource}`] = goDuration(resetMs);
};

/** Reset as an RFC 3339 time: https://platform.claude.com/docs/en/api/rate-limits#response-headers */
const timed: Dialect = (headers, resource, { limit, remaining, resetMs }, now) => {
  headers[`anthropic-ratelimit-${resource}-limit`] = String(limit);
  headers[`anthropic-ratelimit-${resource}-remaining`] = String(remaining);
  headers[`anthropic-ratelimit-${resource}-reset`] = rfc3339(now + resetMs);
};

/** By the protocol that the client speaks. One that is not named has no such headers; it words a refusal in the body. */
const dialects: Readonly<Record<string, Dialect>> = { chat: prefixed, responses: prefixed, messages: timed };

/** Dialect of endpoints that name no model. */
const plainProtocol = 'chat';

/** The headers that tell a client of `protocol` where it stands; `now` is the wall clock. */
export function limitHeaders(protocol: string | undefined, standings: readonly Standing[], now: number): Headers {
  const headers: Headers = {};
  const dialect = dialects[protocol ?? plainProtocol];
  if (dialect === undefined) return headers;
  let requests: Standing | undefined;
  let tokens: Standing | undefined;
  // Of several limits on one thing, of the plan and of the key, the scarcer one is told.
  for (const standing of standings) {
    if (standing.dimension === 'tpm') tokens = scarcer(tokens, standing);
    else if (standing.dimension !== 'concurrency') requests = scarcer(requests, standing);
  }
  if (tokens !== undefined) dialect(headers, 'tokens', tokens, now);
  if (requests !== undefined) dialect(headers, 'requests', requests, now);
  return headers;
}

function scarcer(known: Standing | undefined, other: Standing): Standing {
  return known === undefined || other.remaining < known.remaining ? other : known;
}

/** As Go prints a time.Duration of whole milliseconds: `0s`, `12ms`, `1.5s`, `6m0s`, `1h0m2.25s`. */
export function goDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  if (milliseconds < 1_000) return `${milliseconds}ms`;
  const minutes = Math.floor(milliseconds / 60_000);
  const seconds = `${(milliseconds % 60_000) / 1_000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/** Whole seconds, rounded up: a client that waits until then does not come too early. */
export function rfc3339(time: number): string {
  return `${new Date(Math.ceil(time / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;
}
