/** Old calls of a world: processes move them to files while everything fails, and in the end each charge has its call once. */
import type { Contents } from '../../plugins/billing/archive/contents.ts';
import { checked } from '../../plugins/billing/archive/contents.ts';
import { digestOf, headerOf, linesOf, monthAt } from '../../plugins/billing/archive/format.ts';
import { archiveRound } from '../../plugins/billing/archive/round.ts';
import type { ArchiveRows } from '../../plugins/billing/archive/rows.ts';
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { Chance } from './chance.ts';
import type { DatabaseFaults } from './database.ts';
import { MemoryArchive, recordIn, type StoredArchive } from './memory-archive.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import type { Again } from './mishaps.ts';
import { type Mutant, sound } from './mutants.ts';
import type { Node } from './node.ts';
import type { Life, Schedule } from './schedule.ts';
import type { Violations } from './violations.ts';

/** A month of this world, and how many must lie behind a call's. */
const monthMs = 400;
const oldMonths = 2;
const firstYear = 2020;
/** Between two rounds. */
const roundMeanMs = 150;
/** One in so many files meets a fault on its way to the bucket; as many that are read. */
const faultOneIn = 6;

interface RoomOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly ledger: MemoryLedger;
  readonly faults: DatabaseFaults;
  readonly violations: Violations;
  readonly mutant: Mutant;
}

/** In a third of the worlds; other faults than those of the archive are looked for in worlds without it. */
export function archiveRoom(chance: Chance, options: Omit<RoomOptions, 'chance'>): ArchiveRoom | undefined {
  const { mutant } = options;
  const isWanted = mutant === sound ? chance.oneIn(3) : mutant.archive !== undefined;
  return isWanted ? new ArchiveRoom({ chance, ...options }) : undefined;
}

export class ArchiveRoom {
  readonly table: MemoryArchive;
  /** What the bucket has, by name. */
  readonly objects = new Map<string, string>();
  readonly #options: RoomOptions;
  /** When each call was first seen: its month. */
  readonly #seen = new Map<string, number>();
  #isCalm = false;

  constructor(options: RoomOptions) {
    const { schedule, ledger, mutant } = options;
    this.#options = options;
    this.table = new MemoryArchive(
      ledger,
      ({ id }) => this.#monthOf(id),
      () => schedule.now,
    );
    mutant.archiveTable?.(this.table);
    ledger.callOf = (id) => ledger.calls.get(id) ?? this.#archivedCall(id);
  }

  begin(again: Again, nodes: readonly Node[]): void {
    again('archive', roundMeanMs, () => this.#happen(this.#options.chance.pick(nodes)));
  }

  /** A round of a process; its ways to the database and to the bucket are as long and as bad as others'. */
  #happen(node: Node): void {
    for (const id of this.#options.ledger.calls.keys()) this.#monthOf(id);
    const { serving } = node;
    if (serving === undefined) return;
    const { schedule, mutant } = this.#options;
    const parts = { rows: this.#rowsOf(serving.life, node), contents: this.#contentsOf(serving.life) };
    const { rows, contents } = mutant.archive?.(parts) ?? parts;
    const owner = `node-${node.index}-${node.starts}`;
    const until = Date.UTC(firstYear, Math.floor(schedule.now / monthMs) - oldMonths, 1);
    schedule.current = serving.life;
    void archiveRound({ rows, contents, schema: 'main', owner, until }).catch(() => {});
  }

  calm(): void {
    this.#isCalm = true;
  }

  /** Each charged call is a row, or in one file that is as it was sealed. */
  finish(): void {
    const { ledger, violations } = this.#options;
    const counts = new Map<string, number>();
    let before: StoredArchive | undefined;
    const files = this.table.files.toSorted((one, other) =>
      one.accountId === other.accountId ? one.number - other.number : one.accountId < other.accountId ? -1 : 1,
    );
    for (const file of files) {
      const last = before?.accountId === file.accountId ? before : undefined;
      const isNext = file.number === (last?.number ?? 0) + 1 && file.previous === last?.digest;
      if (!isNext || file.header !== headerOf(file)) violations.add('A1', file.object, 'is not in its chain');
      const content = this.objects.get(file.object);
      if (content === undefined || digestOf(content) !== file.digest)
        violations.add('A1', file.object, content === undefined ? 'is missing' : 'was altered');
      else for (const { id } of linesOf(content).map(recordIn)) counts.set(id, (counts.get(id) ?? 0) + 1);
      before = file;
    }
    for (const { kind, request } of ledger.rows) {
      if (kind !== 'CHARGE') continue;
      const count = (counts.get(request!) ?? 0) + (ledger.calls.has(request!) ? 1 : 0);
      if (count !== 1) violations.add('M4', request!, `its call is there ${count} times`);
    }
  }

  #monthOf(id: string): string {
    const seen = this.#seen.get(id) ?? this.#options.schedule.now;
    this.#seen.set(id, seen);
    return monthAt(Date.UTC(firstYear, Math.floor(seen / monthMs), 1));
  }

  #archivedCall(id: string): EndRecord | undefined {
    const record = this.#options.ledger.archived.get(id);
    if (record === undefined) return undefined;
    for (const { accountId, firstId, lastId, object } of this.table.files) {
      if (accountId !== record.account || id < firstId || id > lastId) continue;
      const line = linesOf(this.objects.get(object) ?? '').find((each) => each.includes(id));
      if (line !== undefined) return recordIn(line);
    }
    return undefined;
  }

  #rowsOf(life: Life, node: Node): ArchiveRows {
    const { table } = this;
    const send = <T>(work: () => Promise<T>) =>
      this.#pass(life, 'archive rows', work, () => node.canRead, this.#options.faults.faultOneIn);
    return {
      claim: (owner) => send(() => table.claim(owner, 2_000)),
      move: (owner, from, to) => send(() => table.move(owner, from, to)),
      monthFrom: (from) => send(() => table.monthFrom(from)),
      factsFreeUntil: () => send(() => table.factsFreeUntil()),
      accountsAfter: (accountId, month) => send(() => table.accountsAfter(accountId, month)),
      // Small pages, so that files are small and many.
      read: (place, most) => send(() => table.read(place, most)),
      lastOf: (accountId) => send(() => table.lastOf(accountId)),
      seal: (owner, sealed, bytes, from, to) => send(() => table.seal(owner, sealed, bytes, from, to)),
    };
  }

  #contentsOf(life: Life): Contents {
    const { chance } = this.#options;
    const oneIn = this.#isCalm ? 0 : faultOneIn;
    return {
      put: (object, content) =>
        this.#pass(
          life,
          'archive put',
          async () => {
            // A part of it came, and the store says that it has all. A whole file stays: what takes the place of a file is whole, on
            // the disk by a rename, in a bucket by the announced length.
            const isTorn = oneIn > 0 && chance.oneIn(oneIn) && this.objects.get(object) !== content;
            this.objects.set(object, isTorn ? content.slice(0, content.length >> 1) : content);
            return content.length;
          },
          () => true,
          oneIn,
        ),
      read: ({ object, digest }) =>
        this.#pass(
          life,
          'archive read',
          async () => {
            const content = this.objects.get(object);
            return content === undefined ? { fault: 'is missing' } : checked(content, digest);
          },
          () => true,
          oneIn,
        ),
    };
  }

  /** There and back: it may be refused, or be done without an answer; who has died hears nothing. */
  #pass<T>(life: Life, label: string, work: () => Promise<T>, isOpen: () => boolean, oneIn: number): Promise<T> {
    const { schedule, chance, faults } = this.#options;
    const fate = oneIn > 0 && chance.oneIn(oneIn) ? chance.below(2) : -1;
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error(`${label}: no answer`));
      schedule.after(chance.delay(faults.meanMs), undefined, label, () => {
        if (fate === 0 || !isOpen()) return schedule.after(chance.delay(faults.meanMs), life, label, fail);
        const done = work();
        done.catch(() => {});
        schedule.after(chance.delay(faults.meanMs), life, label, () =>
          fate === 1 ? fail() : void done.then(resolve, reject),
        );
      });
    });
  }
}
