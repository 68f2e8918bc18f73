/** The official Google client before the second gateway: the suite of the main one, paid at twice the price, errors in shape. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./google.test.ts');

export {};
