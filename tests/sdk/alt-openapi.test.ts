/** The description of the second gateway's interface. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./openapi.test.ts');

export {};
