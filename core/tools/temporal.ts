/** `Temporal` for a Node that has none, as those before version 26. Each file that uses it imports this one. */
import { createRequire } from 'node:module';

if (!('Temporal' in globalThis)) {
  const require = createRequire(import.meta.url);
  const { Temporal } = require('temporal-polyfill');
  Object.defineProperty(globalThis, 'Temporal', { value: Temporal, writable: true, configurable: true });
}
