/** Time as the pages divide it: days, hours and minutes of one time zone, the same for requests and money. */

import { z } from '@hono/zod-openapi';
import '../../../core/tools/temporal.ts';
import { zoneOf } from '../../../core/tools/time-zone.ts';
import type { Span } from '../../common/domain/admin/pages.ts';

const message = 'must be a time zone by its IANA name, such as Europe/Berlin';

export const zoneInput = z
  .string()
  .refine((name) => zoneOf(name) !== undefined, message)
  .transform((name) => zoneOf(name)!)
  .openapi({ type: 'string', example: 'Europe/Berlin' })
  .describe('The time zone whose days and hours are meant, by its IANA name; by default UTC.');
export const zoneQuery = z.object({ tz: zoneInput.optional() });

export const usualZone = 'UTC';

const zoned = (at: number, zone: string) => Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
const dayMinutes = 1_440;

interface SpanQuery {
  readonly from?: number | undefined;
  readonly until?: number | undefined;
  readonly tz?: string | undefined;
}

/** The span of a query; without a start so many days of its zone, today or the last day among them. */
export function spanOfDays({ from, until, tz = usualZone }: SpanQuery, now: number, days: number): Span {
  const end = until ?? now + 1;
  return { from: from ?? startOfDay(end - 1, tz, days - 1), until: end };
}

/** The first instant of the day that is `days` days before the day of `at`. */
export function startOfDay(at: number, zone: string, days = 0): number {
  return zoned(at, zone).startOfDay().subtract({ days }).startOfDay().epochMilliseconds;
}

/** The same times of the clock so many days earlier: of a day that has begun, what had passed of it then. */
export function daysEarlier({ from, until }: Span, zone: string, days: number): Span {
  const earlier = (at: number) => zoned(at, zone).subtract({ days }).epochMilliseconds;
  return { from: earlier(from), until: earlier(until) };
}

/**
 * The instants between which a span is taken apart, its ends first and last. Buckets of a day and more are whole days of the
 * zone, with 23 and 25 hours too; shorter ones are counted from the start of each day, and the last of a day ends with it.
 */
export function boundsOf({ from, until }: Span, minutes: number, zone: string, most: number): number[] {
  const bounds = [from];
  for (let at = from; bounds.length <= most; ) {
    at =
      minutes >= dayMinutes
        ? daysAfter(at, Math.ceil(minutes / dayMinutes), zone)
        : nextStep(at, minutes * 60_000, zone);
    if (at >= until) break;
    bounds.push(at);
  }
  return [...bounds, until];
}

/** Whole days from the first Monday on, or from the day of `at`: weeks begin on Mondays. */
function daysAfter(at: number, days: number, zone: string): number {
  const day = zoned(at, zone).startOfDay();
  const toNext = days === 7 ? 8 - day.dayOfWeek : days;
  return day.add({ days: toNext }).startOfDay().epochMilliseconds;
}

function nextStep(at: number, stepMs: number, zone: string): number {
  const start = startOfDay(at, zone);
  const next = start + (Math.floor((at - start) / stepMs) + 1) * stepMs;
  return Math.min(next, startOfDay(at, zone, -1));
}

const steps = [1, 5, 15, 30, 60, 180, 360, 720, dayMinutes, 7 * dayMinutes];
const mostUsual = 75;

/** Sums are kept by quarters of an hour; shorter steps are read from the rows, so for a short span alone. */
const quarterMinutes = 15;
const fineMinutes = 360;

/**
 * Minutes of a bucket: as asked for where they are not too many, else so that about 60 buckets cover the span. Of more than six
 * hours whole quarters of an hour.
 */
export function bucketMinutesOf({ from, until }: Span, wanted: number | undefined, most: number): number {
  const minutes = (until - from) / 60_000;
  const isFine = minutes <= fineMinutes;
  const requested = wanted === undefined || isFine ? wanted : Math.ceil(wanted / quarterMinutes) * quarterMinutes;
  // Each day may end with a bucket of its own.
  if (requested !== undefined && minutes / requested + minutes / dayMinutes + 2 <= most) return requested;
  const least = isFine ? 1 : quarterMinutes;
  return steps.find((step) => step >= least && minutes / step <= mostUsual) ?? steps.at(-1)!;
}
