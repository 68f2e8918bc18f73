/** Makes the tables of gateways in a directory ahead of their first start. */
import { join } from 'node:path';
import { connect } from '../connect.ts';
import { migrate, prepareSchema } from '../migrate.ts';
import { openBackend } from './backend.ts';
import { migrationFolders } from './fresh.ts';
import { EmbeddedServer } from './server.ts';

/** A gateway's tables, by the plugins in its file. */
interface TableOwner {
  readonly schema: string;
  readonly plugins: readonly string[];
}

/** By the same migrations as a start of these gateways. No process may have the directory open. */
export async function makeTables(directory: string, gateways: readonly TableOwner[]): Promise<void> {
  const backend = await openBackend(directory);
  const socketPath = join(directory, 'tables.sock');
  const onBroken = (error: Error) => {
    throw error;
  };
  const server = new EmbeddedServer({ backend, settings: backend.settings, holdTimeoutMs: 60_000, onBroken });
  await server.listen(socketPath);
  const { orm, close } = connect({
    ...{ target: { socketPath }, applicationName: 'model-gateway', maxConnections: 1 },
    ...{ patient: true, threaded: false },
  });
  const folders = migrationFolders();
  for (const { schema, plugins } of gateways) {
    await prepareSchema(orm, schema);
    for (const plugin of plugins) {
      const folder = folders.get(plugin);
      if (folder !== undefined) await migrate(orm, schema, plugin, folder);
    }
  }
  await close();
  await server.close();
  await backend.close();
}
