/** A process that tries to lock a data directory, prints the result, and keeps the lock. */
import { lockDirectory } from '../../../plugins/storage/embedded/lock.ts';

const lock = await lockDirectory(process.argv[2]!, 0);
process.send!(lock === undefined ? 'refused' : 'taken');
setInterval(() => lock, 1_000);
process.on('disconnect', () => process.exit());
