/** The small variant of `npm run test:connections`. */
import { test } from 'node:test';
import { playCrowds } from './crowds.ts';
import { playHostileSockets } from './hostile-sockets.ts';

test('idle connections, silent streams and slow readers do not keep the gateway from serving others', async (context) => {
  await playCrowds({ idle: 400, streams: 200, slowReaders: 100 }, 10_000, (line) => context.diagnostic(line));
});

test('endless messages, and pings of a client that does not read, take bounded memory', async (context) => {
  // Without bounds it would be twice of what is allowed.
  await playHostileSockets({ unfinished: 30, megabytes: 31, pingMegabytes: 200 }, (line) => context.diagnostic(line));
});
