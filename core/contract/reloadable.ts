/** Plugin instances that depend on their section alone and are rebuilt when it changes. Pure. */
import type { PluginInstance } from './contract.ts';

/** The members that a section determines. */
export type Layer = Pick<PluginInstance, 'handle' | 'applies' | 'renderError' | 'checks'>;

/**
 * Adds to `instance` the layer of its section and a `prepare` that replaces that layer. `layer` throws to refuse a section
 * and must have no side effects: it is also called for sections that are never applied.
 */
export function reloadable<Config>(
  instance: PluginInstance<Config>,
  config: Config,
  layer: (config: Config) => Layer,
): PluginInstance<Config> {
  return Object.assign(instance, layer(config), {
    reload: {
      prepare(next: Config) {
        const nextLayer = layer(next);
        return () => void Object.assign(instance, nextLayer);
      },
    },
  });
}
