/** Loaded before each process of the tests (`--import`): lets Node load the same few thousand modules for a third of the work. */
import { enableCompileCache, registerHooks } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

// What was stripped of its types and compiled once is read by the next process; by processes that a test starts, too.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), `gateway-test-compiled-${userInfo().uid}`);
enableCompileCache(process.env['NODE_COMPILE_CACHE']);
const asked = process.env['NODE_OPTIONS'] ?? '';
if (!asked.includes(import.meta.url)) process.env['NODE_OPTIONS'] = `${asked} --import=${import.meta.url}`.trim();

// As in the embedded database's own process: little of it runs often enough in a test to be worth compiling twice.
setFlagsFromString('--wasm-tiering-budget=400000000');

// Node parses the package.json around a module again for each module; this package has 180 kB of it and 200 modules.
const folder = '/node_modules/drizzle-orm/';
registerHooks({
  resolve(specifier, context, next) {
    const within = specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.includes(folder);
    if (within !== true) return next(specifier, context);
    return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true };
  },
});
