/** Vector stores: uploaded files in pieces with a vector each, made by a model of the gateway, and found by what they say. */
import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import { caller, keyring } from '../common/domain/accounts.ts';
import { keyedCalls } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { catalog } from '../common/domain/models.ts';
import { fileCopies, ownStores, uploadedFiles } from '../common/domain/stored-files.ts';
import { DueWatch } from '../common/kit/jobs/due-watch.ts';
import { ChunkRows } from './chunk-rows.ts';
import { type Config, configSchema } from './config.ts';
import { storeEndpoints } from './endpoints.ts';
import { batchEndpoints, fileEndpoints } from './file-endpoints.ts';
import { FileRows } from './file-rows.ts';
import { openOwnStores } from './own.ts';
import { Searches } from './search.ts';
import { StoreRows } from './store-rows.ts';
import { Worker } from './worker.ts';

const pollIntervalMs = 100;
/** Files of a process that is gone are found this late. */
const longestSleepMs = 10_000;
const sweepIntervalMs = 600_000;

export default definePlugin<Config>({
  name: 'vector-stores',
  config: configSchema,
  services: {
    requires: [database, keyring, uploadedFiles, catalog],
    optional: [keyedCalls],
    provides: [fileCopies, ownStores],
  },
  requires: [caller],
  setup: setUpStores,
});

async function setUpStores(host: Host, config: Config): Promise<PluginInstance<Config>> {
  const store = host.get(database);
  await store.migrate('vector-stores', new URL('./migrations/', import.meta.url));
  const [stores, files] = [new StoreRows(store), new FileRows(store)];
  const chunks = new ChunkRows(store, files);
  const uploads = () => host.get(uploadedFiles);
  const due = new DueWatch({ clock: host.clock, longestMs: longestSleepMs, nextMs: () => files.nextDueMs() });
  const { at_once: places, lease: leaseMs, file: fileBytes, account: bounds } = config;
  const released = () => due.changed();
  const worker = new Worker({ places, leaseMs, fileBytes, bounds }, { host, stores, files, chunks, uploads, released });
  const poll = () => due.look(() => worker.poll());
  const wake = () => {
    due.changed();
    poll()?.catch((error: unknown) => host.log.warn({ error }, 'files of vector stores could not be taken'));
  };
  const searches = new Searches({ stores, files, chunks, atOnce: config.searches });
  const tools = { host, config, stores, files, chunks, searches, uploads, wake };
  host.provide(ownStores, openOwnStores(stores, searches));
  host.provide(fileCopies, { removed: (accountId, fileId) => files.removeEverywhere(accountId, fileId) });
  return {
    endpoints: [...storeEndpoints(tools), ...fileEndpoints(tools), ...batchEndpoints(tools)],
    addresses: { pathPrefixes: ['/v1'] },
    checks: {
      problems: () => (host.get(catalog).find(config.model)?.kind === 'embedding' ? [] : [noModel(config)]),
    },
    lifecycle: {
      start() {
        host.every(pollIntervalMs, 'put files into vector stores', poll);
        host.every(sweepIntervalMs, 'empty expired vector stores', () => stores.sweep());
      },
      drain: () => worker.drain(),
      stop: () => worker.stop(),
    },
  };
}

function noModel({ model }: Config) {
  return { path: ['model'], message: `"${model}" is no model of the kind embedding` };
}
