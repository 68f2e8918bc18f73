/** The onion of one endpoint, put together at boot and after each reload: plugins in the list's order, the opening, the centre. */
import type { Answer, Endpoint, Fact, Next, Part, Plugin } from './contract.ts';
import { GatewayError } from './errors.ts';
import type { LiveExchange } from './exchange.ts';

/** A plugin in this gateway, with the instance that runs. */
export interface Seat {
  readonly plugin: Plugin;
  readonly part: Part;
}

export type Run = (exchange: LiveExchange) => Promise<Answer>;
type Layer = (exchange: LiveExchange, next: Next) => Promise<Answer>;

/** The seats whose `handle` takes part in this endpoint, in order. */
export function seatsOf(endpoint: Endpoint, seats: readonly Seat[]): Seat[] {
  return seats.filter(({ part }) => {
    if (part.handle === undefined) return false;
    return part.applies === undefined ? endpoint.handle === undefined : part.applies(endpoint);
  });
}

/** Where the endpoint is opened: before the first seat that reads or finds a fact which `open` states. */
export function openingIndex(endpoint: Endpoint, seats: readonly Seat[]): number {
  const stated = new Set(endpoint.states ?? []);
  const wants = (facts: readonly Fact<unknown>[] | undefined) => facts?.some((fact) => stated.has(fact)) === true;
  const index = seats.findIndex(({ plugin }) => wants(plugin.reads) || wants(plugin.finds));
  return index === -1 ? seats.length : index;
}

/**
 * Compiles the chain. `readBody` fills the exchange's body, `forward` is the centre for endpoints that do not answer by
 * themselves. A layer that calls `next` twice without having declared `repeats` is a bug and throws.
 */
export function compileChain(
  endpoint: Endpoint,
  seats: readonly Seat[],
  readBody: (exchange: LiveExchange) => Promise<void>,
  forward: Run,
): Run {
  const taking = seatsOf(endpoint, seats);
  const layers: Layer[] = taking.map(({ plugin, part }) => guardNext(plugin, part));
  layers.splice(openingIndex(endpoint, taking), 0, openingLayer(endpoint, readBody));
  const centre: Run =
    endpoint.handle === undefined ? forward : async (exchange) => endpoint.handle!(exchange, () => forward(exchange));
  const run = (index: number, exchange: LiveExchange): Promise<Answer> => {
    const layer = layers[index];
    if (layer === undefined) return centre(exchange);
    // Every branch is a live exchange of its own.
    return layer(exchange, (branch) => run(index + 1, (branch as LiveExchange | undefined) ?? exchange));
  };
  return (exchange) => run(0, exchange);
}

function openingLayer(endpoint: Endpoint, readBody: (exchange: LiveExchange) => Promise<void>): Layer {
  const withBody = endpoint.body !== 'none';
  return async function open(exchange, next) {
    if (withBody) await readBody(exchange);
    const opening = endpoint.open?.(exchange);
    // As a rule nothing has to be looked up, and waiting for nothing would cost a turn.
    if (opening !== undefined) await opening;
    return next();
  };
}

/** The part's `handle` of now: a reload may replace it, and who is under way goes on with the one he began with. */
function guardNext(plugin: Plugin, part: Part): Layer {
  const handle = part.handle!;
  if (plugin.repeats === true) return (exchange, next) => handle.call(part, exchange, next);
  return (exchange, next) => {
    let called = false;
    return handle.call(part, exchange, () => {
      if (called) throw new GatewayError('internal', `"${plugin.name}" called next() twice`);
      called = true;
      return next();
    });
  };
}
