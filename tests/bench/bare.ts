/** The bare forwarder as a process. */
import './collect.ts';
import { createForwarder } from './in-process/forwarder.ts';

const server = createForwarder(Number(process.argv[2]));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }));
process.on('disconnect', () => process.exit(0));
