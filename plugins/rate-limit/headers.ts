/** Rate limit headers in the client's protocol. Pure. */

import type { Headers } from '../../core/contract/message.ts';
import { table } from '../../core/contract/table.ts';
import type { LimitStatus } from './limiter.ts';

type Resource = 'requests' | 'tokens';
type Dialect = (headers: Headers, resource: Resource, status: LimitStatus, now: number) => void;
interface Names {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Made once: a name that is put together for each answer would be looked up in V8's table of names each time. */
function namesOf(name: (resource: Resource, figure: keyof Names) => string): Record<Resource, Names> {
  const of = (resource: Resource): Names => ({
    limit: name(resource, 'limit'),
    remaining: name(resource, 'remaining'),
    reset: name(resource, 'reset'),
  });
  return { requests: of('requests'), tokens: of('tokens') };
}

const prefixedNames = namesOf((resource, figure) => `x-ratelimit-${figure}-${resource}`);
const timedNames = namesOf((resource, figure) => `anthropic-ratelimit-${resource}-${figure}`);

/** Reset as a Go duration: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers */
const prefixed: Dialect = (headers, resource, { limit, remaining, resetMs }) => {
  const names = prefixedNames[resource];
  headers[names.limit] = String(limit);
  headers[names.remaining] = String(remaining);
  headers[names.reset] = goDuration(resetMs);
};

/** Reset as an RFC 3339 time: https://platform.claude.com/docs/en/api/rate-limits#response-headers */
const timed: Dialect = (headers, resource, { limit, remaining, resetMs }, now) => {
  const names = timedNames[resource];
  headers[names.limit] = String(limit);
  headers[names.remaining] = String(remaining);
  headers[names.reset] = rfc3339(now + resetMs);
};

/** By client protocol. Protocols without an entry have no such headers; their refusals are in the body alone. */
const dialects: Readonly<Record<string, Dialect>> = table({ chat: prefixed, responses: prefixed, messages: timed });

/** Dialect of endpoints without a model. */
const plainProtocol = 'chat';

/** Sets the headers with the limit status for a client of `protocol`, and returns them; `now` is the wall clock. */
export function limitHeaders(
  protocol: string | undefined,
  statuses: readonly LimitStatus[],
  now: number,
  headers: Headers = {},
): Headers {
  const dialect = dialects[protocol ?? plainProtocol];
  if (dialect === undefined) return headers;
  let requests: LimitStatus | undefined;
  let tokens: LimitStatus | undefined;
  // Where the plan and the key both limit a resource, report the scarcer one.
  for (const status of statuses) {
    const { dimension, remaining } = status;
    if (dimension === 'tpm') {
      if (tokens === undefined || remaining < tokens.remaining) tokens = status;
    } else if (dimension !== 'concurrency' && (requests === undefined || remaining < requests.remaining))
      requests = status;
  }
  if (tokens !== undefined) dialect(headers, 'tokens', tokens, now);
  if (requests !== undefined) dialect(headers, 'requests', requests, now);
  return headers;
}

/** Format of Go's time.Duration in whole milliseconds: `0s`, `12ms`, `1.5s`, `6m0s`, `1h0m2.25s`. */
export function goDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  if (milliseconds < 1_000) return `${milliseconds}ms`;
  const minutes = Math.floor(milliseconds / 60_000);
  const seconds = `${(milliseconds % 60_000) / 1_000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/** Most answers within one second have the same time. */
let lastSecond = Number.NaN;
let lastText = '';

/** Whole seconds, rounded up, so that a client which waits until then is not too early. */
export function rfc3339(time: number): string {
  const second = Math.ceil(time / 1_000);
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1_000).toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastText;
}
