/** The power fails: what the embedded database acknowledged is there, whatever of the rest reached the disk. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type EmbeddedBackend, openBackend } from '../../../plugins/storage/embedded/backend.ts';
import { query } from '../../../plugins/storage/embedded/wire.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { SimulatedDisk } from './simulated-disk.ts';

async function send(backend: EmbeddedBackend, text: string): Promise<string> {
  let answer = '';
  await backend.run(query(text), (bytes) => {
    answer += Buffer.from(bytes).toString('latin1');
  });
  assert.doesNotMatch(answer, /SERROR|SFATAL/, answer);
  return answer;
}

/** A simple generator, so that a failing round can be repeated by its seed. */
function chanceOf(seed: number, share: number): () => boolean {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32 < share;
  };
}

async function inWorkshop(work: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  try {
    await work((name) => join(root, name));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function writeMuch(backend: EmbeddedBackend, seed: number): Promise<void> {
  const chance = chanceOf(seed, 0.08);
  await send(backend, 'create table credits (n int primary key, filler text); create table sums (total int)');
  await send(backend, 'insert into sums values (0)');
  for (let n = 1; n <= 120; n += 1) {
    await send(
      backend,
      `begin; insert into credits values (${n}, repeat('x', ${n * 7})); update sums set total = total + 1; commit`,
    );
    if (chance()) await send(backend, 'checkpoint');
    if (chance()) await send(backend, `create table made_${n} as select * from credits`);
    if (chance()) await send(backend, 'vacuum credits');
  }
}

for (const share of [0, 0.5, 1]) {
  test(
    `every acknowledged commit survives a power cut that keeps ${share * 100} % of the unsynced sectors`,
    {
      timeout: 300_000,
    },
    () =>
      inWorkshop(async (path) => {
        await fillDirectory(path('before'));
        const disk = new SimulatedDisk(path('before'), path('shadow'));
        try {
          await writeMuch(await openBackend(path('before')), 7 + share * 10);
          assert.ok(disk.syncs > 120, `${disk.syncs} syncs`);
          disk.cutPower(path('after'), chanceOf(share * 100 + 1, share));
        } finally {
          disk.stop();
        }
        const backend = await openBackend(path('after'));
        const kept = await send(
          backend,
          "select 'rows ' || count(*) || ' sum ' || (select total from sums) from credits",
        );
        assert.match(kept, /rows 120 sum 120/);
        await backend.close();
      }),
  );
}

test(
  'a power cut in the middle of a new copy leaves the database whole and the earlier copy',
  { timeout: 300_000 },
  () =>
    inWorkshop(async (path) => {
      await fillDirectory(path('before'));
      const backend = await openBackend(path('before'));
      await send(backend, 'create table credits (n int primary key); insert into credits values (1)');
      await backend.copy((work) => work());
      const disk = new SimulatedDisk(path('before'), path('shadow'));
      try {
        await send(backend, 'insert into credits values (2)');
        await backend.copy(async () => undefined); // Gathered, never finished.
        disk.cutPower(path('after'), chanceOf(3, 0.5));
      } finally {
        disk.stop();
      }
      rmSync(join(path('after'), 'postgres', 'global', 'pg_control'));
      const reported: string[] = [];
      const next = await openBackend(path('after'), (text) => reported.push(text));
      assert.match(await send(next, "select 'rows ' || count(*) from credits"), /rows 2/);
      assert.match(reported.join(), /has been restored from the last copy and the log since then/);
      await next.close();
      await backend.close();
    }),
);
