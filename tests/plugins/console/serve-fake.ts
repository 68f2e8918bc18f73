/**
 * The console for work on its pages: API and built files over the fakes, at `PORT` (8099).
 * `--role client|auditor|operator` (operator) says who is signed in; `?as=client` in any address changes it for a browser.
 */
import { parseArgs } from 'node:util';
import type { Role } from '../../../plugins/console/actor.ts';
import { fakeConsole } from './fake-console.ts';
import { serveFake } from './fake-server.ts';
import { addRequest, chance } from './fakes/world.ts';

const { values } = parseArgs({ options: { role: { type: 'string', default: 'operator' } } });
const testbed = fakeConsole({ now: Date.now, role: values.role as Role });
const { origin, close } = await serveFake(testbed, Number(process.env['PORT'] || 8099), true);
console.log(`The console is at ${origin}/console/ (API at ${origin}/console/api/me)`);

// One more request every two seconds, so that live numbers move.
const next = chance(99);
const traffic = setInterval(() => addRequest(testbed.world, Date.now() - 2_000, next), 2_000);
process.on('SIGINT', () => {
  clearInterval(traffic);
  close();
});
