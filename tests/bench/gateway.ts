/** The gateway under measurement as a process. `look` is answered by its longest turn, or by how late 99 of 100 turns began. */
import './collect.ts';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type GatewayKind, startGateway } from './in-process/gateways.ts';
import { LongestTurn } from './turns.ts';

const [upstreamPort, kind, watched] = process.argv.slice(2);
const { port, key, stop } = await startGateway(kind as GatewayKind, Number(upstreamPort));
process.send?.({ port, key });
if (watched === 'turns') {
  const turns = new LongestTurn();
  process.on('message', (requested) => requested === 'look' && process.send?.(turns.takeMs()));
}
if (watched === 'lag') {
  const lag = monitorEventLoopDelay({ resolution: 1 });
  lag.enable();
  process.on('message', (requested) => {
    if (requested !== 'look') return;
    process.send?.(lag.percentile(99) / 1e6);
    lag.reset();
  });
}
process.on('disconnect', async () => {
  await stop();
  process.exit(0);
});
