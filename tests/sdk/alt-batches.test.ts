/** Batches of the second gateway. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./batches.test.ts');

export {};
