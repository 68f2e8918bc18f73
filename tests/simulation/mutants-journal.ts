/** Faults in the journal, and in what a start reads of it. */

import { scanSegment } from '../../plugins/billing/journal/segments.ts';
import { encodeRecords, type JournalRecord, lineBytes, putLine } from '../../plugins/billing/model/records.ts';
import type { Mutant } from './mutants.ts';
import { opened } from './mutants-tools.ts';

/** A segment as it would read if no departure had ever been recorded. */
function withoutDepartures(data: Buffer, path: string): Buffer {
  const first = /(\d{16})\.journal$/.exec(path)?.[1];
  if (first === undefined) return data;
  const { lines, goodBytes } = scanSegment(data, Number.parseInt(first, 10));
  const parts = lines.map((line) => {
    const json = encodeRecords(
      line.records.map((record): JournalRecord => {
        if (record.kind === 'SENT') return { kind: 'PROGRESS', id: record.id, output: 0 };
        return record.kind === 'HOLD' ? { ...record, sent: undefined } : record;
      }),
    );
    const target = Buffer.alloc(lineBytes(json));
    return target.subarray(0, putLine(target, 0, line.first, json));
  });
  return Buffer.concat([...parts, data.subarray(goodBytes)]);
}

export const journalMutants: Readonly<Record<string, Mutant>> = {
  'torn-tail-kept': {
    summary: 'what a failed write left behind is not cut off',
    files: (files) => ({ ...files, truncate: () => {} }),
  },
  'sync-lies': {
    summary: 'a sync says that all is safe, and nothing is',
    files: (files) => ({ ...files, sync: async () => {} }),
  },
  'recovery-voids-sent': {
    summary: 'recovery forgets that a call was sent, and voids it',
    files: (files) => ({ ...files, read: (path) => withoutDepartures(files.read(path), path) }),
  },
  'recovery-skips': {
    summary: 'recovery believes that the database has a little more of the journal than it has',
    link: (store) => ({
      ...opened(store),
      cursorOf: async (journal) => {
        const known = await store.cursorOf(journal);
        return known === undefined ? undefined : { ...known, applied: known.applied + 2 };
      },
    }),
  },
};
