/** A process is killed while it keeps files: each id that it returned is there, and what it had begun is swept. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { systemClock } from '../../../core/gateway/system.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { files } from '../../../plugins/common/domain/stored-files.ts';
import { openDisk } from '../../../plugins/files/disk.ts';
import { FileRows } from '../../../plugins/files/rows.ts';
import { dropSchema } from '../../end-to-end/testbed.ts';
import { databaseUrl, ownSchema } from '../../helpers/database.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { mp4 } from './setup.ts';

/** The victim and its successor share the data directory and, on a server, the schema. */
const schema = ownSchema('killed');
const yaml = `
gateway: files
schema: ${schema}
listen: \${PORT}
plugins: [storage, files]
storage: { database: "${databaseUrl ?? 'embedded'}" }
`;
after(() => dropSchema(schema));

/** Ids that were returned before the process was killed, while it went on keeping. */
async function killAfter(count: number, file: string, directory: string): Promise<string[]> {
  const script = new URL('./killed-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, file, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const reported: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    reported.push(line);
    if (reported.length === count) child.kill('SIGKILL');
  }
  await exited;
  return reported;
}

const idsOnDisk = async (directory: string) => {
  const found = await readdir(join(directory, 'files', schema, 'kept'), { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map(({ name }) => name);
};

test('after kill -9 every file whose id was returned is whole, and no bytes lack a row', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'killed-'));
  try {
    const file = join(directory, 'victim.yaml');
    await writeFile(file, yaml);
    const reported = await killAfter(20, file, directory);
    assert.ok(reported.length >= 20);
    await using gateway = await startGateway(yaml, { directory });
    context.after(() => gateway.stop());
    const keeper = gateway.gateway.find(files)!;
    for (const id of reported) assert.ok(mp4.equals((await keeper.read('account-1', id))!), id);
    const db = gateway.gateway.find(database)!;
    const rows = new FileRows(db);
    const known = (await db.orm.execute(sql`select id from ${sql.identifier(schema)}.files`)) as unknown as {
      id: string;
    }[];
    const ids = new Set([...known].map(({ id }) => id));
    for (const id of await idsOnDisk(directory)) assert.ok(ids.has(id), id);
    // A year later all of it is swept, what was never finished too.
    const store = openDisk(join(directory, 'files', schema));
    const later = systemClock.now() + 366 * 86_400_000;
    for (const id of await rows.claim(1_000, later)) {
      await store.remove(id);
      await rows.forget([id]);
    }
    assert.deepEqual(await idsOnDisk(directory), []);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
