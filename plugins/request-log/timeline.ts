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
/** Stored instead of event values that could not be computed. */
const unavailable = 'could not be rendered';

/** The events as JSON; `receivedAt` in wall-clock milliseconds; undefined: no events. */
export function storedTimeline(notes: readonly TimelineEvent[] | undefined, receivedAt: number): string | undefined {
  if (notes === undefined) return undefined;
  const stored: EventValue[][] = [];
  for (let index = 0; index < notes.length && stored.length < maxTimelineEvents; index++) {
    const { at, kind, values } = notes[index]!;
    const eventValues = typeof values === 'function' ? valuesOf(values) : values;
    if (eventValues === undefined) continue;
    // The wall clock may step.
    const event: EventValue[] = [Math.max(0, at - receivedAt), kind.id, ...eventValues];
    bound(event);
    stored.push(event);
  }
  return stored.length === 0 ? undefined : JSON.stringify(stored);
}

function bound(event: EventValue[]): void {
  if (event.length > mostValues + 2) event.length = mostValues + 2;
  for (let place = 2; place < event.length; place++) {
    const value = event[place];
    if (typeof value === 'string' && !plain.test(value)) event[place] = known.get(value) ?? remembered(value);
  }
}

/** Texts that need no look: shorter than any credential without `-` or `:`. */
const plain = /^[ -,./0-9;-~]{0,14}$/;

/** Stored forms of texts that recur: names of models, targets and keys. */
const known = new Map<string, string>();
const mostKnown = 1_000;
const longestKept = 64;

function remembered(text: string): string {
  const stored = storable(text, longestText);
  if (text.length <= longestKept) {
    if (known.size >= mostKnown) known.clear();
    // Copies: the text may be a part of a large one, which it would keep.
    known.set(copyOf(text), copyOf(stored));
  }
  return stored;
}

function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

/** An error in a plugin's values must not lose the row. */
function valuesOf(values: () => readonly EventValue[] | undefined): readonly EventValue[] | undefined {
  try {
    return values();
  } catch (error) {
    return [`${unavailable}: ${String(error)}`];
  }
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
