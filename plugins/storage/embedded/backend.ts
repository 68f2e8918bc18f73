/** PGlite as the backend of the embedded server, kept in shape: the work that a whole Postgres leaves to its helper processes. */
import type { PGlite } from '@electric-sql/pglite';
import { Draft, readManifest } from './copy.ts';
import { type OpenOptions, openDirectory, type Report } from './opening.ts';
import type { Backend } from './server.ts';
import { checkpointAfterBytes, Upkeep } from './upkeep.ts';

export interface EmbeddedBackend extends Backend {
  /** Parameters sent to clients when they connect. */
  readonly settings: Readonly<Record<string, string>>;
  /** One step of upkeep: a checkpoint, or one table's vacuum or analysis, if one is due. false: nothing was. */
  upkeep(): Promise<boolean>;
  /** Whether the last copy of the directory lacks much, or with `anything` so much as a row. */
  copyDue(anything: boolean): Promise<boolean>;
  /** Makes a new last good copy. `pause` runs work while no client does. */
  copy(pause: (work: () => Promise<void>) => Promise<void>): Promise<void>;
  /** Calls `listener` when a file cannot be written: calls of the backend may never return from then on. */
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
  const upkeep = new Upkeep(pglite);
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
    upkeep: () => upkeep.step(),
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
