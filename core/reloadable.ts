/** Parts that are made of their section alone, and made anew when it changes. Pure. */
import type { Part } from './contract.ts';

/** What a section decides of a part. */
export type Layer = Pick<Part, 'handle' | 'applies' | 'renderError'>;

/**
 * Completes `part` by the layer that its section makes, and by a `prepare` that replaces that layer by the new section's.
 * `layer` throws to refuse a section and keeps nothing beyond it: it is also called for sections that nobody takes up.
 * Exchanges that run go on in the layer that they began with.
 */
export function reloadable<Config>(part: Part<Config>, config: Config, layer: (config: Config) => Layer): Part<Config> {
  return Object.assign(part, layer(config), {
    prepare(next: Config) {
      const made = layer(next);
      return () => void Object.assign(part, made);
    },
  });
}
