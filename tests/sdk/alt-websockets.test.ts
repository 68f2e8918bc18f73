/** The official client's WebSocket classes before the second gateway: paid at twice the price, errors in shape. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./websockets.test.ts');

export {};
