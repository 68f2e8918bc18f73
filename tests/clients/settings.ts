/** A client's settings as `connect` writes them beside those that a person had, and as `connect --undo` leaves them. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { connect } from '../../core/process/connect/connect.ts';
import { clientPrograms } from '../../core/tools/client-programs.ts';
import type { Client, Turn } from './clients.ts';

/** Writes them, and makes the one call that `connect` makes. Resolves with what takes them back, and fails where a byte differs. */
export async function connectClient(client: Client, { home, origin, key }: Turn): Promise<() => Promise<void>> {
  if (client.connects === undefined) return async () => undefined;
  const { program, before } = client.connects;
  for (const [path, text] of Object.entries(before)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
  const paths = clientPrograms.get(program)!.files!.map(({ path }) => path.replace('~/', ''));
  const at = { home, environment: {}, command: () => 'connect', show: () => undefined, wait: async () => undefined };
  const { model } = client;
  const { json } = await connect(program, { gateway: origin, key, model, small: model, yes: true }, at);
  assert.deepEqual(
    (json as { written: string[] }).written.toSorted(),
    paths.map((path) => join(home, path)).toSorted(),
  );
  return async () => {
    await connect(program, { undo: true }, at);
    for (const path of paths) {
      const text = await readFile(join(home, path), 'utf8').catch(() => undefined);
      assert.equal(text, before[path], `${path} after --undo`);
      const beside = await readdir(dirname(join(home, path)));
      assert.deepEqual(
        beside.filter((name) => name.includes('gateway')),
        [],
      );
    }
  };
}
