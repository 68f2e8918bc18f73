/** The archive's tables in memory: the meaning of its statements and of the trigger that lets calls be deleted. */
import { digestOf, type Link, type SealedCalls } from '../../plugins/billing/archive/format.ts';
import { type ArchiveRows, noId, type Place } from '../../plugins/billing/archive/rows.ts';
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import { costIn } from './memory-records.ts';

export type StoredArchive = SealedCalls & { readonly bytes: number };

interface State {
  place: Place;
  owner: string | undefined;
  ownedUntil: number;
}

/** The line of a call; its id stands first, and its end last. */
const lineOf = ({ id, ...record }: EndRecord): string => JSON.stringify({ id, ...record, created_at: endIn(record) });
const endIn = ({ at }: Pick<EndRecord, 'at'>) => new Date(at).toISOString().replace('Z', '000Z');

export const recordIn = (line: string): EndRecord => JSON.parse(line) as EndRecord;

export class MemoryArchive implements ArchiveRows {
  readonly files: StoredArchive[] = [];
  readonly state: State = {
    place: { month: undefined, accountId: '', afterId: noId },
    owner: undefined,
    ownedUntil: 0,
  };
  /** Whether the trigger looks at what is deleted, and the key at the number of a file. */
  isGuarded = true;
  readonly #ledger: MemoryLedger;
  readonly #monthOf: (record: EndRecord) => string;
  readonly #now: () => number;

  /** `monthOf`: of a call that can be archived; `now`: the database's clock. */
  constructor(ledger: MemoryLedger, monthOf: (record: EndRecord) => string, now: () => number) {
    this.#ledger = ledger;
    this.#monthOf = monthOf;
    this.#now = now;
  }

  async claim(owner: string, forMs: number): Promise<Place | undefined> {
    const { state } = this;
    const now = this.#now();
    if (state.owner !== undefined && state.owner !== owner && state.ownedUntil >= now) return undefined;
    Object.assign(state, { owner, ownedUntil: now + forMs });
    return state.place;
  }

  async move(owner: string, from: Place, to: Place): Promise<boolean> {
    const { state } = this;
    const { month, accountId, afterId } = state.place;
    if (state.owner !== owner || month !== from.month || accountId !== from.accountId || afterId !== from.afterId)
      return false;
    state.place = to;
    return true;
  }

  async monthFrom(from: number): Promise<string | undefined> {
    const months = [...this.#ledger.calls.values()].map(this.#monthOf);
    return months.filter((month) => Date.parse(`${month}-01`) >= from).sort()[0];
  }

  async factsFreeUntil(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }

  async accountsAfter(accountId: string, month: string) {
    const accounts = new Set([...this.#ledger.calls.values()].map(({ account }) => account));
    const withCalls = [...accounts].filter((id) => id > accountId && this.#read(id, month).length > 0).sort();
    return { last: undefined, withCalls };
  }

  async read({ accountId, month, afterId }: Place & { readonly month: string }, most: number) {
    return this.#read(accountId, month)
      .filter(({ id }) => id > afterId)
      .slice(0, most)
      .map((record) => ({ id: record.id, cost: String(costIn(record)), at: endIn(record), line: lineOf(record) }));
  }

  async lastOf(accountId: string): Promise<Link | undefined> {
    return this.files.filter((file) => file.accountId === accountId).at(-1);
  }

  async seal(owner: string, sealed: SealedCalls, bytes: number, from: Place, to: Place): Promise<boolean> {
    const { accountId, month, number, firstId, lastId, header, digest } = sealed;
    const removed = this.#read(accountId, month).filter(({ id }) => id >= firstId && id <= lastId);
    const isOwn = digestOf(`${header}\n${removed.map((record) => `${lineOf(record)}\n`).join('')}`) === digest;
    const { place } = this.state;
    if (!(await this.move(owner, from, to))) return false;
    const isTaken = this.files.some((file) => file.accountId === accountId && file.number === number);
    if (this.isGuarded && (isTaken || !isOwn)) {
      this.state.place = place;
      throw new Error(isTaken ? 'duplicate key: archives_pkey' : 'these rows are not those of the file');
    }
    this.files.push({ ...sealed, bytes });
    for (const { id } of removed) this.#ledger.archive(id);
    return true;
  }

  /** Charged calls, in the order of their ids. */
  #read(accountId: string, month: string): EndRecord[] {
    return [...this.#ledger.calls.values()]
      .filter((record) => record.account === accountId && record.kind === 'SETTLE' && costIn(record) > 0n)
      .filter((record) => this.#monthOf(record) === month)
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }
}
