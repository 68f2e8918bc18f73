/** Event filters for features that an upstream lacks: unwrapping tools, stop texts, hidden reasoning. Pure. */

import { isObject, tryParse } from '../../../core/json/json.ts';
import type { ResponseMapping } from '../../common/canonical/codec.ts';
import type { Event, Sink } from '../../common/canonical/reply.ts';

/**
 * Returns the sink for an upstream's events; `sink` gets the events that the client asked for. Returns `sink` itself
 * if no filter is needed.
 */
export function emulating(mapping: ResponseMapping, sink: Sink): Sink {
  let outer = sink;
  if (mapping.hideReasoning) outer = withoutReasoning(outer);
  if (mapping.stop !== undefined && mapping.stop.length > 0) outer = stoppingAt(mapping.stop, outer);
  if (mapping.wrapped.size > 0) outer = unwrapping(mapping, outer);
  if (mapping.answerTool !== undefined) outer = answerToolAsText(mapping.answerTool, outer);
  return outer;
}

/** Reasoning that signs later parts must survive in the client's history: its block stays, without its text. */
function withoutReasoning(sink: Sink): Sink {
  return (event) => {
    if (event.type !== 'reasoning-delta') sink(event);
  };
}

/** Free-text tools that were declared as functions of one string: their input is sent when the wrapper is complete. */
function unwrapping(mapping: ResponseMapping, sink: Sink): Sink {
  const clientNames = new Set([...mapping.wrapped].map((name) => mapping.names.get(name)?.name ?? name));
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

/** Without the wrapper the whole text is the input. */
function unwrapped(json: string): string {
  const wrapper = tryParse(json);
  if (!isObject(wrapper)) return json;
  const { input } = wrapper;
  if (typeof input === 'string') return input;
  return Object.keys(wrapper).length === 0 ? '' : json;
}

/** The input of the forced tool is the structured answer itself; its end is no tool call then. */
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
      return sink({ type: 'text-end', block: event.block, choice: event.choice, opaqueState: undefined });
    } else if (event.type === 'stop' && event.reason === 'tool-calls' && !others.has(event.choice)) {
      return sink({ ...event, reason: 'stop' });
    }
    sink(event);
  };
}

interface Stops {
  readonly texts: readonly string[];
  readonly longest: number;
}

/** State of one choice: text that may begin a stop text is held until that is decided; open calls may end. */
interface Watch {
  held: string;
  hit: string | undefined;
  readonly calls: Set<number>;
}

/**
 * Ends an answer's text before the first stop text, with reason `stop-sequence`. Later text of the upstream is
 * dropped, but the stream is read to its end for the usage. Only texts are searched, as vendors do.
 */
function stoppingAt(texts: readonly string[], sink: Sink): Sink {
  const watches = new Map<number, Watch>();
  const stops: Stops = { texts, longest: Math.max(...texts.map(({ length }) => length)) };
  return (event) => {
    if (event.type === 'reply-start') return sink(event);
    const watch = watches.get(event.choice) ?? { held: '', hit: undefined, calls: new Set<number>() };
    watches.set(event.choice, watch);
    if (event.type === 'text-delta' && watch.hit === undefined) watchText(watch, event, stops, sink);
    else watchOther(watch, event, sink);
  };
}

function watchOther(watch: Watch, event: Exclude<Event, { type: 'reply-start' }>, sink: Sink): void {
  const { hit, calls } = watch;
  if (event.type === 'stop') {
    sink(hit === undefined ? event : { ...event, reason: 'stop-sequence', sequence: hit });
    return;
  }
  if (hit !== undefined) {
    if (calls.has(event.block)) sink(event);
    return;
  }
  if (event.type === 'tool-start') calls.add(event.block);
  if (event.type === 'text-end') releaseHeld(watch, event, sink);
  sink(event);
}

function releaseHeld(watch: Watch, { block, choice }: Extract<Event, { type: 'text-end' }>, sink: Sink): void {
  if (watch.held !== '') sink({ type: 'text-delta', block, choice, text: watch.held, logprobs: undefined });
  watch.held = '';
}

function watchText(watch: Watch, event: Extract<Event, { type: 'text-delta' }>, stops: Stops, sink: Sink): void {
  const text = watch.held + event.text;
  const hit = firstHit(text, stops.texts);
  const end = hit?.at ?? text.length - partialLength(text, stops);
  if (end > 0) sink({ ...event, text: text.slice(0, end) });
  watch.held = hit === undefined ? text.slice(end) : '';
  if (hit === undefined) return;
  watch.hit = hit.stop;
  sink({ type: 'text-end', block: event.block, choice: event.choice, opaqueState: undefined });
}

function firstHit(text: string, stops: readonly string[]): { at: number; stop: string } | undefined {
  let best: { at: number; stop: string } | undefined;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at !== -1 && (best === undefined || at < best.at)) best = { at, stop };
  }
  return best;
}

/** How many characters at the end may begin a stop text. */
function partialLength(text: string, { texts, longest }: Stops): number {
  for (let length = Math.min(longest - 1, text.length); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (texts.some((stop) => stop.length > length && stop.startsWith(tail))) return length;
  }
  return 0;
}
