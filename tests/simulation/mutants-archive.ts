/** Faults in the moving of old calls to files. */
import type { Contents } from '../../plugins/billing/archive/contents.ts';
import type { ArchiveRows } from '../../plugins/billing/archive/rows.ts';
import type { Mutant } from './mutants.ts';

/** A round's way to the database and to the bucket. */
export interface ArchiveParts {
  readonly rows: ArchiveRows;
  readonly contents: Contents;
}

/** The contents that were written are taken for what is there. */
function believing(contents: Contents, put: Contents['put']): Contents {
  const written = new Map<string, string>();
  return {
    put: (object, content) => {
      written.set(object, content);
      return put(object, content);
    },
    read: async (file) => {
      const content = written.get(file.object);
      return content === undefined ? contents.read(file) : { content };
    },
  };
}

export const archiveMutants: Readonly<Record<string, Mutant>> = {
  'archive-without-upload': {
    summary: 'calls are deleted although their file was not stored',
    archive: ({ rows, contents }) => ({ rows, contents: believing(contents, async (_object, { length }) => length) }),
  },
  'archive-unread': {
    summary: 'calls are deleted for a file of which the store kept a part, because it was not read back',
    archive: ({ rows, contents }) => ({ rows, contents: believing(contents, contents.put) }),
  },
  'archive-double': {
    summary: 'two processes archive at once, each puts its file in the place of the same calls',
    archive: ({ rows, contents }) => ({
      contents,
      rows: {
        ...rows,
        claim: async (owner, forMs) =>
          (await rows.claim(owner, forMs)) ?? { month: undefined, accountId: '', afterId: '' },
        move: async (owner, from, to) => (await rows.move(owner, from, to)) || true,
      },
    }),
    archiveTable: (table) => {
      table.isGuarded = false;
      const move = table.move.bind(table);
      table.move = async (owner, from, to) => (await move(owner, from, to)) || true;
    },
  },
  'archive-unguarded': {
    summary: 'calls that are in no file are deleted with those of one, and nothing compares them',
    archive: ({ rows, contents }) => ({
      contents,
      rows: {
        ...rows,
        read: async (place, most) => (await rows.read(place, most)).filter((_line, index) => index % 3 !== 1),
      },
    }),
    archiveTable: (table) => {
      table.isGuarded = false;
    },
  },
};
