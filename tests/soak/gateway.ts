/** The gateway of the soak, as a process of its own; it reports its port, keys and, when asked, what it holds. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { boot } from '../../core/gateway/boot.ts';
import { collectLessOften } from '../../core/process/loading.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { descriptorsOf, type Sample } from './samples.ts';

collectLessOften();
const [file] = process.argv.slice(2) as [string];
const delay = monitorEventLoopDelay({ resolution: 5 });
const gateway = await boot(file, { mode: 'serve' });
const port = await gateway.serve();
const keys = await Promise.all(Array.from({ length: 8 }, (_, index) => openAccount(`soak-${index}`)));
process.send!({ port, keys });
delay.enable();

process.on('message', (message) => {
  if (message === 'stop') void stop();
  else if (message === 'sample') process.send!(sample());
});
process.on('disconnect', () => process.exit(1));

/** Since the last sample; the heap is what is left behind a full collection. */
function sample(): Sample {
  const p99Ms = delay.percentile(99) / 1e6;
  const longestMs = delay.max / 1e6;
  globalThis.gc!();
  const { rss, heapUsed, external } = process.memoryUsage();
  delay.reset();
  return { p99Ms, longestMs, rss, heapUsed, external, descriptors: descriptorsOf(process.pid), cpuMs: cpuMs() };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function stop(): Promise<void> {
  await gateway.stop(30_000);
  process.exit(0);
}

async function openAccount(name: string): Promise<string> {
  const book = gateway.find(accounts)!;
  const { id } = await book.create(name, 'soak');
  const amount = money(100_000n * 1_000_000_000n);
  await gateway.find(ledger)!.credit(id, amount, { kind: 'top-up', reason: 'soak', reference: name });
  return (await book.createKey(id, { name: 'soak' })).key;
}
