/** The official OpenAI client before the second gateway: the suite of the main one, paid at twice the price, errors in shape. */
process.env['SDK_GATEWAY'] = 'demo-alt';
await import('./openai.test.ts');

export {};
