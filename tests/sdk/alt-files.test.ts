/** Files of the second gateway. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./files.test.ts');

export {};
