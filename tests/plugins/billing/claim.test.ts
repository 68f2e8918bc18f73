/** A journal's name is safe before anybody but the directory knows it, whatever the starts before have left. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { claimJournal } from '../../../plugins/billing/journal/claim.ts';
import { type Files, nodeFiles } from '../../../plugins/billing/journal/segments.ts';
import type { Store } from '../../../plugins/billing/store.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { temporaryDirectory } from './world.ts';

/** Knows which files a power cut would leave as they are. */
class WatchedFiles {
  readonly safe = new Set<string>();
  readonly #paths = new Map<number, string>();
  readonly #syncs: readonly boolean[];
  #syncCount = 0;

  /** What comes of each sync, in order; those after them succeed. */
  constructor(syncs: readonly boolean[]) {
    this.#syncs = syncs;
  }

  readonly files: Files = {
    ...nodeFiles,
    create: (path) => this.#opened(path, nodeFiles.create(path)),
    open: (path) => this.#opened(path, nodeFiles.open(path)),
    sync: async (descriptor) => {
      const succeeds = this.#syncs[this.#syncCount++] ?? true;
      if (!succeeds) throw new Error('EIO');
      await nodeFiles.sync(descriptor);
      this.safe.add(this.#paths.get(descriptor)!);
    },
  };

  #opened(path: string, descriptor: number): number {
    this.#paths.set(descriptor, path);
    return descriptor;
  }
}

/** The part of a database that a claim asks; it knows what was reported. */
function storeOf(onClaim: (name: string) => void): Store {
  let known: { applied: number; epoch: number } | undefined;
  return {
    cursorOf: async () => known,
    claim: async (name: string, _owner: string, epoch: number) => {
      onClaim(name);
      known = { applied: 0, epoch };
      return true;
    },
  } as Partial<Store> as Store;
}

for (const failures of [0, 1, 2, 3]) {
  test(`the database gets a journal's name once that is safe, even if ${failures} earlier starts could not make it so`, async () => {
    const directory = temporaryDirectory();
    const watched = new WatchedFiles(Array.from({ length: failures }, () => false));
    const claimed: string[] = [];
    const store = storeOf((name) => {
      assert.ok(watched.safe.has(join(directory, 'name')), 'a power cut would take the name that the database has');
      claimed.push(name);
    });
    const { random } = fakeHost();
    const claim = () => {
      const options = { files: watched.files, directory, position: undefined, random, owner: 'one' };
      return claimJournal(store, options);
    };
    for (let start = 0; start < failures; start += 1) await assert.rejects(claim(), /EIO/);
    const { name, keeper } = await claim();
    keeper.close();
    assert.deepEqual(claimed, [name]);
  });
}
