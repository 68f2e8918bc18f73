/** The small variant of `npm run test:connections`. */
import { test } from 'node:test';
import { playCrowds } from './crowds.ts';

test('idle connections, silent streams and slow readers leave the gateway to others', async (context) => {
  await playCrowds({ idle: 400, streams: 200, slowReaders: 100 }, 10_000, (line) => context.diagnostic(line));
});
