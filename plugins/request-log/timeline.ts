/** Stored timelines: events bounded and masked on the way in, rendered on the way out. Pure. */

import { maskSecrets } from '../../core/contract/secret.ts';
import type { TimelineEntry } from '../common/domain/admin/requests.ts';
import {
  type EventValue,
  eventKind,
  maxTimelineEvents,
  type TimelineEvent,
  type TimelineEventKind,
} from '../common/domain/timeline.ts';

/** An event as stored: milliseconds since arrival, the id of its kind, its values. */
export type StoredEvent = readonly [at: number, id: string, ...values: EventValue[]];

const longestText = 300;
const mostValues = 40;
/** Stored in place of event values that could not be computed. */
const unavailable = 'could not be told';

/** The events as JSON; `receivedAt` in wall-clock milliseconds; undefined: no events. */
export function storedTimeline(notes: readonly TimelineEvent[] | undefined, receivedAt: number): string | undefined {
  if (notes === undefined) return undefined;
  const events: EventValue[][] = [];
  for (let index = 0; index < notes.length && events.length < maxTimelineEvents; index++) {
    const { at, kind, values } = notes[index]!;
    const eventValues = typeof values === 'function' ? valuesOf(values) : values;
    if (eventValues === undefined) continue;
    scratch[events.length] ??= [];
    const event = scratch[events.length]!;
    // The wall clock may step.
    event[0] = Math.max(0, at - receivedAt);
    event[1] = kind.id;
    const count = Math.min(eventValues.length, mostValues);
    for (let place = 0; place < count; place++) event[place + 2] = storableValue(eventValues[place]!);
    event.length = count + 2;
    events.push(event);
  }
  return events.length === 0 ? undefined : JSON.stringify(events);
}

/** The lists that events are copied into, used again for each request: new ones cost as much as all the rest of its row. */
const scratch: EventValue[][] = [];

/** An error in a plugin's values must not lose the row. */
function valuesOf(values: () => readonly EventValue[] | undefined): readonly EventValue[] | undefined {
  try {
    return values();
  } catch (error) {
    return [`${unavailable}: ${String(error)}`];
  }
}

function storableValue(value: EventValue): EventValue {
  return typeof value === 'string' ? storable(value, longestText) : value;
}

/** Renders an event; one of a plugin that is not installed any more shows its stored values. */
export function renderTimeline([atMs, id, ...values]: StoredEvent): TimelineEntry {
  const kind = eventKind(id);
  return {
    atMs,
    by: id.slice(0, id.indexOf('.')),
    text: (kind !== undefined && !isBroken(values) && textBy(kind, values)) || [id, ...values].join(' '),
    // The values of an unknown kind may name a provider, so clients do not see them.
    ...(kind?.operator === false ? {} : { operator: true }),
  };
}

/** Values stored by another version may not fit this renderer. */
function textBy(kind: TimelineEventKind, values: readonly EventValue[]): string | undefined {
  try {
    return kind.render(...values);
  } catch {
    return undefined;
  }
}

function isBroken([first]: readonly EventValue[]): boolean {
  return typeof first === 'string' && first.startsWith(unavailable);
}

/**
 * A text from outside, bounded, masked (a client may send its key as the model), and without the characters that JSON allows
 * and Postgres text does not: one such row would make its whole batch fail.
 */
export function storable(text: string, longest: number): string {
  return maskSecrets(text.slice(0, longest)).toWellFormed().replaceAll('\0', '\ufffd');
}
