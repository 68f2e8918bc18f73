/** What adapters are made of: answers and errors of vendors, refusals by the client's field, references, ratios and sizes. */
export * from './geometry.ts';
export * from './outcome.ts';
export * from './references.ts';
export * from './refuse.ts';
