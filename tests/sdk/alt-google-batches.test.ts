/** The same before the second gateway. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./google-batches.test.ts');

export {};
