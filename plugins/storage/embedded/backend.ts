/** PGlite as the backend of the embedded server, kept in shape: the work that a whole Postgres leaves to its helper processes. */
import type { PGlite } from '@electric-sql/pglite';
import { Draft, readManifest } from './copy.ts';
import { type OpenOptions, openDirectory, type Report } from './opening.ts';
import type { Backend } from './server.ts';

/** Write-ahead log after which a checkpoint lets old log files go, and after which a new copy of the directory is due. */
const checkpointAfterBytes = 64 * 2 ** 20;

export interface EmbeddedBackend extends Backend {
  /** Parameters sent to clients when they connect. */
  readonly settings: Readonly<Record<string, string>>;
  /** One step of upkeep: a checkpoint, or one table's vacuum or analysis, if one is due. false: nothing was. */
  upkeep(): Promise<boolean>;
  /** Whether the last copy of the directory lacks much, or with `anything` so much as a row. */
  copyDue(anything: boolean): Promise<boolean>;
  /** Makes a new last good copy. `pause` runs work while no client does. */
  copy(pause: (work: () => Promise<void>) => Promise<void>): Promise<void>;
  /** Calls `listener` when a file cannot be written: what is asked of the backend from then on may never return. */
  onWriteFailure(listener: () => void): void;
  close(): Promise<void>;
}

/** Opens the database in `directory`; `opening.ts` says how. Each commit is safe on disk before it is acknowledged. */
export async function openBackend(
  directory: string,
  tell: Report = () => undefined,
  options?: OpenOptions,
): Promise<EmbeddedBackend> {
  const { pglite, onWriteFailure, close } = await openDirectory(directory, tell, options);
  const { rows } = await pglite.query<{ version: string }>("select current_setting('server_version') as version");
  return {
    settings: {
      server_version: rows[0]!.version,
      server_encoding: 'UTF8',
      client_encoding: 'UTF8',
      DateStyle: 'ISO, MDY',
      IntervalStyle: 'postgres',
      TimeZone: 'UTC',
      integer_datetimes: 'on',
      standard_conforming_strings: 'on',
    },
    run: (messages, onAnswer) => pglite.execProtocolRawStream(messages, { syncToFs: false, onRawData: onAnswer }),
    upkeep: async () => (await checkpoint(pglite)) || (await vacuumOrAnalyze(pglite)),
    copyDue: (anything) => copyDue(pglite, directory, anything),
    copy: (pause) => copy(pglite, directory, pause),
    onWriteFailure,
    close,
  };
}

async function copyDue(pglite: PGlite, directory: string, anything: boolean): Promise<boolean> {
  const manifest = readManifest(directory);
  if (manifest === undefined) return true;
  const { rows } = await pglite.query<{ bytes: number }>(
    'select (pg_current_wal_insert_lsn() - $1::pg_lsn)::float8 as bytes',
    [manifest.lsn],
  );
  return rows[0]!.bytes > (anything ? 0 : checkpointAfterBytes);
}

async function copy(
  pglite: PGlite,
  directory: string,
  pause: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const draft = new Draft(directory);
  await draft.gather();
  await pause(async () => {
    await pglite.exec('checkpoint');
    const { rows } = await pglite.query<{ lsn: string; log: string }>(
      `select pg_current_wal_insert_lsn()::text as lsn, redo_wal_file as log from pg_control_checkpoint()`,
    );
    await draft.finish(rows[0]!.lsn, rows[0]!.log);
  });
}

/** Without a checkpointer the log would grow until the next stop, and a start after a crash would replay all of it. */
async function checkpoint(pglite: PGlite): Promise<boolean> {
  const { rows } = await pglite.query<{ due: boolean }>(
    `select pg_current_wal_insert_lsn() - redo_lsn > ${checkpointAfterBytes} as due from pg_control_checkpoint()`,
  );
  if (rows[0]?.due !== true) return false;
  await pglite.exec('checkpoint');
  return true;
}

/**
 * Without autovacuum dead rows would stay for ever, and plans would rest on what tables once were. The thresholds are autovacuum's own
 * defaults. Either is a step of its own, as clients wait for the whole of it.
 */
async function vacuumOrAnalyze(pglite: PGlite): Promise<boolean> {
  await pglite.exec('select pg_stat_force_next_flush()'); // What the next statement reads is then up to date.
  const { rows } = await pglite.query<{ name: string; vacuums: boolean }>(
    `select name, vacuums from (
       select format('%I.%I', schemaname, relname) as name, n_dead_tup,
         n_dead_tup > 50 + 0.2 * n_live_tup or n_ins_since_vacuum > 1000 + 0.2 * n_live_tup as vacuums,
         n_mod_since_analyze > 50 + 0.1 * n_live_tup as analyzes
       from pg_stat_user_tables
     ) as tables where vacuums or analyzes order by n_dead_tup desc limit 1`,
  );
  if (rows[0] === undefined) return false;
  await pglite.exec(`${rows[0].vacuums ? 'vacuum' : 'analyze'} ${rows[0].name}`);
  return true;
}
