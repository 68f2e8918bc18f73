/** A process that tries to take a data directory, tells how it went, and keeps what it got. */
import { lockDirectory } from '../../../plugins/storage/embedded/lock.ts';

const lock = await lockDirectory(process.argv[2]!, 0);
process.send!(lock === undefined ? 'refused' : 'taken');
setInterval(() => lock, 1_000);
process.on('disconnect', () => process.exit());
