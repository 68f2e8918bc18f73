/** Compiles an endpoint's plugins, the opening and the centre into one function, at boot and after each reload. */

import type { ContextKey, Endpoint, Plugin, PluginInstance } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Answer } from '../contract/message.ts';
import { isCostly, streamBody } from './body.ts';
import type { LiveExchange } from './exchange.ts';

/** A plugin of the gateway with its running instance. */
export interface InstalledPlugin {
  readonly plugin: Plugin;
  readonly instance: PluginInstance;
}

/** Rejects, and never throws. */
export type Run = (exchange: LiveExchange) => Promise<Answer>;
/** Fills the exchange's body; undefined: at once. May throw. */
type ReadBody = (exchange: LiveExchange) => undefined | Promise<void>;
/** A plugin's part of a chain. It captures the current `handle`: a reload may replace it, and running exchanges keep theirs. */
interface Layer {
  readonly name: string;
  readonly instance: PluginInstance;
  /** May throw instead of rejecting. */
  readonly handle: NonNullable<PluginInstance['handle']>;
  readonly retries: boolean;
}

/** The plugins with a `handle` that applies to this endpoint, in order. */
export function installedPlugins(endpoint: Endpoint, plugins: readonly InstalledPlugin[]): InstalledPlugin[] {
  return plugins.filter(({ instance }) => {
    if (instance.handle === undefined) return false;
    return instance.applies === undefined ? endpoint.handle === undefined : instance.applies(endpoint);
  });
}

/** The index of the first plugin that uses a context key which `open` sets: the endpoint is opened before it. */
export function openingIndex(endpoint: Endpoint, plugins: readonly InstalledPlugin[]): number {
  const setOnOpen = new Set(endpoint.setsOnOpen ?? []);
  const wants = (keys: readonly ContextKey<unknown>[] | undefined) => keys?.some((key) => setOnOpen.has(key)) === true;
  const index = plugins.findIndex(({ plugin }) => wants(plugin.requires) || wants(plugin.optional));
  return index === -1 ? plugins.length : index;
}

/**
 * Compiles the chain. `readBody` fills the exchange's body; `forward` is the centre of endpoints without a `handle`. A layer
 * that calls `next` twice without `retries` throws.
 */
export function compileChain(
  endpoint: Endpoint,
  plugins: readonly InstalledPlugin[],
  readBody: ReadBody,
  forward: Run,
): Run {
  const applied = installedPlugins(endpoint, plugins);
  const layers = applied.map(layerOf);
  const opening = openingIndex(endpoint, applied);
  const admitting = applied.slice(opening).flatMap(({ instance }) => (instance.admit === undefined ? [] : [instance]));
  const open = openingOf(endpoint, admitting, readBody);
  const centre: Run =
    endpoint.handle === undefined ? forward : async (exchange) => endpoint.handle!(exchange, () => forward(exchange));
  const run = (index: number, exchange: LiveExchange, isOpened = index !== opening): Promise<Answer> => {
    try {
      const opened = isOpened ? undefined : open(exchange);
      if (opened !== undefined) return opened.then(() => run(index, exchange, true));
      const layer = layers[index];
      if (layer === undefined) return centre(exchange);
      let called = false;
      return layer.handle.call(layer.instance, exchange, (branch) => {
        if (called && !layer.retries) throw new GatewayError('internal', `"${layer.name}" called next() twice`);
        called = true;
        // Every branch is a LiveExchange.
        return run(index + 1, (branch as LiveExchange | undefined) ?? exchange);
      });
    } catch (error) {
      // A function that is not async may refuse by throwing; `next` of the plugin above rejects all the same.
      return Promise.reject(error);
    }
  };
  return (exchange) => run(0, exchange);
}

function layerOf({ plugin, instance }: InstalledPlugin): Layer {
  return { name: plugin.name, instance, handle: instance.handle!, retries: plugin.retries === true };
}

/** Reads the body and opens the endpoint; undefined: at once. May throw. */
function openingOf(endpoint: Endpoint, admitting: readonly PluginInstance[], readBody: ReadBody): ReadBody {
  // Most endpoints look nothing up.
  const opened = (exchange: LiveExchange) => endpoint.open?.(exchange) ?? undefined;
  if (endpoint.body === 'none') return opened;
  if (endpoint.body === 'stream')
    return (exchange) => {
      exchange.request.openBody = () => streamBody(exchange);
      // Where `open` reads the body, plugins refuse before.
      const asks = endpoint.open !== undefined && admitting.length > 0 && isCostly(exchange.incoming);
      return asks ? admit(exchange, admitting).then(() => opened(exchange)) : opened(exchange);
    };
  return (exchange) => {
    const isAdmitted = admitting.length === 0 || !isCostly(exchange.incoming);
    const reading = isAdmitted ? readBody(exchange) : admit(exchange, admitting).then(() => readBody(exchange));
    return reading === undefined ? (endpoint.open?.(exchange) ?? undefined) : reading.then(() => opened(exchange));
  };
}

/** Asks the plugins in order; throws the first refusal. */
async function admit(exchange: LiveExchange, admitting: readonly PluginInstance[]): Promise<void> {
  for (const instance of admitting) if ((await instance.admit!(exchange)) === 'later') return;
}
