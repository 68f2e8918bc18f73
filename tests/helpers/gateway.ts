/** Boots a gateway from YAML on a free port, with a data directory of its own. */
import { hash } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/contract/host-tools.ts';
import { boot, type Gateway } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { migrationFolders } from '../../plugins/storage/embedded/fresh.ts';
import { takeSchema } from './database.ts';
import type { Taken } from './kept-tables.ts';
import { fillMigrated, schemaOf } from './migrated.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export interface TestGateway {
  readonly origin: string;
  readonly gateway: Gateway;
  readonly directory: string;
  /** Log lines so far, as written. */
  readonly lines: string[];
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestGatewayOptions {
  /** Reuses a data directory of an earlier gateway; it is then not removed. */
  directory?: string;
  /** The directory is new, and its rows go with the gateway. */
  isFresh?: boolean;
  environment?: Record<string, string>;
  clock?: Clock;
}

/** Set: gateways of tests keep their rows on this PostgreSQL, each directory in a schema of its own. */
const databaseUrl = process.env['TEST_DATABASE_URL'] || undefined;
/** By directory that goes with its gateway: a schema that has all tables, and is emptied for the next one. */
const taken = new Map<string, Taken>();

/**
 * Gateways of the same name copy the same database with all tables, which takes a processor seconds to make: `test` needs no other.
 * `yaml` is a whole gateway file; relative includes resolve against the repository's root. The data directory is set here.
 */
export async function startGateway(yaml: string, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const directory = options.directory ?? temporaryDirectory('gateway-');
  const file = join(directory, 'gateway.yaml');
  const isFresh = options.directory === undefined || options.isFresh === true;
  const isOwn = isFresh && keepsRowsHere(yaml, options) && !/^schema:/m.test(yaml);
  if (databaseUrl !== undefined && isOwn) taken.set(directory, await takeSchema([...migrationFolders().keys()]));
  await writeFile(
    file,
    yaml.replaceAll('include: ', `include: ${process.cwd()}/`) + onServer(yaml, directory, options),
  );
  const environment = { PORT: '0', ALT_PORT: '0', DATA_DIR: directory, ...options.environment };
  if (isEmbedded(yaml, options) && !(await hasDatabase(directory))) await fillMigrated(directory, schemaOf(file));
  const lines: string[] = [];
  const gateway = await boot(file, {
    mode: 'serve',
    environment,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    log: createLog('debug', (line) => void lines.push(line)),
  });
  const port = await gateway.serve().catch(async (error: unknown) => {
    await gateway.stop(0);
    throw error;
  });
  const stop = async () => {
    await gateway.stop(0);
    taken.get(directory)?.giveBack();
    taken.delete(directory);
    if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
  };
  return { origin: `http://127.0.0.1:${port}`, gateway, directory, lines, stop, [Symbol.asyncDispose]: stop };
}

/** Whether the file leaves it to its directory where rows are kept: a test that names a database itself has its reason. */
function keepsRowsHere(yaml: string, { environment }: TestGatewayOptions): boolean {
  const keepsRows = /\bstorage,|- storage|^include: /m.test(yaml);
  return keepsRows && environment?.['DATABASE_URL'] === undefined && !/^storage:/m.test(yaml);
}

function isEmbedded(yaml: string, options: TestGatewayOptions): boolean {
  if (options.environment?.['DATABASE_URL'] === 'embedded') return true;
  return databaseUrl === undefined && keepsRowsHere(yaml, options);
}

/** Or what is left of one, and is to be found by the gateway. */
async function hasDatabase(directory: string): Promise<boolean> {
  return (await readdir(directory)).some((name) => name.startsWith('postgres'));
}

function onServer(yaml: string, directory: string, options: TestGatewayOptions): string {
  if (databaseUrl === undefined || !keepsRowsHere(yaml, options)) return '';
  const schema = taken.get(directory)?.schema ?? `test_${hash('sha256', directory).slice(0, 16)}`;
  return `\n${/^schema:/m.test(yaml) ? '' : `schema: ${schema}\n`}storage: { database: "${databaseUrl}" }\n`;
}
