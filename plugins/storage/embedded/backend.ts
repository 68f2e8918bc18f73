/** Opens PGlite in its directory and keeps it in shape: the work that a whole Postgres leaves to its helper processes. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type { Backend } from './server.ts';

/** Write-ahead log after which a checkpoint lets old log files go. */
const checkpointAfterBytes = 64 * 2 ** 20;

export interface EmbeddedBackend extends Backend {
  /** What clients are told on arrival. */
  readonly settings: Readonly<Record<string, string>>;
  /** One step of upkeep: a checkpoint or one table's vacuum, if one is due. false: nothing was. */
  upkeep(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens `<directory>/postgres`, made anew when it is missing or its first making was broken off.
 *
 * PGlite hands its log to the system with each commit but does not wait for the disk: what was committed survives the end
 * of any process, `kill -9` too, but not surely the loss of power.
 */
export async function openBackend(directory: string): Promise<EmbeddedBackend> {
  const path = join(directory, 'postgres');
  const incomplete = join(directory, 'postgres.incomplete');
  if (existsSync(incomplete)) rmSync(path, { recursive: true, force: true });
  const isNew = !existsSync(path);
  if (isNew) {
    writeFileSync(incomplete, '');
    mkdirSync(path, { mode: 0o700 });
  }
  const pglite = await PGlite.create(path);
  if (isNew) rmSync(incomplete);
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
    upkeep: async () => (await checkpoint(pglite)) || (await vacuum(pglite)),
    close: () => pglite.close(),
  };
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

/** Without autovacuum dead rows would stay for ever. The thresholds are autovacuum's own defaults. */
async function vacuum(pglite: PGlite): Promise<boolean> {
  await pglite.exec('select pg_stat_force_next_flush()'); // What the next statement reads is then up to date.
  const { rows } = await pglite.query<{ name: string }>(
    `select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables
     where n_dead_tup > 50 + 0.2 * n_live_tup or n_ins_since_vacuum > 1000 + 0.2 * n_live_tup
        or n_mod_since_analyze > 50 + 0.1 * n_live_tup
     order by n_dead_tup desc limit 1`,
  );
  if (rows[0] === undefined) return false;
  await pglite.exec(`vacuum (analyze) ${rows[0].name}`);
  return true;
}
