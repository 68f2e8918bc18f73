/** The official clients at the endpoints beside chat, before the second gateway: paid at twice the price, errors in shape. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./endpoints.test.ts');

export {};
