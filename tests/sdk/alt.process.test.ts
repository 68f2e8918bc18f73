/** The suites of the main gateway's clients before the second one: paid at twice the price, errors in its shape; images are its own. */
import { test } from 'node:test';

process.env['SDK_GATEWAY'] = 'demo-alt';

const suites = [
  'anthropic',
  'batches',
  'endpoints',
  'files',
  'google',
  'google-batches',
  'google-files',
  'openai',
  'openapi',
  'usage',
  'websockets',
];
for (const suite of suites) test(suite, async () => void (await import(`./${suite}.test.ts`)));
test('images', async () => void (await import('./alt-images.ts')));
