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

/** An event as it is read: milliseconds since arrival, the id of its kind, its values. */
export type StoredEvent = readonly [at: number, id: string, ...values: EventValue[]];

const longestText = 300;
const mostValues = 40;
/** Stored instead of event values that could not be computed. */
const unavailable = 'could not be rendered';

/** Used again by each timeline: what it has is joined at once. */
const parts: (string | number)[] = [];

/**
 * The events as they are stored: `AT,ID,VALUE,…,;AT,ID,…`, without characters that JSON escapes. A value is nothing for null, `t` or `f`,
 * a number, or a text behind an apostrophe. `receivedAt` in wall-clock milliseconds; undefined: no events.
 */
export function storedTimeline(notes: readonly TimelineEvent[] | undefined, receivedAt: number): string | undefined {
  if (notes === undefined) return undefined;
  parts.length = 0;
  const count = Math.min(notes.length, maxTimelineEvents);
  for (let index = 0; index < count; index++) {
    const { at, kind, values } = notes[index]!;
    const eventValues = typeof values === 'function' ? valuesOf(values) : values;
    if (eventValues === undefined) continue;
    // The wall clock may step.
    const atMs = Math.max(0, at - receivedAt);
    parts.push(parts.length === 0 ? atMs : `;${atMs}`, kind.id);
    const length = Math.min(eventValues.length, mostValues);
    for (let place = 0; place < length; place++) parts.push(storedValue(eventValues[place]!));
  }
  return parts.length === 0 ? undefined : parts.join(',');
}

function storedValue(value: EventValue): string | number {
  if (typeof value === 'string') return plain.test(value) ? `'${value}` : (known.get(value) ?? remembered(value));
  if (typeof value === 'number') return Number.isFinite(value) ? value : '';
  if (value === true) return 't';
  return value === false ? 'f' : '';
}

/** The events of a stored timeline; earlier versions stored them as they are read. */
export function eventsOf(stored: string | readonly StoredEvent[] | null): readonly StoredEvent[] {
  if (typeof stored !== 'string') return stored ?? [];
  return stored.split(',;').map((event) => {
    const [at, id, ...values] = event.split(',');
    return [Number(at), id!, ...values.map(readValue)];
  });
}

function readValue(text: string): EventValue {
  if (text === '') return null;
  if (text.startsWith("'"))
    return text.slice(1).replace(/~([0-9a-f]{2})/g, (_all, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  return text === 't' || (text === 'f' ? false : Number(text));
}

/** Texts that need no look: shorter than any credential without `-` or `:`, and without characters that are escaped. */
const plain = /^[ !#-+./0-9<-[\]-}]{0,14}$/;

/** Stored forms of texts that recur: names of models, targets and keys. */
const known = new Map<string, string>();
const mostKnown = 1_000;
const longestKept = 64;

function remembered(text: string): string {
  const stored = `'${storable(text, longestText)}`.replace(/[,;"\\~\u0000-\u001f]/g, escaped);
  if (text.length <= longestKept) {
    if (known.size >= mostKnown) known.clear();
    // Copies: the text may be a part of a large one, which it would keep.
    known.set(copyOf(text), copyOf(stored));
  }
  return stored;
}

function escaped(character: string): string {
  return `~${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
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
    kind: id,
    values,
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
