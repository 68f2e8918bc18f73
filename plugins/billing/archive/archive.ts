/** The archive of old calls (`billing.archive.after`): its regular work, its place in the store of files, its commands. */
import type { Command } from '../../../core/contract/commands.ts';
import type { Fault, Host } from '../../../core/contract/contract.ts';
import { requestSumTable } from '../../common/domain/call-facts.ts';
import type { Database } from '../../common/domain/database.ts';
import { sealedFiles } from '../../common/domain/stored-files.ts';
import { archiveCommands } from './commands.ts';
import { contentsIn } from './contents.ts';
import { ArchiveReader } from './reader.ts';
import { archiveRound } from './round.ts';
import { sqlArchiveRows } from './rows.ts';

const roundMs = 60_000;

export interface Archive {
  readonly reader: ArchiveReader;
  readonly commands: readonly Command[];
  /** Where there is no place that every process can read from. */
  problems(): Fault[];
  start(): void;
}

/** `after`: calls of months that ended longer ago are archived; absent: none. `nodes`: processes that may serve at once. */
export function openArchive(host: Host, store: Database, after: number | undefined, nodes: number): Archive {
  const contents = contentsIn(() => host.find(sealedFiles));
  return {
    reader: new ArchiveReader(contents),
    commands: archiveCommands(store, contents),
    problems: () => {
      if (after === undefined) return [];
      const path = ['archive', 'after'];
      const objects = host.find(sealedFiles);
      if (objects === undefined) {
        const message = 'needs a place for the files of archived calls';
        return [{ path, message, lacks: { service: sealedFiles } }];
      }
      const unfit = objects.unfit(store.shared === true ? nodes : 1);
      return unfit === undefined ? [] : [{ path, message: `needs a place that every process reads: ${unfit}` }];
    },
    start: () => {
      if (after === undefined) return;
      const rows = sqlArchiveRows(store);
      const owner = host.random.bytes(8).toString('hex');
      host.every(roundMs, 'archive old calls', async () => {
        // What the request log knows of a call goes first: it stands in the same row.
        const facts = host.find(requestSumTable) === undefined ? Number.POSITIVE_INFINITY : await rows.factsFreeUntil();
        const until = Math.min(host.clock.now() - after, facts);
        const calls = await archiveRound({ rows, contents, schema: store.schema, owner, until });
        if (calls === 0) return 'idle';
        host.log.info({ calls }, 'old calls were archived');
        return undefined;
      });
    },
  };
}
