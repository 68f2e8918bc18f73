/**
 * Imported by a measured process: it collects garbage as a gateway does that serves, and all of it when it is sent `collect`, and then
 * answers.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { collectLessOften } from '../../core/process/loading.ts';

collectLessOften();
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void;

process.on('message', (requested) => {
  if (requested !== 'collect') return;
  collect({ type: 'major', flavor: 'last-resort' });
  process.send?.(0);
});
