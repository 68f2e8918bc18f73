/**
 * What `npm start` runs: reads what is kept of the last start before it loads the first module with types. Taking types out of so much as
 * one module loads the compiler that does it, which takes a tenth of a start.
 */
import './compiled.js';

await import('./main.ts');
