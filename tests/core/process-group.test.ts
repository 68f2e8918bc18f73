/** Processes that serve together on one machine: what each has for itself. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ownDirectory, workerIndexesOf } from '../../core/contract/process-group.ts';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';

test('the first process has the directory of a single one, and the others have directories below it', () => {
  assert.equal(ownDirectory('/data', 1), '/data');
  assert.equal(ownDirectory('/data', 2), '/data/worker-2');
  assert.deepEqual(
    workerIndexesOf(['journal', 'worker-2', 'worker-12', 'worker-0', 'worker-x', 'worker-2.bak']),
    [2, 12],
  );
});

test('each process has its metrics at its own port', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'crew-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const port = await twoFreePorts();
  const file = join(directory, 'gateway.yaml');
  writeFileSync(
    file,
    `gateway: crew
listen: 127.0.0.1:0
plugins: [telemetry, passthrough]
telemetry: { listen: "${port}" }
passthrough: { upstream: "http://127.0.0.1:9" }
`,
  );
  for (const place of [1, 2]) {
    const group = { workerIndex: place, size: 2, isFirst: place === 1 };
    const gateway = await boot(file, { mode: 'serve', processGroup: group, log: createLog('silent') });
    t.after(() => gateway.stop(0));
    await gateway.serve();
    const page = await fetch(`http://127.0.0.1:${port + place - 1}/metrics`);
    assert.equal(page.status, 200);
  }
});

/** Resolves with the first of two that follow one another. */
async function twoFreePorts(): Promise<number> {
  for (;;) {
    const first = createServer();
    await once(first.listen(0, '127.0.0.1'), 'listening');
    const { port } = first.address() as { port: number };
    const second = createServer();
    const free = await new Promise<boolean>((resolve) => {
      second.once('error', () => resolve(false));
      second.listen(port + 1, '127.0.0.1', () => resolve(true));
    });
    first.close();
    second.close();
    if (free) return port;
  }
}
