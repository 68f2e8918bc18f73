/** Imported by a measured process: it collects all of its garbage when it is sent `collect`, and then answers. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void;

process.on('message', (asked) => {
  if (asked !== 'collect') return;
  collect({ type: 'major', flavor: 'last-resort' });
  process.send?.(0);
});
