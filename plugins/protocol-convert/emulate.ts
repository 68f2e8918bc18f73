/** Does for an upstream what it cannot do itself: opens wrappers, stops at texts, hides reasoning. Filters of events. Pure. */
import type { WayBack } from './codec.ts';
import { isObject, tryParse } from './json.ts';
import type { Event, Sink } from './reply.ts';

/** The sink to tell an upstream's events to, so that `sink` gets what the client asked for. The same one if nothing is needed. */
export function emulating(way: WayBack, sink: Sink): Sink {
  let outer = sink;
  if (way.hideReasoning) outer = withoutReasoning(outer);
  if (way.stop !== undefined && way.stop.length > 0) outer = stoppingAt(way.stop, outer);
  if (way.wrapped.size > 0) outer = unwrapping(way, outer);
  if (way.answerTool !== undefined) outer = answerToolAsText(way.answerTool, outer);
  return outer;
}

/** Reasoning that signs what follows must survive in the client's history: its block stays, without its text. */
function withoutReasoning(sink: Sink): Sink {
  return (event) => {
    if (event.type !== 'reasoning-delta') sink(event);
  };
}

/** Free-text tools that were declared as functions of one string: their input goes out when the wrapper is whole. */
function unwrapping(way: WayBack, sink: Sink): Sink {
  const clientNames = new Set([...way.wrapped].map((name) => way.names.get(name)?.name ?? name));
  const held = new Map<number, string>();
  return (event) => {
    if (event.type === 'tool-start' && clientNames.has(event.name)) {
      held.set(event.block, '');
      sink({ ...event, custom: true });
    } else if (event.type === 'tool-delta' && held.has(event.block)) {
      held.set(event.block, held.get(event.block)! + event.text);
    } else if (event.type === 'tool-end' && held.has(event.block)) {
      const { block, choice } = event;
      const text = unwrapped(held.get(block)!);
      held.delete(block);
      if (text !== '') sink({ type: 'tool-delta', block, choice, text });
      sink(event);
    } else sink(event);
  };
}

/** A model that forgot the wrapper meant its text itself. */
function unwrapped(json: string): string {
  const wrapper = tryParse(json);
  if (!isObject(wrapper)) return json;
  const { input } = wrapper;
  if (typeof input === 'string') return input;
  return Object.keys(wrapper).length === 0 ? '' : json;
}

/** The forced tool through which a structured answer came is that answer; the end is no call then. */
function answerToolAsText(name: string, sink: Sink): Sink {
  const blocks = new Set<number>();
  const others = new Set<number>();
  return (event) => {
    if (event.type === 'tool-start') {
      if (event.name !== name) others.add(event.choice);
      else {
        blocks.add(event.block);
        return sink({ type: 'text-start', block: event.block, choice: event.choice });
      }
    } else if (event.type === 'tool-delta' && blocks.has(event.block)) {
      const { block, choice, text } = event;
      return sink({ type: 'text-delta', block, choice, text, logprobs: undefined });
    } else if (event.type === 'tool-end' && blocks.has(event.block)) {
      return sink({ type: 'text-end', block: event.block, choice: event.choice, keepsake: undefined });
    } else if (event.type === 'stop' && event.reason === 'tool-calls' && !others.has(event.choice)) {
      return sink({ ...event, reason: 'stop' });
    }
    sink(event);
  };
}

/** Of one choice: text that may be the beginning of a stop text is held back until it is not; calls that have begun may end. */
interface Watch {
  held: string;
  hit: string | undefined;
  readonly calls: Set<number>;
}

/**
 * Ends an answer's text at the first of the stop texts, which is left out, and tells `stop-sequence`. What the upstream
 * says after it is dropped; it is read to its end all the same, as its usage is told there. Only texts are looked at, as
 * the vendors that can do it do.
 */
function stoppingAt(stops: readonly string[], sink: Sink): Sink {
  const watches = new Map<number, Watch>();
  const longest = Math.max(...stops.map((stop) => stop.length));
  return (event) => {
    if (event.type === 'reply-start') return sink(event);
    const watch = watches.get(event.choice) ?? { held: '', hit: undefined, calls: new Set<number>() };
    watches.set(event.choice, watch);
    if (event.type === 'stop') {
      const { hit } = watch;
      return sink(hit === undefined ? event : { ...event, reason: 'stop-sequence', sequence: hit });
    }
    if (watch.hit !== undefined) {
      if (watch.calls.has(event.block)) sink(event);
      return;
    }
    if (event.type === 'text-delta') return watchText(watch, event, stops, longest, sink);
    if (event.type === 'tool-start') watch.calls.add(event.block);
    else if (event.type === 'text-end' && watch.held !== '') {
      sink(textDelta(event, watch.held));
      watch.held = '';
    }
    sink(event);
  };
}

function watchText(
  watch: Watch,
  event: Extract<Event, { type: 'text-delta' }>,
  stops: readonly string[],
  longest: number,
  sink: Sink,
): void {
  const text = watch.held + event.text;
  const hit = firstHit(text, stops);
  const end = hit?.at ?? text.length - partialLength(text, stops, longest);
  if (end > 0) sink({ ...event, text: text.slice(0, end) });
  watch.held = hit === undefined ? text.slice(end) : '';
  if (hit === undefined) return;
  watch.hit = hit.stop;
  sink({ type: 'text-end', block: event.block, choice: event.choice, keepsake: undefined });
}

function textDelta({ block, choice }: { block: number; choice: number }, text: string): Event {
  return { type: 'text-delta', block, choice, text, logprobs: undefined };
}

function firstHit(text: string, stops: readonly string[]): { at: number; stop: string } | undefined {
  let best: { at: number; stop: string } | undefined;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at !== -1 && (best === undefined || at < best.at)) best = { at, stop };
  }
  return best;
}

/** How many characters at the end could be the beginning of a stop text. */
function partialLength(text: string, stops: readonly string[], longest: number): number {
  for (let length = Math.min(longest - 1, text.length); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (stops.some((stop) => stop.length > length && stop.startsWith(tail))) return length;
  }
  return 0;
}
