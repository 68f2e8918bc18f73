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
import { JsonText, latinLiteral } from './json-text.ts';

/** An event as stored: milliseconds since arrival, the id of its kind, its values. */
export type StoredEvent = readonly [at: number, id: string, ...values: EventValue[]];

const longestText = 300;
const mostValues = 40;
/** Stored instead of event values that could not be computed. */
const unavailable = 'could not be rendered';

/** The events as JSON; `receivedAt` in wall-clock milliseconds; undefined: no events. */
export function storedTimeline(notes: readonly TimelineEvent[] | undefined, receivedAt: number): string | undefined {
  if (notes === undefined) return undefined;
  let events = 0;
  json.begin();
  for (let index = 0; index < notes.length && events < maxTimelineEvents; index++) {
    const { at, kind, values } = notes[index]!;
    const eventValues = typeof values === 'function' ? valuesOf(values) : values;
    if (eventValues === undefined) continue;
    json.put(events === 0 ? '[[' : ',[');
    // The wall clock may step.
    json.putNumber(Math.max(0, at - receivedAt));
    json.put(idPart(kind.id));
    const count = Math.min(eventValues.length, mostValues);
    for (let place = 0; place < count; place++) putValue(eventValues[place]!);
    json.put(']');
    events += 1;
  }
  if (events === 0) return undefined;
  json.put(']');
  return json.text;
}

const json = new JsonText();

function putValue(value: EventValue): void {
  json.put(',');
  if (typeof value === 'string') putText(value);
  else if (typeof value === 'number') json.putNumber(value);
  else json.put(JSON.stringify(value ?? null));
}

function putText(text: string): void {
  if (!isPlain(text)) {
    json.put(literalOf(text));
    return;
  }
  json.put('"');
  json.put(text);
  json.put('"');
}

/** By the ids of kinds, which are few. */
const idParts = new Map<string, string>();

function idPart(id: string): string {
  let part = idParts.get(id);
  if (part === undefined) {
    part = `,${latinLiteral(id)}`;
    idParts.set(id, part);
  }
  return part;
}

/** Literals of texts that recur: names of models, targets and keys. */
const literals = new Map<string, string>();
const mostLiterals = 1_000;
const longestKept = 64;

function literalOf(text: string): string {
  const known = literals.get(text);
  if (known !== undefined) return known;
  const literal = latinLiteral(storable(text, longestText));
  if (text.length <= longestKept) {
    if (literals.size >= mostLiterals) literals.clear();
    // A copy: the text may be a part of a large one, which it would keep.
    literals.set(Buffer.from(text, 'utf16le').toString('utf16le'), literal);
  }
  return literal;
}

/** Shorter than any credential without `-` or `:`. */
const longestPlain = 14;

/** Whether the text is so short, and its characters so common, that it is stored as it is between quotes. */
function isPlain(text: string): boolean {
  if (text.length > longestPlain) return false;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c || unit === 0x2d || unit === 0x3a) return false;
  }
  return true;
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
