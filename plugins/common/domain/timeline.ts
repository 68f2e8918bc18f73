/** The timeline of a request: decisions that plugins record as values, rendered to text when they are read. */
import { defineContextKey, type Exchange } from '../../../core/contract/contract.ts';
import type { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { caller } from './accounts.ts';
import { attempts } from './calls.ts';

/** Values that JSON keeps; amounts of money are whole nano-USD in decimal. */
export type EventValue = string | number | boolean | null;

/** A kind of event. Stored rows contain its id and values, so both must stay compatible. */
export interface TimelineEventKind<Values extends readonly EventValue[] = readonly EventValue[]> {
  /** `plugin.event`. */
  readonly id: string;
  readonly render: (...values: Values) => string;
  /** Its text names a provider, a key or an upstream's message: for operators only. */
  readonly operator: boolean;
}

/** One decision. Values from a function are computed when the exchange has ended, and only if timelines are stored. */
export interface TimelineEvent {
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly kind: TimelineEventKind;
  readonly values: readonly EventValue[] | (() => readonly EventValue[] | undefined);
}

/** Set to an empty list by the plugin that stores timelines; without it nothing is recorded. */
export const timeline = defineContextKey<TimelineEvent[]>('timeline');

/** Most events of a timeline. */
export const maxTimelineEvents = 40;

const kinds = new Map<string, TimelineEventKind>();

/** Defines an event that the client may see: its text contains no secret and no provider's name. Throws for a duplicate id. */
export function defineEvent<Values extends readonly EventValue[]>(
  id: `${string}.${string}`,
  render: (...values: Values) => string,
): TimelineEventKind<Values> {
  return define({ id, render: render, operator: false });
}

/** Defines an event for operators only. */
export function defineOperatorEvent<Values extends readonly EventValue[]>(
  id: `${string}.${string}`,
  render: (...values: Values) => string,
): TimelineEventKind<Values> {
  return define({ id, render: render, operator: true });
}

function define<Values extends readonly EventValue[]>(kind: TimelineEventKind<Values>): TimelineEventKind<Values> {
  if (!/^[\w.-]+$/.test(kind.id))
    throw new Error(`the timeline event "${kind.id}" needs an id of letters, digits, ".", "-" and "_"`);
  if (kinds.has(kind.id)) throw new Error(`the timeline event "${kind.id}" is defined twice`);
  kinds.set(kind.id, kind as unknown as TimelineEventKind);
  return kind;
}

/** A vendor's own message about a failed attempt, scrubbed: for operators. */
export const vendorWordsEvent = defineOperatorEvent(
  'route.vendor',
  (number: number, message: string | null, requestId: string | null) => {
    const words = message === null ? '' : ` with the words “${message}”`;
    return `attempt ${number} failed at its vendor${words}${requestId === null ? '' : `, which calls it ${requestId}`}`;
  },
);

/** The kind of a stored event; undefined if its plugin is not installed any more. */
export function eventKind(id: string): TimelineEventKind | undefined {
  return kinds.get(id);
}

/** Records an event. A function is called when the exchange has ended; undefined: no event. */
export function recordEvent<Values extends readonly EventValue[]>(
  exchange: Exchange,
  at: number,
  kind: TimelineEventKind<Values>,
  values: readonly [...Values] | (() => readonly [...Values] | undefined),
): void {
  const notes = exchange.find(timeline);
  if (notes !== undefined && notes.length < maxTimelineEvents)
    notes.push({ at, kind: kind as unknown as TimelineEventKind, values });
}

/**
 * Records the vendor's own message, which may repeat what was sent, and its id of the request. `number`: the attempt's; by default
 * the latest one.
 */
export function recordVendorWords(
  exchange: Exchange,
  at: number,
  vendor: UpstreamRefusal['vendor'],
  number: number = exchange.find(attempts)?.at(-1)?.number ?? 1,
): void {
  if (vendor === undefined) return;
  const isKept = exchange.find(caller)?.retention !== 'none';
  const message = isKept ? vendor.message : undefined;
  recordEvent(exchange, at, vendorWordsEvent, [number, message ?? null, vendor.requestId ?? null]);
}
