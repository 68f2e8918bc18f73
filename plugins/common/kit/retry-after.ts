/** Parses an upstream's retry delay from its headers or error body. Pure. */
import type { Headers } from '../../../core/contract/message.ts';
import { isObject, listOf, objectOf } from '../../../core/json/json.ts';

/** Longer waits are not believed to be meant for one request. */
const maxRetryAfterMs = 3_600_000;

/**
 * Milliseconds, at most an hour; undefined when nothing was said or it makes no sense. Read are `retry-after-ms`,
 * `retry-after` in seconds or as an HTTP date (RFC 9110, 10.2.3) and `google.rpc.RetryInfo`. `now` is wall-clock milliseconds.
 */
export function retryAfterMs(headers: Headers, body: unknown, now: number): number | undefined {
  return (
    sane(decimal(headers['retry-after-ms'])) ??
    sane(seconds(headers['retry-after'])) ??
    sane(untilDate(headers['retry-after'], now)) ??
    sane(retryInfo(body))
  );
}

function sane(waitMs: number | undefined): number | undefined {
  if (waitMs === undefined || !Number.isFinite(waitMs) || waitMs < 0) return undefined;
  return Math.min(Math.ceil(waitMs), maxRetryAfterMs);
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}(?:\.\d{1,9})?$/.test(text.trim()) ? Number(text) : undefined;
}

function seconds(text: string | undefined): number | undefined {
  const value = decimal(text);
  return value === undefined ? undefined : value * 1000;
}

function untilDate(text: string | undefined, now: number): number | undefined {
  if (text === undefined || !/[a-z]{3}/i.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** `{error: {details: [{retryDelay: "34.07s"}]}}` */
function retryInfo(body: unknown): number | undefined {
  const error = objectOf(objectOf(body)?.['error']);
  for (const detail of listOf(error?.['details'])) {
    const delay = isObject(detail) ? detail['retryDelay'] : undefined;
    const match = typeof delay === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(delay) : null;
    if (match !== null) return Number(match[1]) * 1000;
  }
  return undefined;
}
