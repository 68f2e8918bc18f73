/** The same before the second gateway. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./google-files.test.ts');

export {};
