/** The usage reports of the second gateway. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./usage.test.ts');

export {};
