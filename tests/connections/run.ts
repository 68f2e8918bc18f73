/** `npm run test:connections`: 20,000 idle connections, 10,000 silent streams, 5,000 slow readers and hostile WebSockets before one gateway. */
import { descriptorLimit } from '../../core/gateway/descriptors.ts';
import { playCrowds } from './crowds.ts';
import { playHostileSockets } from './hostile-sockets.ts';

/** Files, databases, pipes. */
const ownDescriptors = 1_000;
/** Connections of one vendor, which is one process. */
const streams = Math.min(10_000, (descriptorLimit() ?? 60_000) - ownDescriptors);
if (streams < 10_000) console.log(`a process may open too few descriptors here for 10,000 streams: it is ${streams}`);
const perProcess = (descriptorLimit() ?? 60_000) - ownDescriptors;
await playCrowds({ idle: 20_000, streams, slowReaders: Math.min(5_000, streams) }, perProcess, (line) =>
  console.log(line),
);
await playHostileSockets({ unfinished: 100, megabytes: 31, pingMegabytes: 700 }, (line) => console.log(line));
process.exit(0);
